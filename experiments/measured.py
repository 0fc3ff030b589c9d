"""What was measured: the files of experiments/results, read, averaged over seeds, and written."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from paper import CORPORA
from scipy.sparse import csr_array, diags_array

from depl.core.corpus import Corpus
from depl.core.errors import DeplError
from depl.core.locks import locked
from depl.core.ranking import Ranking
from depl.core.storage import write_text
from depl.core.tensors import read_ranking, write_ranking
from depl.evaluation.metrics import inverse_propensities, precision_and_psp
from depl.evaluation.scores import Report

PARTS = ("keywords", "theory", "statistics", "gradients", "significance")  # beside systems
RESULTS = Path(__file__).parent / "results"
_THEORY = "-theory"  # what the name of a file of that kind ends in
TAIL, TAIL_ALL, UNSEEN = "tail", "tail, all labels", "unseen, R@10"
KS = (1, 3, 5)
Seed = int | None  # None: a system without one


class Score(NamedTuple):
    """A mean over seeds and the sample standard deviation; no spread for a single seed."""

    mean: float
    spread: float | None

    @classmethod
    def of(cls, values: list[float]) -> Score:
        """Average the values of several seeds.

        Examples
        --------
        >>> Score.of([1.0, 2.0, 3.0])
        Score(mean=2.0, spread=1.0)
        >>> Score.of([4.0])
        Score(mean=4.0, spread=None)
        """
        spread = statistics.stdev(values) if len(values) > 1 else None
        return cls(statistics.fmean(values), spread)


@dataclass(frozen=True)
class Measured:
    """All that was measured on one corpus.

    Parameters
    ----------
    corpus : str
        The name of its folder.
    reports : mapping of str to mapping
        By system and seed.
    entries : mapping of str to mapping
        What else a file says of a system, by system and seed: its command, seconds, memory,
        hardware, note.
    keywords : mapping or None
        What ``keyword_table.py`` wrote, if it did.
    theory : mapping or None
        What ``depl theory --json`` printed, if it was kept.
    statistics : mapping or None
        What ``corpora.py`` counted, if it did.
    gradients, significance : mapping or None
        What ``gradients.py`` and ``significance.py`` measured, if they did.
    """

    corpus: str
    reports: dict[str, dict[Seed, Report]] = field(default_factory=dict)
    entries: dict[str, dict[Seed, Mapping[str, Any]]] = field(default_factory=dict)
    keywords: Mapping[str, Any] | None = None
    theory: Mapping[str, Any] | None = None
    statistics: Mapping[str, Any] | None = None
    gradients: Mapping[str, Any] | None = None
    significance: Mapping[str, Any] | None = None

    @property
    def title(self) -> str:
        """What readers know the corpus by."""
        return CORPORA.get(self.corpus, self.corpus)

    @property
    def seeds(self) -> list[int]:
        """All seeds that any system was measured with."""
        return sorted({s for found in self.reports.values() for s in found if s is not None})

    @property
    def k(self) -> int:
        """The cut-off of macro-F1: the largest of the reports."""
        return max(report.k for found in self.reports.values() for report in found.values())

    def score(self, system: str, metric: str) -> Score:
        """The mean of a system's seeds; the metric is one of a report's, or of this module's."""
        return Score.of([value(report, metric) for report in self.reports[system].values()])

    def note(self, system: str) -> str:
        """What is less than a system's own settings, such as fewer epochs; mostly nothing."""
        return next((x["note"] for x in self.entries[system].values() if "note" in x), "")

    def difference(self, system: str, other: str, metric: str) -> Score | None:
        """System minus other, seed by seed; None where they have no seed in common."""
        ours, theirs = self.reports.get(system, {}), self.reports.get(other, {})
        both = [seed for seed in ours if seed in theirs]
        pairs = [(value(ours[s], metric), value(theirs[s], metric)) for s in both]
        return Score.of([a - b for a, b in pairs]) if pairs else None


def value(report: Report, metric: str) -> float:
    """One number of a report; "tail" is macro-F1 of the labels with 1 to 9 training documents."""
    if metric == TAIL:  # those that occur in the split
        return report.bands["1-9"][f"macroF1@{report.k}_in_test"]
    if metric == TAIL_ALL:
        return report.bands["1-9"][f"macroF1@{report.k}"]
    return report.bands["0"]["R@10"] if metric == UNSEEN else report.scores[metric]


def read_results(folder: Path = RESULTS) -> dict[str, Measured]:
    """Every corpus that has a file in the folder, by name."""
    corpora: dict[str, Measured] = {}
    for path in sorted(folder.glob("*.json")):
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            if path.stem.endswith(_THEORY):  # as depl theory prints it, which names no corpus
                found = {"corpus": path.stem.removesuffix(_THEORY), "theory": found}
            corpus = found["corpus"]
            known = corpora.get(corpus, Measured(corpus))
            for part in PARTS:
                if part in found:
                    known = replace(known, **{part: found[part]})
            for system, entry in found.get("systems", {}).items():
                report = Report.from_json(entry["report"], system)
                known.reports.setdefault(system, {})[found["seed"]] = report
                others = {key: x for key, x in entry.items() if key != "report"}
                others.setdefault("hardware", found.get("hardware", ""))
                known.entries.setdefault(system, {})[found["seed"]] = others
        except (ValueError, KeyError, TypeError) as error:
            raise DeplError(
                f"{path} is no file of results ({type(error).__name__}: {error}). Measure again "
                f"with the command that makes it, or delete it."
            ) from error
        corpora[corpus] = known
    return dict(sorted(corpora.items()))


def scores_apart(
    ranking: Ranking,
    documents: Corpus,
    train_counts: NDArray[np.integer],
    n_train: int,
    again: NDArray[np.bool_],
) -> dict[str, dict[str, float]]:
    """P@k and PSP@k on rare labels alone, and without the documents that repeat training ones."""
    fresh = np.flatnonzero(~again)
    inverse = inverse_propensities(train_counts, n_train)
    best = ranking.top(max(KS)).indices[fresh]
    scores = precision_and_psp(best, documents.Y[fresh], inverse, KS)
    return {
        "tail": tail_scores(ranking, documents, train_counts, n_train),
        "fresh": {"documents": len(fresh)} | {key: round(x, 4) for key, x in scores.items()},
    }


def tail_scores(
    ranking: Ranking, documents: Corpus, train_counts: NDArray[np.integer], n_train: int
) -> dict[str, float]:
    """P@k and PSP@k as if there were no labels but those with 1 to 9 training documents.

    Documents without such a label are left out; the ranking should be deep enough to hold k.
    """
    rare = (train_counts > 0) & (train_counts < 10)
    Y = documents.Y @ diags_array(rare.astype(np.float32))
    Y.eliminate_zeros()
    rows = np.flatnonzero(np.diff(Y.indptr))
    kept = ranking.keep(rare[ranking.indices]).top(max(KS)).indices[rows]
    inverse = inverse_propensities(train_counts, n_train)
    scores = precision_and_psp(kept, csr_array(Y[rows]), inverse, KS)
    return {"documents": len(rows)} | {key: round(x, 4) for key, x in scores.items()}


def add_system(path: Path, facts: Mapping[str, Any], system: str, entry: Mapping[str, Any]) -> None:
    """Put one system into a file of results, in which other commands may be writing, too."""
    with locked(
        path.parent / ".lock",
        busy=f"Another command is writing into {path.parent}",
        remedy="Give the command again when it is done.",
        wait=60.0,
    ):
        known = _read(path)
        versions = known.get("versions", {}) | facts.get("versions", {})
        systems = known.get("systems", {}) | {system: entry}
        write_result(path, {**facts, "versions": versions, "systems": systems})


def read_systems(path: Path) -> dict[str, Any]:
    """The systems in a file of results; none if there is no such file."""
    return dict(_read(path).get("systems", {}))


def _read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def write_result(path: Path, result: Mapping[str, Any]) -> None:
    """Write a file of results: readable JSON, each system on a line of its own."""
    head = json.dumps({k: v for k, v in result.items() if k != "systems"}, indent=1)
    lines = [f"  {json.dumps(name)}: {json.dumps(x)}" for name, x in result["systems"].items()]
    systems = ",\n".join(lines)
    write_text(path, f'{head[:-2]},\n "systems": {{\n{systems}\n }}\n}}\n')


def keep_ranking(folder: Path, system: str, seed: Seed, ranking: Ranking) -> None:
    """Keep what a system says of the dev split, for ``significance.py``."""
    path = _ranking_path(folder, system, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_ranking(path, ranking)


def kept_ranking(folder: Path, system: str, seed: Seed) -> Ranking:
    """What ``keep_ranking`` kept, with this seed, or of a system without one."""
    for path in (_ranking_path(folder, system, seed), _ranking_path(folder, system, None)):
        if path.exists():
            return read_ranking(path)
    raise DeplError(
        f"There is no ranking of {system!r} in {folder / 'rankings'}. Make it with "
        f"`python experiments/compare.py`, as its line in experiments/results says, and --redo."
    )


def _ranking_path(folder: Path, system: str, seed: Seed) -> Path:
    name = "".join(c if c.isalnum() else "-" for c in system)
    return folder / "rankings" / f"{name}{'' if seed is None else f'-seed{seed}'}.safetensors"


def in_a_line(report: Report) -> str:
    """The scores that tell most, for the terminal."""
    metrics = ("P@1", "P@5", "PSP@1", "PSP@5", TAIL)
    return "  ".join(f"{metric} {value(report, metric):.2f}" for metric in metrics)


def origin(corpus: str, *libraries: str, seed: Seed = None) -> dict[str, Any]:
    """What every file of results begins with: corpus, split, seed, machine and versions."""
    return {
        "corpus": corpus,
        "split": "dev",
        "seed": seed,
        "hardware": f"{_processor()}, {os.cpu_count()} cores",
        "versions": {name: _version(name) for name in ("depl", *libraries)},
    }


def _processor() -> str:
    """The GPU where there is one, else the kind of machine."""
    try:
        import torch
    except ImportError:
        return platform.machine()
    there = torch.cuda.is_available()
    return str(torch.cuda.get_device_name(0)) if there else platform.machine()


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "checkout"
