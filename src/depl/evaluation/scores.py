"""The scores of a ranking on a split: overall, by frequency band, and from rare to common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from depl.core.corpus import Corpus, LabelSet
from depl.core.display import html_table
from depl.core.errors import DeplError
from depl.core.ranking import Ranking
from depl.evaluation import metrics
from depl.evaluation.bands import BANDS, band_of
from depl.evaluation.metrics import Hits
from depl.evaluation.mistakes import Mistakes, find_mistakes
from depl.evaluation.reliability import Reliability, reliability

BIN_SIZE = 100  # labels per bin, as in the paper's Figure 1


class Bin(NamedTuple):
    """Neighbouring labels in the order from rare to common.

    ``first`` and ``last`` are ranks from 1, ``mean_count`` is the mean number of training documents
    and ``macro_f1`` a percentage over all labels of the bin.
    """

    first: int
    last: int
    mean_count: float
    labels_in_test: int
    macro_f1: float


@dataclass(frozen=True, repr=False)
class Report:
    """The scores of one ranking, as percentages from 0 to 100.

    Parameters
    ----------
    name : str
        The name of the ranking in tables and figures of several.
    documents, labels : int
        The sizes of the split and of the label set.
    ks : tuple of int
        The cut-offs, ascending.
    scores : mapping
        ``"P@5"`` and so on, over all documents and labels.
    bands : mapping
        By name of the band, its label counts, macro-F1@k and recall R@k.
    bins : tuple of Bin
        Macro-F1@k at the largest k, from rare to common.
    propensity : tuple of float
        A and B of PSP@k.
    reliability : Reliability or None
        How well the probabilities of the first k labels are calibrated; None where the scores are
        not probabilities.
    mistakes : Mistakes or None
        The labels that are missed or wrongly suggested most, with their confusions, and example
        documents, among the first k; None where a report was read from JSON.
    """

    name: str
    documents: int
    labels: int
    ks: tuple[int, ...]
    scores: Mapping[str, float]
    bands: Mapping[str, Mapping[str, float]]
    bins: tuple[Bin, ...]
    propensity: tuple[float, float]
    reliability: Reliability | None = None
    mistakes: Mistakes | None = None

    @property
    def k(self) -> int:
        """The largest cut-off, which the bins and the table of bands use."""
        return self.ks[-1]

    def __repr__(self) -> str:
        scores = ", ".join(f"{name} {self.scores[name]:.1f}" for name in self._main)
        return f"Report({self.name}: {self.documents:,} documents, {scores})"

    def _repr_html_(self) -> str:
        bands = [
            (name, int(band["labels"]), *(f"{band[key]:.1f}" for key in self._of_bands))
            for name, band in self.bands.items()
        ]
        overall = [(name, f"{value:.1f}") for name, value in self.scores.items()]
        header = ("training documents of a label", "labels", *self._of_bands)
        return html_table(repr(self), ("measure", "percent"), overall) + html_table(
            "Rare and common labels", header, bands
        )

    @property
    def _main(self) -> list[str]:
        return [x for x in ("P@1", f"P@{self.k}", f"nDCG@{self.k}", "R@10") if x in self.scores]

    @property
    def _of_bands(self) -> tuple[str, ...]:
        return (f"macroF1@{self.k}", f"R@{self.k}")

    def to_json(self, *, bins: bool = False) -> dict[str, object]:
        """The object that ``depl evaluate --json`` prints, to four decimals; with bins if asked."""
        found: dict[str, object] = {
            "documents": self.documents,
            "labels": self.labels,
            **_rounded(self.scores),
            "bands": {name: _rounded(band) for name, band in self.bands.items()},
        }
        if bins:
            found["bins"] = [[round(x, 2) for x in each] for each in self.bins]
        return found

    @classmethod
    def from_json(cls, found: Mapping[str, Any], name: str = "") -> Report:
        """A report from the object of ``to_json``, which has no reliability and no propensities."""
        scores = {key: value for key, value in found.items() if "@" in key}
        return cls(
            name=name,
            documents=found["documents"],
            labels=found["labels"],
            ks=tuple(int(key[2:]) for key in scores if key.startswith("P@")),
            scores=scores,
            bands=found["bands"],
            bins=tuple(Bin(*each) for each in found.get("bins", ())),
            propensity=(0.55, 1.5),
        )


def evaluate(
    ranking: Ranking,
    corpus: Corpus,
    *,
    train_counts: NDArray[np.integer],
    n_train: int,
    ks: Sequence[int] = (1, 3, 5),
    A: float = 0.55,
    B: float = 1.5,
    name: str = "",
    probabilities: bool = False,
) -> Report:
    """Score a ranking against the labels that the documents carry.

    Parameters
    ----------
    ranking : Ranking
        One row for each document of ``corpus``, at least ``max(ks)`` labels wide.
    corpus : Corpus
        The split.
    train_counts : array of shape (n_labels,)
        How many *training* documents carry each label: for the bands and the propensities.
    n_train : int
        How many training documents there were.
    ks : sequence of int
        The cut-offs. Recall is computed at 10 as well where the ranking is wide enough.
    A, B : float
        Parameters of the propensities; see ``depl.evaluation.metrics.inverse_propensities``.
    name : str
        The name of the report in tables and figures of several.
    probabilities : bool
        Whether the scores of the ranking are probabilities. If so, the report says how well they
        are calibrated.
    """
    cuts = tuple(sorted(set(ks)))
    if not cuts or len(train_counts) != len(corpus.labels):
        raise DeplError(
            f"Evaluation needs at least one k and one training count for each of the "
            f"{len(corpus.labels)} labels; got k = {cuts} and {len(train_counts)} counts."
        )
    recall_cuts = tuple(sorted({*cuts, 10})) if ranking.k >= 10 else cuts
    hits = Hits.of(ranking.indices[:, : recall_cuts[-1]], corpus.Y)
    weights = metrics.inverse_propensities(train_counts, n_train, A, B)
    f1 = {k: metrics.f1_at_k(hits, k) for k in cuts}
    fractions = {
        **{f"P@{k}": metrics.precision_at_k(hits, k) for k in cuts},
        **{f"PSP@{k}": metrics.psp_at_k(hits, k, weights) for k in cuts},
        **{f"nDCG@{k}": metrics.ndcg_at_k(hits, k) for k in cuts},
        **{f"R@{k}": metrics.recall_at_k(hits, k) for k in recall_cuts},
        **{f"RP@{k}": metrics.r_precision_at_k(hits, k) for k in cuts},
        **{f"macroF1@{k}": metrics.macro_average(f1[k]) for k in cuts},
    }
    calibration = None
    if probabilities:
        best = ranking.top(cuts[-1])
        calibration = reliability(Hits.of(best.indices, corpus.Y), best.scores)
        fractions[f"ECE@{cuts[-1]}"] = calibration.error
    band = band_of(train_counts)
    return Report(
        name=name,
        documents=len(corpus),
        labels=len(corpus.labels),
        ks=cuts,
        scores={key: 100 * value for key, value in fractions.items()},
        bands={b.name: _band(hits, f1, recall_cuts, band == i) for i, b in enumerate(BANDS)},
        bins=_bins(f1[cuts[-1]], hits.support, np.asarray(train_counts)),
        propensity=(A, B),
        reliability=calibration,
        mistakes=find_mistakes(hits, ranking, corpus, train_counts, cuts[-1]),
    )


def evaluate_known(
    ranking: Ranking,
    corpus: Corpus,
    *,
    labels: LabelSet,
    train_counts: NDArray[np.integer],
    n_train: int,
    **options: Any,  # noqa: ANN401 - those of evaluate
) -> Report:
    """Score a ranking of a run's own labels on any corpus, as ``evaluate`` does.

    A document's labels that the run does not know count as missed.
    """
    aligned, counts = aligned_with_counts(corpus, labels, train_counts)
    return evaluate(ranking, aligned, train_counts=counts, n_train=n_train, **options)


def aligned_with_counts(
    corpus: Corpus, labels: LabelSet, train_counts: NDArray[np.integer]
) -> tuple[Corpus, NDArray[np.integer]]:
    """A corpus in a run's label order, and training counts: 0 for labels the run does not know."""
    aligned = corpus.aligned(labels)
    unknown = np.zeros(len(aligned.labels) - len(labels), np.int64)
    return aligned, np.concatenate([train_counts, unknown])


def popularity(train_counts: NDArray[np.integer], n_documents: int, k: int) -> Ranking:
    """The k most frequent labels in training, the same for every document: the simplest baseline.

    Examples
    --------
    >>> popularity(np.array([3, 9, 3]), n_documents=2, k=2).indices.tolist()
    [[1, 0], [1, 0]]
    """
    row = Ranking.from_scores(np.asarray(train_counts, np.float32)[None, :], k)
    return Ranking(
        np.repeat(row.indices, n_documents, axis=0), np.repeat(row.scores, n_documents, axis=0)
    )


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {key: round(v, 4) if isinstance(v, float) else v for key, v in values.items()}


def _band(
    hits: Hits,
    f1: Mapping[int, NDArray[np.float64]],
    recall_cuts: Sequence[int],
    among: NDArray[np.bool_],
) -> dict[str, float]:
    """Counts, macro-F1@k and recall of one band's labels; zeros where it is empty."""
    in_test = among & (hits.support > 0)
    band: dict[str, float] = {
        "labels": int(among.sum()),
        "labels_in_test": int(in_test.sum()),
    }
    for k, values in f1.items():
        band[f"macroF1@{k}"] = 100 * metrics.macro_average(values, among)
        band[f"macroF1@{k}_in_test"] = 100 * metrics.macro_average(values, in_test)
    for k in recall_cuts:
        band[f"R@{k}"] = 100 * metrics.pooled_recall_at_k(hits, k, among)
    return band


def _bins(
    f1: NDArray[np.float64], support: NDArray[np.int64], train_counts: NDArray[np.integer]
) -> tuple[Bin, ...]:
    """Labels from rare to common, ties by position, ``BIN_SIZE`` at a time."""
    order = np.argsort(train_counts, kind="stable")
    chunks = [order[i : i + BIN_SIZE] for i in range(0, len(order), BIN_SIZE)]
    return tuple(
        Bin(
            first=i * BIN_SIZE + 1,
            last=i * BIN_SIZE + len(chunk),
            mean_count=float(train_counts[chunk].mean()),
            labels_in_test=int(np.count_nonzero(support[chunk])),
            macro_f1=100 * float(f1[chunk].mean()),
        )
        for i, chunk in enumerate(chunks)
    )
