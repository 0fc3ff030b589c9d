"""Labels to be added: errors where they cannot be, warnings where they will not be suggested."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import numpy as np

from depl.core.corpus import Label, LabelSet
from depl.core.errors import CorpusError
from depl.sparse.tfidf import TfidfFeatures

_log = logging.getLogger(__name__)
_NAMED = 5  # labels that a warning names before it breaks off


def check_new(
    labels: Sequence[Label],
    descriptions: Mapping[str, str],
    examples: Mapping[str, Sequence[str]],
    known: Mapping[str, int],
) -> None:
    """Refuse labels that cannot be added, and texts that belong to none of them."""
    if not labels:
        raise CorpusError("There is no label to add. Give at least one, with an id and a name.")
    for label in labels:
        filled_in(label.id, "id of a label")
        for name in (label.name, *label.alt_names):
            filled_in(name, f"name, or another name, of the label {label.id!r}")
        if label.id in known:
            raise CorpusError(
                f"There is a label with the id {label.id!r} already. Choose another id, or change "
                f"that label with describe or rename."
            )
    ids = set(LabelSet(labels).ids)  # refuses an id that is there twice
    for kind, texts in (("description", descriptions), ("example", examples)):
        strangers = [x for x in texts if x not in ids]
        if strangers:
            raise CorpusError(
                f"There is {'an' if kind == 'example' else 'a'} {kind} of {strangers[0]!r}, which "
                f"is not among the {len(ids)} labels to add. Check its id."
            )
    for label_id, text in descriptions.items():
        filled_in(text, f"description of the label {label_id!r}")
    for label_id, documents in examples.items():
        if isinstance(documents, str):
            raise CorpusError(
                f"The examples of the label {label_id!r} are a single text. Put it in [ ]."
            )
        for text in documents:
            filled_in(text, f"text of an example of the label {label_id!r}")


def filled_in(text: str, what: str) -> str:
    """The text, if it is not blank and can be written."""
    if not isinstance(text, str) or not text.strip():
        raise CorpusError(f"The {what} is empty. Nothing was changed; fill it in.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise CorpusError(f"The {what} has half of a surrogate pair in it: {text!r:.60}") from None
    return text


def warn_of_silence(silent: Sequence[str], part: str, remedy: str) -> None:
    """Warn of added labels that cannot be suggested yet.

    Parameters
    ----------
    silent : sequence of str
        Their ids.
    part : str
        The only part of the run that suggests.
    remedy : str
        What makes them known to it.
    """
    if silent:
        _log.warning(
            "%d of the added labels (%s) will not be suggested: this run ranks by its part %r "
            "alone, which knows labels by their documents only. %s.",
            len(silent),
            _some(silent),
            part,
            remedy,
        )


def warn_of_strange_names(labels: Sequence[Label], features: TfidfFeatures) -> None:
    """Warn of labels that are known by name only, where the run knows none of its words."""
    names = [" ".join((x.name, *x.alt_names)) for x in labels]
    strange = np.flatnonzero(np.diff(features.transform(names).indptr) == 0)
    wordless = [int(i) for i in strange if not features.unknown_terms([names[i]])]
    told = (
        (np.setdiff1d(strange, wordless), "are suggested only where a text has these words"),
        # Without any word, or in a run of an earlier version:
        (wordless, "cannot be suggested by it"),
    )
    for which, consequence in told:
        if len(which):
            _log.warning(
                "No training document has a word of the name of %d of the added labels (%s): "
                "they %s. Give them examples or other names.",
                len(which),
                _some([labels[int(i)].name for i in which]),
                consequence,
            )


def warn_of_new_words(label: Label, features: TfidfFeatures) -> None:
    """Warn of other names for a label of the run, where these have words that the run lacks."""
    words = features.unknown_terms([" ".join((label.name, *label.alt_names))])
    if words:
        _log.warning(
            "No training document has %s: texts with it do not match the new names of %r until "
            "`depl learn` has seen an example of this label.",
            _some(words),
            label.name,
        )


def _some(texts: Sequence[str]) -> str:
    return ", ".join(texts[:_NAMED]) + (", ..." if len(texts) > _NAMED else "")
