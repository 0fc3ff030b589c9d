"""What a ranking gets wrong: labels that it misses or suggests in vain, and example documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.corpus import Corpus, Label, LabelSet
from depl.core.display import html_table, shortened
from depl.core.ranking import Ranking
from depl.evaluation.metrics import Hits

_LABELS = 15  # of each kind
_CONFUSIONS = 3  # of each label
_EXAMPLES = 10
_TEXT = 400  # characters of an example


class Confusion(NamedTuple):
    """Another label, and in how many documents it took part in the mistake."""

    label: Label
    documents: int


class WeakLabel(NamedTuple):
    """A label that is often missed, or often wrongly suggested.

    ``training`` documents carried it in training and ``documents`` do in the split; it is among
    the first k of ``suggested`` documents, rightly in ``found`` of them.
    """

    label: Label
    training: int
    documents: int
    suggested: int
    found: int
    confusions: tuple[Confusion, ...]

    @property
    def missed(self) -> int:
        """How many documents carry it and do not have it among their first k."""
        return self.documents - self.found

    @property
    def wrong(self) -> int:
        """How many documents have it among their first k and do not carry it."""
        return self.suggested - self.found


class Suggestion(NamedTuple):
    """A suggested label, its score, and whether the document carries it."""

    label: Label
    score: float
    right: bool


class Example(NamedTuple):
    """A document with a wrong suggestion: the beginning of its text, and what it should have."""

    id: str
    text: str
    suggested: tuple[Suggestion, ...]
    missed: tuple[Label, ...]


@dataclass(frozen=True, repr=False)
class Mistakes:
    """The mistakes among the first k suggestions of all documents.

    Parameters
    ----------
    k : int
        How many suggestions of a document are looked at.
    missed : tuple of WeakLabel
        The labels that are missed most, worst first: by the number of documents missed times their
        share of all that carry the label. Confusions are wrong suggestions for these documents.
    wrong : tuple of WeakLabel
        The labels that are suggested wrongly most, likewise. Confusions are labels that these
        documents carry and that are missed.
    examples : tuple of Example
        Documents with a missed label, those with the surest wrong suggestion first, one for each
        wrongly suggested label.
    """

    k: int
    missed: tuple[WeakLabel, ...]
    wrong: tuple[WeakLabel, ...]
    examples: tuple[Example, ...]

    def __repr__(self) -> str:
        worst = ", ".join(shortened(weak.label.name, 40) for weak in self.missed[:3])
        return f"Mistakes(among the first {self.k}; missed most: {worst or 'none'})"

    def _repr_html_(self) -> str:
        header = ("label", "training documents", "documents", "missed", "suggested instead")
        missed = [
            (x.label.name, x.training, x.documents, x.missed, _named(x.confusions))
            for x in self.missed
        ]
        examples = [
            (
                x.id,
                x.text,
                ", ".join(f"{s.label.name}{' ✓' * s.right}" for s in x.suggested),
                ", ".join(label.name for label in x.missed),
            )
            for x in self.examples
        ]
        return html_table(repr(self), header, missed) + html_table(
            "Example mistakes", ("id", "text", "suggested", "missed"), examples
        )


def find_mistakes(
    hits: Hits, ranking: Ranking, corpus: Corpus, train_counts: NDArray[np.integer], k: int
) -> Mistakes:
    """Look at the first k suggestions of every document.

    Parameters
    ----------
    hits : Hits
        The comparison of ``ranking`` with the labels of ``corpus``.
    ranking : Ranking
        The suggestions.
    corpus : Corpus
        The documents.
    train_counts : array of shape (n_labels,)
        How many training documents carry each label.
    k : int
        At most the width of ``hits``.
    """
    shape = len(corpus), len(corpus.labels)
    predicted, correct = hits.first(k)
    found = _pairs(predicted, correct, shape)
    wrong = _pairs(predicted, ~correct & (predicted >= 0), shape)
    carried = csr_array((np.ones(len(hits.labels)), (hits.documents, hits.labels)), shape)
    missed = carried - found
    missed.eliminate_zeros()
    counts = _Counts(corpus.labels, train_counts, hits.support, _per_label(found + wrong), found)
    return Mistakes(
        k,
        counts.weakest(missed, hits.support, others=wrong),
        counts.weakest(wrong, counts.suggested, others=missed),
        _examples(hits, ranking, corpus, missed, k),
    )


class _Counts:
    """What is known of each label, to make a ``WeakLabel`` of the worst."""

    def __init__(
        self,
        labels: LabelSet,
        training: NDArray[np.integer],
        documents: NDArray[np.int64],
        suggested: NDArray[np.int64],
        found: csr_array,
    ) -> None:
        self._labels = labels
        self._training = training
        self._documents = documents
        self._found = _per_label(found)
        self.suggested = suggested

    def weakest(
        self, mistakes: csr_array, out_of: NDArray[np.int64], *, others: csr_array
    ) -> tuple[WeakLabel, ...]:
        """The labels of most mistakes (documents x labels), with the others of these documents."""
        n = _per_label(mistakes)
        # A count alone would name the most frequent labels, a share alone those of one document.
        badness = n**2 / np.maximum(out_of, 1)
        worst = np.lexsort((-n, -badness))[: min(_LABELS, np.count_nonzero(n))]
        together = (mistakes[:, worst].T @ others).tocsr()
        often = _per_label(others)
        return tuple(
            WeakLabel(
                self._labels[j],
                int(self._training[j]),
                int(self._documents[j]),
                int(self.suggested[j]),
                int(self._found[j]),
                self._confusions(together[[i]], often),
            )
            for i, j in enumerate(worst.tolist())
        )

    def _confusions(self, row: csr_array, often: NDArray[np.int64]) -> tuple[Confusion, ...]:
        """The commonest labels of a row; of equally common ones, those that are rarer elsewhere."""
        order = np.lexsort((row.indices, often[row.indices], -row.data))[:_CONFUSIONS]
        return tuple(Confusion(self._labels[row.indices[i]], int(row.data[i])) for i in order)


def _examples(
    hits: Hits, ranking: Ranking, corpus: Corpus, missed: csr_array, k: int
) -> tuple[Example, ...]:
    """Documents with a missed label, the surest wrong suggestion first, each label of them once."""
    predicted, correct = hits.first(k)
    wrong = ~correct & (predicted >= 0)
    documents = np.flatnonzero(wrong.any(axis=1) & (np.diff(missed.indptr) > 0))
    place = wrong[documents].argmax(axis=1)  # scores never increase along a row
    sureness = ranking.scores[documents, place]
    order = np.argsort(-sureness, kind="stable")
    _, first = np.unique(predicted[documents, place][order], return_index=True)
    chosen = documents[order][np.sort(first)[:_EXAMPLES]]
    return tuple(
        Example(
            corpus.ids[i],
            shortened(corpus.texts[i], _TEXT),
            tuple(
                Suggestion(corpus.labels[j], float(ranking.scores[i, r]), bool(correct[i, r]))
                for r, j in enumerate(predicted[i].tolist())
                if j >= 0
            ),
            tuple(corpus.labels[j] for j in missed[[i]].indices),
        )
        for i in chosen.tolist()
    )


def _pairs(
    predicted: NDArray[np.integer], which: NDArray[np.bool_], shape: tuple[int, int]
) -> csr_array:
    """1 for every document and label of these predictions."""
    documents, _ = np.nonzero(which)
    return csr_array((np.ones(len(documents)), (documents, predicted[which])), shape)


def _per_label(pairs: csr_array) -> NDArray[np.int64]:
    return np.bincount(pairs.indices, minlength=pairs.shape[1]).astype(np.int64)


def _named(confusions: tuple[Confusion, ...]) -> str:
    return ", ".join(f"{label.name} ({n})" for label, n in confusions)
