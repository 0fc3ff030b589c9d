"""Ranked labels for a batch of documents, which all rooms exchange.

Everything that scores labels returns a ``Ranking``; hard negatives, fusion, metrics, the command
line and the service take one. It depends on nothing but the scores: higher first, ties by label
position.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.corpus import Label, LabelSet
from depl.core.display import count, html_table
from depl.core.errors import DeplError, MissingExtraError

if TYPE_CHECKING:
    import pandas

_SHOWN = 10  # documents in a notebook
_OFFSET = 20  # in ``agreed``: the larger, the less the first ranks differ from later ones


@dataclass(frozen=True, repr=False)
class Ranking:
    """The best labels of each document.

    Parameters
    ----------
    indices : array of shape (n_documents, k), int32
        Label positions, best first; -1 where a document has fewer than k.
    scores : array of shape (n_documents, k), float32
        Their scores; -inf in the padding. They never increase along a row, except where a fusion
        favours rare labels: a rare label may precede one that is more probable.
    labels : LabelSet or None
        What the positions mean, where it is known: a model's suggestions have it.

    Examples
    --------
    >>> scores = np.array([[0.1, 0.9, 0.9], [0.3, 0.2, 0.1]])
    >>> Ranking.from_scores(scores, k=2).indices
    array([[1, 2],
           [0, 1]], dtype=int32)
    """

    indices: NDArray[np.int32]
    scores: NDArray[np.float32]
    labels: LabelSet | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.indices.ndim != 2 or self.indices.shape != self.scores.shape:
            raise ValueError(
                f"indices and scores must be two arrays of one shape (n, k); "
                f"got {self.indices.shape} and {self.scores.shape}."
            )

    @classmethod
    def empty(cls, n_documents: int, k: int) -> Ranking:
        """A ranking with no label in it, to be filled."""
        return cls(
            np.full((n_documents, k), -1, np.int32),
            np.full((n_documents, k), -np.inf, np.float32),
        )

    @classmethod
    def from_scores(cls, scores: NDArray[np.floating], k: int) -> Ranking:
        """Top k of a dense block of scores (documents x labels); -inf means "not a candidate"."""
        dense = np.asarray(scores, dtype=np.float32)
        n, n_labels = dense.shape
        out = cls.empty(n, k)
        kept = min(k, n_labels)
        if kept == 0:
            return out
        # A stable sort on the negated scores puts equal scores in label order.
        order = np.argsort(-dense, axis=1, kind="stable")[:, :kept].astype(np.int32)
        best = np.take_along_axis(dense, order, axis=1)
        order[best == -np.inf] = -1
        out.indices[:, :kept] = order
        out.scores[:, :kept] = best
        return out

    @classmethod
    def from_pairs(
        cls,
        rows: NDArray[np.integer],
        labels: NDArray[np.integer],
        scores: NDArray[np.floating],
        n_documents: int,
        k: int,
        order: NDArray[np.floating] | None = None,
    ) -> Ranking:
        """Top k of scored (document, label) pairs, each given once.

        By their scores, or by what ``order`` says.

        Examples
        --------
        >>> rows, labels, scores = np.array([1, 1]), np.array([4, 2]), np.array([0.5, 0.5])
        >>> Ranking.from_pairs(rows, labels, scores, n_documents=2, k=2).indices
        array([[-1, -1],
               [ 2,  4]], dtype=int32)
        """
        out = cls.empty(n_documents, k)
        best_first = np.lexsort((labels, -(scores if order is None else order), rows))
        rows, labels, scores = rows[best_first], labels[best_first], scores[best_first]
        starts = np.append(0, np.cumsum(np.bincount(rows, minlength=n_documents)))
        place = np.arange(len(rows)) - starts[rows]
        kept = place < k
        out.indices[rows[kept], place[kept]] = labels[kept]
        out.scores[rows[kept], place[kept]] = scores[kept]
        return out

    @classmethod
    def concatenate(cls, parts: Sequence[Ranking]) -> Ranking:
        """Stack the rankings of consecutive batches of documents."""
        return cls(
            np.concatenate([part.indices for part in parts]),
            np.concatenate([part.scores for part in parts]),
            parts[0].labels,
        )

    def __len__(self) -> int:
        return int(self.indices.shape[0])

    def __repr__(self) -> str:
        first = ", ".join(f"{name} {score:.2f}" for name, score in self._named(0)[:3])
        first = f"; first: {first}" if first else ""
        labels = count(self.k, "label")
        return f"Ranking({count(len(self), 'document')}, {labels} each{first})"

    def _repr_html_(self) -> str:
        rows = [
            (i, ", ".join(f"{name} {score:.2f}" for name, score in self._named(i)))
            for i in range(min(_SHOWN, len(self)))
        ]
        return html_table(repr(self), ("document", "labels"), rows)

    def _named(self, row: int) -> list[tuple[str, float]]:
        """A document's labels, by name where they are known, and their scores."""
        if row >= len(self):
            return []
        pairs = zip(self.indices[row].tolist(), self.scores[row].tolist(), strict=True)
        known = self.labels
        return [(str(j) if known is None else known[j].name, s) for j, s in pairs if j >= 0]

    @property
    def k(self) -> int:
        """How many labels a row has room for."""
        return int(self.indices.shape[1])

    def top(self, k: int) -> Ranking:
        """The first k columns (padded when there are fewer)."""
        if k <= self.k:
            return replace(self, indices=self.indices[:, :k], scores=self.scores[:, :k])
        out = replace(Ranking.empty(len(self), k), labels=self.labels)
        out.indices[:, : self.k] = self.indices
        out.scores[:, : self.k] = self.scores
        return out

    def take(self, rows: NDArray[np.integer] | slice) -> Ranking:
        """The rankings of some documents."""
        return replace(self, indices=self.indices[rows], scores=self.scores[rows])

    def keep(self, wanted: NDArray[np.bool_]) -> Ranking:
        """Only the entries where the mask (n, k) is true, moved to the front; the rest is padding.

        Examples
        --------
        >>> ranking = Ranking(np.array([[2, 0, 1]]), np.array([[0.9, 0.6, 0.5]]))
        >>> ranking.keep(ranking.indices > 0).indices.tolist()
        [[2, 1, -1]]
        """
        kept = wanted & (self.indices >= 0)
        order = np.argsort(~kept, axis=1, kind="stable")  # kept entries first, in their order
        kept = np.take_along_axis(kept, order, axis=1)
        indices = np.where(kept, np.take_along_axis(self.indices, order, axis=1), -1)
        scores = np.where(kept, np.take_along_axis(self.scores, order, axis=1), -np.inf)
        return replace(self, indices=indices.astype(np.int32), scores=scores.astype(np.float32))

    def without(self, labels: Collection[int]) -> Ranking:
        """The ranking without these labels."""
        return self.keep(~np.isin(self.indices, list(labels)))

    def without_ancestors(self, k: int) -> Ranking:
        """The k best labels of each document such that none is broader than another.

        Ask for a longer ranking than k, so that others can move up; see
        ``Hierarchy.without_ancestors``.

        Examples
        --------
        >>> labels = LabelSet([Label("1", "drink"), Label("2", "wine", broader=("1",))])
        >>> ranking = Ranking(np.array([[0, 1]]), np.array([[0.9, 0.6]]), labels)
        >>> ranking.without_ancestors(2).indices.tolist()
        [[1, -1]]
        """
        hierarchy = self._known(None).hierarchy
        wanted = np.zeros(self.indices.shape, bool)
        for row, indices in enumerate(self.indices):
            wanted[row, hierarchy.without_ancestors(indices[indices >= 0].tolist(), k)] = True
        return self.keep(wanted).top(k)

    def merged(self, other: Ranking, k: int) -> Ranking:
        """The k best of both rankings of the same documents, which share no label."""
        indices = np.concatenate([self.indices, other.indices], axis=1)
        scores = np.concatenate([self.scores, other.scores], axis=1)
        order = np.lexsort((indices, -scores))[:, :k]
        best = Ranking(np.take_along_axis(indices, order, 1), np.take_along_axis(scores, order, 1))
        return best.top(k)

    def place(self, row: int, label: int) -> tuple[float, int] | None:
        """Score and rank, from 0, of a label in a document's row; None where it is not listed."""
        found = np.flatnonzero(self.indices[row] == label)
        return (float(self.scores[row, found[0]]), int(found[0])) if len(found) else None

    def rows(self, labels: LabelSet | None = None) -> list[list[tuple[Label, float]]]:
        """Each document's labels with their scores, padding left out."""
        labels = self._known(labels)
        return [
            [(labels[int(j)], float(s)) for j, s in zip(row, scores, strict=True) if j >= 0]
            for row, scores in zip(self.indices, self.scores, strict=True)
        ]

    def to_dicts(self, labels: LabelSet | None = None) -> list[dict[str, Any]]:
        """One dict for each suggestion: document (from 0), rank (from 1), id, label, score.

        Examples
        --------
        >>> labels = LabelSet([Label("2560", "wine"), Label("17", "customs duty")])
        >>> Ranking(np.array([[1, -1]]), np.array([[0.9, -np.inf]])).to_dicts(labels)
        [{'document': 0, 'rank': 1, 'id': '17', 'label': 'customs duty', 'score': 0.9}]
        """
        return [
            {"document": i, "rank": rank, "id": label.id, "label": label.name, "score": score}
            for i, row in enumerate(self.rows(labels))
            for rank, (label, score) in enumerate(row, start=1)
        ]

    def to_pandas(self, labels: LabelSet | None = None) -> pandas.DataFrame:
        """A table with a row for each suggestion, and the columns of ``to_dicts``."""
        try:
            import pandas
        except ImportError:
            raise MissingExtraError("pandas", "pandas", "to_pandas()") from None
        columns = ["document", "rank", "id", "label", "score"]
        return pandas.DataFrame(self.to_dicts(labels), columns=columns)

    def to_csr(self, n_labels: int | None = None) -> csr_array:
        """The scores as a sparse matrix, documents x labels; what is not listed is 0.

        Examples
        --------
        >>> Ranking(np.array([[2, 0], [1, -1]]), np.array([[0.9, 0.5], [0.4, -np.inf]])).to_csr(
        ...     3
        ... ).toarray().tolist()
        [[0.5, 0.0, 0.9], [0.0, 0.4, 0.0]]
        """
        n = len(self._known(None)) if n_labels is None else n_labels
        listed = self.indices >= 0
        indptr = np.concatenate([[0], np.cumsum(listed.sum(axis=1))])
        matrix = csr_array(
            (self.scores[listed], self.indices[listed], indptr), shape=(len(self), n)
        )
        matrix.sort_indices()
        return matrix

    def _known(self, labels: LabelSet | None) -> LabelSet:
        labels = self.labels if labels is None else labels
        if labels is None:
            raise DeplError(
                "This ranking has positions of labels and does not know their names. Give the "
                "labels, such as model.labels."
            )
        return labels


def agreed(rankings: Iterable[Ranking], k: int) -> Ranking:
    """The k labels of each document that several rankings put first together.

    By the sum of 1 / (20 + rank) (reciprocal rank fusion), which needs neither training nor
    comparable scores.

    Examples
    --------
    >>> one = Ranking.from_scores(np.array([[0.9, 0.8, 0.1]]), k=3)
    >>> other = Ranking.from_scores(np.array([[0.2, 0.7, 0.3]]), k=2)
    >>> agreed([one, other], k=2).indices
    array([[1, 2]], dtype=int32)
    """
    parts = list(rankings)
    indices = np.concatenate([x.indices for x in parts], axis=1)
    shares = np.concatenate([1 / (_OFFSET + np.arange(x.k)) for x in parts])
    rows, columns = np.nonzero(indices >= 0)
    shape = (len(indices), int(indices.max(initial=-1)) + 1)
    sums = csr_array((shares[columns], (rows, indices[rows, columns])), shape=shape)
    rows = np.repeat(np.arange(len(indices)), np.diff(sums.indptr))
    return Ranking.from_pairs(rows, sums.indices, sums.data, len(indices), k)
