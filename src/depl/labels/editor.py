"""Edits of a loaded run's labels: checked, computed, written to the journal, then applied.

Nothing is retrained. An added label is found by its name and description, and with examples by
the SVM and the neighbours, too; only a classification head cannot rank it.
"""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from depl.core import storage
from depl.core.corpus import Label, LabelSet
from depl.core.errors import CorpusError, RunError
from depl.fusion.newcomers import NewcomerModel
from depl.labels.computed import LAYOUT, Computed, decoded
from depl.labels.fewshot import LabelMaker
from depl.labels.journal import Edit, Entry, Journal, in_force
from depl.labels.overlay import Overlay, Revert
from depl.labels.simulation import simulate_newcomers
from depl.run.folder import Run
from depl.run.state import State

_log = logging.getLogger(__name__)


class LabelEditor:
    """The labels of a loaded run, and their edits.

    Parameters
    ----------
    run : Run
        The folder whose journal is read and written.
    base : State
        The run as it was fitted.
    decided_by : str or None
        The only part whose ranking the run suggests; None where several are combined.
    train_vectors : function
        Gives the tf-idf of the training documents.
    """

    def __init__(
        self,
        run: Run,
        base: State,
        decided_by: str | None,
        train_vectors: Callable[[], csr_array],
    ) -> None:
        self._run = run
        self._base = base
        self._decided_by = decided_by
        self._maker = LabelMaker(run, base, train_vectors)
        self._journal = Journal(run.path)
        stages = run.manifest()["stages"]
        self._finished = "fusion" in stages
        rests_on = ["descriptions", *(["index"] if base.retriever is not None else [])]
        made_from = {name: stages[name]["fingerprint"] for name in rests_on}
        learned = run.learned.current()
        if learned:
            made_from["learned"] = str(learned)
        self._made_from = storage.fingerprint(made_from, LAYOUT)
        self._writing = threading.Lock()  # one edit at a time in this process
        self._locked = False  # whether ``locked`` holds the journal
        self._applying = threading.Lock()  # whoever changes or reads the overlay
        self._newcomer_model: NewcomerModel | None = None
        self._overlay = Overlay(base, self._model)
        self._standing: list[tuple[Entry, Revert]] = []
        self._state: State | None = base
        self.refresh()

    def state(self) -> State:
        """The run with all edits in force."""
        state = self._state
        if state is None:
            with self._applying:
                state = self._state = self._overlay.state()
        return state

    def refresh(self) -> bool:
        """Apply what other processes have edited; whether there was anything. Never waits."""
        if not self._journal.changed():
            return False
        with self._applying:
            return self._catch_up()

    def _model(self) -> NewcomerModel | None:
        """What makes added labels probable; None where the fusion has to do."""
        if self._base.retriever is not None:
            return None  # the encoder knows more of a new label than its words do
        if self._newcomer_model is None and self._finished:
            # A run of an earlier version does without until now.
            self._newcomer_model = self._run.newcomer_model() or simulate_newcomers(self._run)
        return self._newcomer_model

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others from editing, so that edits during the block wait for nobody.

        Raises ``BusyError`` if another process does not finish its edit. The edits may come from
        another thread than the lock.
        """
        with self._hold():
            self._locked = True
            try:
                yield
            finally:
                self._locked = False

    @contextmanager
    def _hold(self) -> Iterator[None]:
        with self._writing, self._journal.locked():
            yield

    # The edits

    def add(
        self,
        labels: Sequence[Label],
        descriptions: Mapping[str, str],
        examples: Mapping[str, Sequence[str]],
    ) -> None:
        """Append labels."""

        def content() -> dict[str, Any]:
            _check_new(labels, descriptions, examples, self._overlay.position)
            return {
                "labels": [
                    {"id": x.id, "name": x.name.strip(), "alt_names": list(x.alt_names)}
                    | ({"description": descriptions[x.id]} if x.id in descriptions else {})
                    | ({"broader": list(x.broader)} if x.broader else {})
                    | ({"examples": list(examples[x.id])} if examples.get(x.id) else {})
                    for x in labels
                ]
            }

        self._edit("add", content)
        self._warn_of_silence(labels, examples)
        self._warn_of_strange_names(labels, examples)

    def describe(self, label_id: str, text: str) -> None:
        """Replace a label's description."""
        self._edit(
            "describe", lambda: {"id": self._known(label_id), "text": _said(text, "description")}
        )

    def rename(
        self, label_id: str, name: str | None = None, alt_names: Sequence[str] | None = None
    ) -> None:
        """Replace a label's name, all its other names, or both."""

        def content() -> dict[str, Any]:
            label = self._overlay.labels[self._overlay.position[self._known(label_id)]]
            new = label.name if name is None else _said(name, "name").strip()
            found: dict[str, Any] = {"id": label_id, "name": new, "before": label.name}
            if alt_names is not None:
                found["alt_names"] = [_said(x, "other name").strip() for x in alt_names]
            return found

        self._edit("rename", content)

    def remove(self, label_id: str) -> None:
        """Never suggest a label again."""

        def content() -> dict[str, Any]:
            position = self._overlay.position[self._known(label_id)]
            return {"id": label_id, "before": self._overlay.labels[position].name}

        self._edit("remove", content)

    def last(self) -> str | None:
        """What ``undo`` would take back; None if there is nothing."""
        return self._standing[-1][0].summary() if self._standing else None

    def undo(self) -> str:
        """Take back the last edit in force; returns which it was."""
        with self._alone(), self._applying:
            self._catch_up()
            if not self._standing:
                raise self._journal.nothing_to_undo()
            undone = self._standing[-1][0]
            entry, line = self._journal.draft("undo", {"of": undone.number})
            self._write(entry, line, None)
            self._apply(entry, None)
        return undone.summary()

    def _edit(self, edit: Edit, content: Callable[[], dict[str, Any]]) -> None:
        """Check, compute, write, apply: in this order, so that an error changes nothing."""
        with self._alone(), self._applying:
            self._catch_up()
            entry, line = self._journal.draft(edit, content())
            computed = self._compute(entry)
            self._write(entry, line, computed)
            self._apply(entry, computed)

    def _alone(self) -> AbstractContextManager[None]:
        return nullcontext() if self._locked else self._hold()

    def _write(self, entry: Entry, line: bytes, computed: Computed | None) -> None:
        self._journal.computed.append(entry.number, self._key(entry), computed)
        self._journal.append(entry, line)

    def _known(self, label_id: str) -> str:
        if label_id not in self._overlay.position:
            gone = label_id in self._overlay.removed.values()
            raise CorpusError(
                f"The label {label_id!r} was removed. Add it again, or undo its removal."
                if gone
                else f"No label has the id {label_id!r}. `depl labels RUN list` lists all."
            )
        return label_id

    def _warn_of_silence(
        self, labels: Sequence[Label], examples: Mapping[str, Sequence[str]]
    ) -> None:
        """Warn where an added label cannot be suggested yet."""
        ranked_apart = self._model() is not None
        if ranked_apart or self._decided_by not in ("svm", "neighbours", "classifier"):
            return
        needs_training = self._decided_by == "classifier"
        silent = [x.id for x in labels if needs_training or not examples.get(x.id)]
        if not silent:
            return
        remedy = "Fit the run again with them" if needs_training else "Add them with examples"
        if not self._finished:
            remedy += f", or finish the run with `depl fit {self._run.path}`"
        _log.warning(
            "%d of the added labels (%s) will not be suggested: this run ranks by its part %r "
            "alone, which knows labels by their documents only. %s.",
            len(silent),
            ", ".join(silent[:5]) + (", ..." if len(silent) > 5 else ""),
            self._decided_by,
            remedy,
        )

    def _warn_of_strange_names(
        self, labels: Sequence[Label], examples: Mapping[str, Sequence[str]]
    ) -> None:
        """Warn of labels that are known by name only, where the run knows none of its words."""
        by_name = [x for x in labels if not examples.get(x.id)]
        if not by_name or self._model() is None:
            return
        features = self._base.features
        names = [" ".join((x.name, *x.alt_names)) for x in by_name]
        strange = np.flatnonzero(np.diff(features.transform(names).indptr) == 0)
        wordless = [i for i in strange if not features.unknown_terms([names[i]])]
        told = (
            (np.setdiff1d(strange, wordless), "are suggested only where a text has these words"),
            # Without any word, or in a run of an earlier version:
            (wordless, "cannot be suggested by it"),
        )
        for which, consequence in told:
            if len(which):
                some = ", ".join(by_name[i].name for i in which[:5])
                _log.warning(
                    "No training document has a word of the name of %d of the added labels (%s): "
                    "they %s. Give them examples or other names.",
                    len(which),
                    some + (", ..." if len(which) > 5 else ""),
                    consequence,
                )

    # From the journal to the state

    def _catch_up(self) -> bool:
        """Apply entries that were written since; whether there were any."""
        from_start, entries = self._journal.read_on()
        if not entries and not self._standing:
            return False
        try:
            if from_start:
                self._replay(entries)
            elif not self._apply_all(entries):
                self._replay(self._journal.entries())
        except Exception:
            self._journal.rewind()  # nothing that was read counts
            raise
        return from_start or bool(entries)

    def _apply_all(self, entries: Sequence[Entry]) -> bool:
        """Apply entries that follow; False where one undoes another than the last edit."""
        kept = self._journal.computed.read_on()
        for entry in entries:
            if entry.edit != "undo":
                self._check_fits(entry, self._overlay)
            elif not self._standing or entry.content["of"] != self._standing[-1][0].number:
                return False
            self._apply(entry, self._kept(entry, kept) or self._compute(entry))
        return True

    def _replay(self, entries: Sequence[Entry]) -> None:
        """Apply all entries to the run as it was fitted."""
        before = self._overlay, self._standing
        self._overlay, self._standing = Overlay(self._base, self._model), []
        self._journal.computed.rewind()
        kept, lines = self._journal.computed.read_on(), {}
        standing = {entry.number for entry in in_force(entries)}
        complete, collecting = True, gc.isenabled()
        gc.disable()  # nothing here is garbage, and looking for it takes a third of the time
        try:
            for entry in entries:
                computed = None
                if entry.number in standing:
                    self._check_fits(entry, self._overlay)
                    computed = self._kept(entry, kept)
                    if computed is None:
                        computed = self._compute(entry)
                        complete = complete and computed is None
                    self._apply(entry, computed)
                elif entry.edit == "add":
                    self._overlay.add_tombstones(_labels_of(entry), entry.number)
                lines[entry.number] = self._key(entry), computed
        except Exception:
            self._overlay, self._standing = before
            raise
        finally:
            if collecting:
                gc.enable()
        self._state = None
        if not complete:
            self._keep(lines)

    def _keep(self, lines: Mapping[int, tuple[str, Computed | None]]) -> None:
        """Write what was computed again; without it loading takes longer, and works."""
        try:
            if self._locked or self._writing.locked():
                self._journal.computed.replace(lines)
            else:
                with self._journal.locked(wait=0):
                    self._journal.computed.replace(lines)
        except RunError as error:  # a read-only run, or one that is being edited
            _log.info("%s", error)

    def _check_fits(self, entry: Entry, overlay: Overlay) -> None:
        """Refuse an entry about labels as they were before the run was fitted again."""
        known = overlay.position
        if entry.edit == "add":
            wrong = [x.id for x in _labels_of(entry) if x.id in known]
            trouble = "which the run has anyway"
        else:
            wrong = [entry.content["id"]] if entry.content["id"] not in known else []
            trouble = "which the run does not have"
        if wrong:
            raise RunError(
                f"{self._journal.path}:{entry.number} ({entry.summary()}) is about the label "
                f"{wrong[0]!r}, {trouble}: it was fitted on other labels since. Take the edits "
                f"back with `depl labels {self._run.path} undo`, the last first, or move the "
                f"folder {self._journal.folder} away to do without all of them."
            )

    def _apply(self, entry: Entry, computed: Computed | None) -> None:
        overlay, content = self._overlay, entry.content
        self._state = None
        if entry.edit == "undo":
            self._standing.pop()[1]()
            return
        if entry.edit == "add":
            assert computed is not None
            written = ["description" in x for x in content["labels"]]
            examples = [x.get("examples", []) for x in content["labels"]]
            revert = overlay.add(_labels_of(entry), written, computed, examples, entry.number)
        else:
            position = overlay.position[content["id"]]
            if computed is None:
                revert = overlay.remove(position, entry.number)
            elif entry.edit == "describe":
                revert = overlay.describe(position, computed)
            else:
                revert = overlay.rename(
                    position, _renamed(overlay.labels[position], entry), computed
                )
        self._standing.append((entry, revert))

    def _kept(self, entry: Entry, kept: Mapping[int, tuple[str, bytes]]) -> Computed | None:
        """What was computed for an entry, where it was kept and the run not fitted since."""
        key, content = kept.get(entry.number, ("", b""))
        return decoded(content) if key == self._key(entry) else None

    def _key(self, entry: Entry) -> str:
        return f"{self._made_from}-{entry.digest}"

    # What is computed for an edit

    def _compute(self, entry: Entry) -> Computed | None:
        content, overlay = entry.content, self._overlay
        if entry.edit == "add":
            labels = _labels_of(entry)
            texts = [x.get("description") for x in content["labels"]]
            return self._maker.make(
                labels, texts, [x.get("examples", []) for x in content["labels"]]
            )
        if entry.edit in ("remove", "undo"):
            return None
        position = overlay.position[content["id"]]
        label = overlay.labels[position]
        if entry.edit == "describe":
            return self._maker.make([label], [content["text"]], [[]])
        label = _renamed(label, entry)
        if position in overlay.written:
            return self._maker.make([label], [overlay.descriptions[position]], [[]])
        return self._maker.make([label], [None], [[]], keywords=overlay.keywords[position])


def _renamed(label: Label, entry: Entry) -> Label:
    names = entry.content.get("alt_names", label.alt_names)
    return replace(label, name=entry.content["name"], alt_names=tuple(names))


def _labels_of(entry: Entry) -> list[Label]:
    return [
        Label(
            x["id"],
            x["name"],
            tuple(x["alt_names"]),
            x.get("description", ""),
            tuple(x.get("broader", ())),
        )
        for x in entry.content["labels"]
    ]


def _check_new(
    labels: Sequence[Label],
    descriptions: Mapping[str, str],
    examples: Mapping[str, Sequence[str]],
    known: Mapping[str, int],
) -> None:
    """Refuse labels that cannot be added, and texts that belong to none of them."""
    if not labels:
        raise CorpusError("There is no label to add. Give at least one, with an id and a name.")
    for label in labels:
        _said(label.id, "id of a label")
        for name in (label.name, *label.alt_names):
            _said(name, f"name, or another name, of the label {label.id!r}")
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
        _said(text, f"description of the label {label_id!r}")
    for label_id, documents in examples.items():
        if isinstance(documents, str):
            raise CorpusError(
                f"The examples of the label {label_id!r} are a single text. Put it in [ ]."
            )
        for text in documents:
            _said(text, f"text of an example of the label {label_id!r}")


def _said(text: str, what: str) -> str:
    """The text, if it is not blank and can be written."""
    if not isinstance(text, str) or not text.strip():
        raise CorpusError(f"The {what} is empty. Nothing was changed; fill it in.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise CorpusError(f"The {what} has half of a surrogate pair in it: {text!r:.60}") from None
    return text
