"""Feedback as documents to train on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from depl.core.corpus import Corpus, LabelSet
from depl.labels.decisions import DecidedDocument


@dataclass(frozen=True)
class Taught:
    """What the feedback makes of a corpus.

    Parameters
    ----------
    corpus : Corpus
        The documents.
    without_labels : int
        Documents that were left out because no label of theirs is left.
    unknown_labels : list of str
        Ids in the feedback that are not in the label set (any more); they were left out.
    rejected : dict of int to set of int
        Positions of documents, and the labels that each was rejected for.
    """

    corpus: Corpus
    without_labels: int
    unknown_labels: list[str]
    rejected: dict[int, set[int]]


def taught(
    documents: Sequence[DecidedDocument],
    labels: LabelSet,
    base: Corpus | None = None,
    *,
    keep_all: bool = False,
) -> Taught:
    """Documents with the labels that people gave them.

    Parameters
    ----------
    documents : sequence of DecidedDocument
        The feedback.
    labels : LabelSet
        What the columns of the new corpus mean; those of ``base`` are the first of them.
    base : Corpus, optional
        Documents to which the feedback is added. One with the same id, or else the same text,
        keeps its labels except those that were rejected.
    keep_all : bool
        Keep documents that no label is left of, and with that the positions of ``base``.
    """
    ids, texts = ([], []) if base is None else (list(base.ids), list(base.texts))
    carried = [] if base is None else _rows(base)
    by_id = {id: i for i, id in enumerate(ids)}
    by_text = {text: i for i, text in enumerate(texts)}
    unknown: dict[str, None] = {}
    empty: set[int] = set()
    rejected: dict[int, set[int]] = {}
    for document in documents:
        unknown |= dict.fromkeys(
            x for x in sorted(document.carried | document.rejected) if labels.get(x) < 0
        )
        wins = {labels.get(x) for x in document.carried} - {-1}
        loses = {labels.get(x) for x in document.rejected} - {-1}
        place = by_id.get(document.id, by_text.get(document.text))
        if place is None:
            place = len(ids)
            ids.append(document.id)
            texts.append(document.text)
            carried.append([])
            by_text.setdefault(document.text, place)  # two ids, one text: one document
        texts[place], carried[place] = document.text, sorted({*carried[place], *wins} - loses)
        rejected[place] = (rejected.get(place, set()) | loses) - {*carried[place]}
        (empty.add if not carried[place] else empty.discard)(place)
    kept = [i for i in range(len(ids)) if keep_all or i not in empty]
    corpus = Corpus.from_rows(
        [ids[i] for i in kept],
        [texts[i] for i in kept],
        [carried[i] for i in kept],
        labels,
    )
    there = {place: i for i, place in enumerate(kept)}
    against = {there[place]: x for place, x in rejected.items() if x and place in there}
    return Taught(corpus, len(empty), list(unknown), against)


def _rows(corpus: Corpus) -> list[list[int]]:
    labels, ends = corpus.Y.indices.tolist(), corpus.Y.indptr.tolist()
    return [labels[first:last] for first, last in pairwise(ends)]
