"""How good a ranking is: the field's metrics, each with its formula.

Every function takes a ``Hits``, which compares the predicted labels with the true ones once, and
gives a fraction between 0 and 1. The notation:

- ``y_i``: the set of true labels of document i, out of n documents and L labels;
- ``hit(i, r)``: 1 when the label at place r (from 1) of document i is in ``y_i``, else 0;
- ``found(i, k) = sum_{r <= k} hit(i, r)``.

Conventions that hold for all of them: an empty place (-1) is never a hit; a document without labels
counts in every mean over documents, with 0; 0 / 0 is 0, so nothing is ever NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.errors import ConfigError, DeplError
from depl.core.indicator import among, true_pairs

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Hits:
    """Which predicted labels are correct, computed once for all metrics.

    Parameters
    ----------
    predicted : array of shape (n, k)
        Label positions, best first; -1 where there is none.
    correct : array of shape (n, k), bool
        Whether that document carries that label.
    documents, labels : arrays of shape (n_pairs,)
        The true (document, label) pairs, each once, by document and then by label.
    sizes : array of shape (n,)
        How many labels each document carries, ``|y_i|``.
    support : array of shape (L,)
        How many documents carry each label.

    Examples
    --------
    >>> Y = csr_array([[1, 0, 1], [0, 1, 0]])
    >>> hits = Hits.of(np.array([[0, 1], [1, -1]]), Y)
    >>> hits.correct.tolist()
    [[True, False], [True, False]]
    """

    predicted: NDArray[np.integer]
    correct: NDArray[np.bool_]
    documents: NDArray[np.int64]
    labels: NDArray[np.int64]
    sizes: NDArray[np.int64]
    support: NDArray[np.int64]

    @classmethod
    def of(cls, predicted: NDArray[np.integer], Y: csr_array) -> Hits:
        """Compare the indices of a ``Ranking`` with the labels that documents carry.

        Parameters
        ----------
        predicted : array of shape (n, k)
            Label positions, best first, each at most once in a row; -1 is padding.
        Y : csr_array of shape (n, L)
            Non-zero where a document carries a label.
        """
        n, n_labels = Y.shape
        _check_predictions(predicted, n, n_labels)
        pairs = true_pairs(Y)
        asked = np.arange(n, dtype=np.int64)[:, None] * n_labels + predicted
        correct = among(pairs, asked) & (predicted >= 0)
        documents, labels = np.divmod(pairs, max(n_labels, 1))
        sizes = np.bincount(documents, minlength=n)
        support = np.bincount(labels, minlength=n_labels)
        return cls(predicted, correct, documents, labels, sizes, support)

    @property
    def n_labels(self) -> int:
        """How many labels there are, L."""
        return len(self.support)

    def first(self, k: int) -> tuple[NDArray[np.integer], NDArray[np.bool_]]:
        """The first k columns of ``predicted`` and ``correct``."""
        width = self.predicted.shape[1]
        if not 1 <= k <= width:
            raise DeplError(
                f"A metric at k = {k} needs k between 1 and {width}, the number of labels ranked "
                f"for each document. Choose another k, or rank at least {k} labels."
            )
        return self.predicted[:, :k], self.correct[:, :k]

    def found(self, k: int) -> NDArray[np.int64]:
        """How many of each document's first k labels are correct."""
        return np.asarray(self.first(k)[1].sum(axis=1))


def precision_at_k(hits: Hits, k: int) -> float:
    """Share of correct labels among the first k.

    ``P@k = 1/n sum_i found(i, k) / k``. The divisor is always k, even where a document carries
    fewer than k labels or the ranking holds fewer.
    """
    return _mean(hits.found(k) / k)


def recall_at_k(hits: Hits, k: int) -> float:
    """Share of a document's labels that are among the first k.

    ``R@k = 1/n sum_i found(i, k) / |y_i|``.
    """
    return _mean(ratio(hits.found(k), hits.sizes))


def r_precision_at_k(hits: Hits, k: int) -> float:
    """Share of correct labels among the first k, out of as many as can be correct.

    ``RP@k = 1/n sum_i found(i, k) / min(k, |y_i|)``.
    """
    return _mean(ratio(hits.found(k), np.minimum(k, hits.sizes)))


def ndcg_at_k(hits: Hits, k: int) -> float:
    """Normalised discounted cumulative gain: correct labels count more the higher they are ranked.

    ``nDCG@k = 1/n sum_i DCG(i) / best(i)`` with ``DCG(i) = sum_{r <= k} hit(i, r) / log2(r + 1)``
    and ``best(i) = sum_{r <= min(k, |y_i|)} 1 / log2(r + 1)``, the gain of a perfect ranking.
    """
    discount = 1.0 / np.log2(np.arange(2, k + 2))
    gain = hits.first(k)[1] @ discount
    best = np.concatenate([[0.0], np.cumsum(discount)])
    return _mean(ratio(gain, best[np.minimum(k, hits.sizes)]))


def inverse_propensities(
    train_counts: NDArray[np.integer], n_train: int, A: float = 0.55, B: float = 1.5
) -> Floats:
    """The weight of a correct label in PSP@k: the rarer the label, the larger.

    ``1 / p_l = 1 + C (N_l + B)^-A`` with ``C = (ln N - 1) (B + 1)^A`` (Jain et al. 2016), where N
    is the number of *training* documents and N_l how many of them carry label l. For N <= 2 the
    formula's C would be negative; it is taken as 0, which gives all labels the same weight.

    Parameters
    ----------
    train_counts : array of shape (L,)
        N_l of each label.
    n_train : int
        N.
    A, B : float
        0.55 and 1.5 unless the data set says otherwise: 0.5 and 0.4 for WikiLSHTC-325K and
        Wikipedia-500K, 0.6 and 2.6 for Amazon-670K, Amazon-3M and the LF-Amazon sets.

    Examples
    --------
    >>> inverse_propensities(np.array([0, 10, 1000]), n_train=10_000).round(2).tolist()
    [11.87, 4.55, 1.3]
    """
    if n_train < 1 or B <= 0:
        raise ConfigError(
            f"Propensities need at least one training document and B > 0; "
            f"got n_train = {n_train} and B = {B}."
        )
    C = max(np.log(n_train) - 1.0, 0.0) * (B + 1.0) ** A
    return np.asarray(1.0 + C * (np.asarray(train_counts, np.float64) + B) ** -A)


def psp_at_k(hits: Hits, k: int, inverse_propensity: Floats) -> float:
    """Propensity-scored precision: the weight found, out of the most that could be found.

    ``PSP@k = (1/n sum_i got(i) / k) / (1/n sum_i best(i) / k)`` with
    ``got(i) = sum_{r <= k} hit(i, r) / p_{l(i, r)}`` and ``best(i)`` the sum of the k largest
    ``1 / p_l`` of document i's true labels: a ratio of two corpus means, not a mean of ratios.
    """
    predicted, correct = hits.first(k)
    got = inverse_propensity[predicted[correct]].sum()
    best = _most_weight(hits, k, inverse_propensity)
    return float(got / best) if best > 0 else 0.0


def _most_weight(hits: Hits, k: int, inverse_propensity: Floats) -> float:
    """The weight that the best k labels of all documents have together."""
    weights = inverse_propensity[hits.labels]
    heaviest_first = np.lexsort((-weights, hits.documents))
    start = np.cumsum(hits.sizes) - hits.sizes
    place = np.arange(len(weights)) - start[hits.documents]  # 0 for a document's heaviest label
    return float(weights[heaviest_first][place < k].sum())


def f1_at_k(hits: Hits, k: int) -> Floats:
    """F1 of each label, when a document's first k labels are what is predicted for it.

    ``F1_l = 2 tp / (2 tp + fp + fn)``, with the contingency counts of label l over all documents:
    tp where it is predicted and true, fp where predicted only, fn where true only; 0 when it is
    neither predicted nor true anywhere.
    """
    predicted, correct = hits.first(k)
    tp = np.bincount(predicted[correct], minlength=hits.n_labels)
    times_predicted = np.bincount(predicted[predicted >= 0], minlength=hits.n_labels)
    return ratio(2 * tp, times_predicted + hits.support)  # tp + fp, and tp + fn


def macro_average(values: Floats, among: NDArray[np.bool_] | None = None) -> float:
    """Mean over labels, all with the same weight: ``macroF1@k = macro_average(f1_at_k(hits, k))``.

    Parameters
    ----------
    values : array of shape (L,)
        One value per label.
    among : array of shape (L,), bool, optional
        The labels to average over: a frequency band, or those of it that occur in the split.
    """
    return _mean(values if among is None else values[among])


def pooled_recall_at_k(hits: Hits, k: int, among: NDArray[np.bool_]) -> float:
    """Of all true (document, label) pairs with a label of this group, the share in the first k.

    ``sum_i |first k of i, in y_i and in the group| / sum_i |y_i in the group|``. Pairs are pooled
    over the documents, because most documents carry no label of a rare group at all.
    """
    predicted, correct = hits.first(k)
    found = np.count_nonzero(among[predicted[correct]])
    there = int(hits.support[among].sum())
    return found / there if there else 0.0


def precision_and_psp(
    predicted: NDArray[np.integer],
    Y: csr_array,
    inverse: NDArray[np.float64],
    ks: Sequence[int],
) -> dict[str, float]:
    """P@k and PSP@k in percent, to choose by: common labels decide the one, rare ones the other.

    Parameters
    ----------
    predicted : array of shape (n, at least max(ks))
        Label positions, best first.
    Y : csr_array of shape (n, n_labels)
        The labels that the documents carry.
    inverse : array of shape (n_labels,)
        Inverse propensities.
    ks : sequence of int
        The cut-offs.
    """
    hits = Hits.of(predicted[:, : max(ks)], Y)
    scores = {f"P@{k}": 100 * precision_at_k(hits, k) for k in ks}
    return scores | {f"PSP@{k}": 100 * psp_at_k(hits, k, inverse) for k in ks}


def precision_and_psp_by_document(
    predicted: NDArray[np.integer],
    Y: csr_array,
    inverse: NDArray[np.float64],
    ks: Sequence[int],
) -> dict[str, Floats]:
    """What each document adds to ``precision_and_psp``, which is the mean of these values."""
    hits = Hits.of(predicted[:, : max(ks)], Y)
    values = {f"P@{k}": 100 * hits.found(k) / k for k in ks}
    for k in ks:
        labels, correct = hits.first(k)
        got = np.where(correct, inverse[labels], 0.0).sum(axis=1)
        best = _most_weight(hits, k, inverse)
        values[f"PSP@{k}"] = 100 * len(labels) * got / best if best > 0 else np.zeros(len(labels))
    return values


def _check_predictions(predicted: NDArray[np.integer], n: int, n_labels: int) -> None:
    """Refuse predictions that would give wrong numbers silently."""
    if predicted.ndim != 2 or len(predicted) != n:
        raise DeplError(
            f"The ranking has the shape {predicted.shape}, but needs one row for each document; "
            f"number of documents: {n}. Rank exactly the documents of the split."
        )
    if predicted.size and (predicted.max() >= n_labels or predicted.min() < -1):
        raise DeplError(
            f"The ranking names label positions {predicted.min()} to {predicted.max()}, but the "
            f"label set has {n_labels} labels. Use the label set that the ranking was made with."
        )
    ordered = np.sort(predicted, axis=1)
    twice = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    if twice.any():
        raise DeplError(
            f"The ranking lists a label more than once in {np.count_nonzero(twice)} of its rows, "
            f"the first is row {int(np.argmax(twice))}. A row may list each label only once."
        )


def ratio(numerator: NDArray[np.number], denominator: NDArray[np.number]) -> Floats:
    """Element by element, with 0 / 0 = 0."""
    out = np.zeros(len(denominator))
    np.divide(numerator, denominator, out=out, where=denominator != 0)
    return out


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else 0.0
