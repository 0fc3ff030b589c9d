"""Trials of settings: each is fitted on ever larger slices, and only the better half goes on.

All trials are judged on the same documents, which none is trained on. What a trial needs is in the
output folder: Optuna's journal, so that the search can be continued after a kill, and run folders,
one per slice and kind of features, so that stages which a setting does not change are kept.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from depl.core import storage
from depl.core.aside import set_aside
from depl.core.corpus import Corpus
from depl.core.errors import ConfigError, DeplError, RunError
from depl.core.executor import Executor
from depl.core.ranking import Ranking
from depl.evaluation import scores
from depl.model.classifier import Classifier
from depl.pipeline.fit import fit
from depl.run.config import Config
from depl.run.folder import Run
from depl.tuning.space import Varied

if TYPE_CHECKING:
    import optuna

_JUDGED = 1_000  # documents at most
_FEWEST = 100  # documents without which a search is not worth its time
_SLICES = (4, 2, 1)  # the whole slice divided by these, one after the other
_DEPTH = 10
_STUDY, _WORK, _ABOUT = "study.log", "work", "search.json"


@dataclass(frozen=True)
class Trial:
    """What came of a trial.

    ``settings`` are the varied ones as texts; ``score`` is in per cent; ``documents`` says how many
    it was fitted on last: fewer than others if it was stopped early.
    """

    number: int
    settings: dict[str, str]
    score: float
    documents: int
    stopped: bool
    seconds: float


class Search:
    """A search for better settings.

    Parameters
    ----------
    corpus : Corpus
        The training documents.
    out : Path
        The folder for all that the search writes.
    base : Config
        The settings that are varied.
    space : sequence of Varied
        Which of them, and how.
    documents : int
        How many documents a trial is fitted on, at most.
    measure : str
        What is maximised: a score of `depl evaluate` or the mean of several, such as "P@5+PSP@5".
    executor : Executor or None
        What does the parallel work; None: this machine.
    """

    def __init__(
        self,
        corpus: Corpus,
        out: Path,
        *,
        base: Config,
        space: Sequence[Varied],
        documents: int,
        measure: str = "P@5+PSP@5",
        executor: Executor | None = None,
    ) -> None:
        self._out = out
        self._base = base
        self._space = tuple(space)
        self._measure = measure
        self._executor = executor
        pool, judged = set_aside(corpus)
        if len(pool) + len(judged) < _FEWEST:
            raise ConfigError(
                f"There are {len(corpus)} training documents, and a search needs at least "
                f"{_FEWEST}. Take the defaults: they were chosen on several corpora."
            )
        rng = np.random.default_rng(base.seed)
        self._order = rng.permutation(len(pool))[:documents]
        self._pool = pool
        self._judged = judged.subset(rng.permutation(len(judged))[:_JUDGED])
        self.sizes = sorted({max(2, len(self._order) // part) for part in _SLICES})
        self._counts = pool.subset(self._order).label_counts
        # Settings of these sections change the SVM alone: the rest need not be fitted to judge it.
        self.svm_alone = all(x.name.startswith(("features.", "linear.")) for x in self._space)
        _refuse_unknown(measure)

    def run(
        self, trials: int, observe: Callable[[Trial], None] = lambda trial: None
    ) -> list[Trial]:
        """Make so many trials, those of earlier calls counted in; all that are there now."""
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._refuse_another()
        study = self._study()
        while (done := len(self._done(study))) < trials:
            if not done and not study.trials:
                self._begin_with_own(study)
            trial = study.ask()
            observe(self._tried(study, trial))
        shutil.rmtree(self._out / _WORK, ignore_errors=True)
        return self._done(study)

    def config(self, trial: Trial) -> Config:
        """The settings of a trial."""
        return self._base.changed([f"{name}={value}" for name, value in trial.settings.items()])

    def _tried(self, study: optuna.Study, trial: optuna.Trial) -> Trial:
        """Fit on one slice after the other as long as the trial is among the better ones."""
        from optuna.trial import TrialState

        start = time.perf_counter()
        settings = {varied.name: varied.suggest(trial) for varied in self._space}
        config = self._base.changed([f"{name}={value}" for name, value in settings.items()])
        trial.set_user_attr("settings", settings)
        score, size = 0.0, 0
        for step, size in enumerate(self.sizes):
            score = self._score(config, size)
            trial.set_user_attr("documents", size)
            trial.set_user_attr("seconds", time.perf_counter() - start)
            trial.report(score, 2**step)
            last = size == self.sizes[-1]
            # The first, with the settings as they are, is what others are compared with.
            if not last and trial.number and trial.should_prune():
                study.tell(trial, state=TrialState.PRUNED)
                break
        else:
            study.tell(trial, score)
        return self._as_trial(study.trials[trial.number])

    def _score(self, config: Config, size: int) -> float:
        features = storage.fingerprint(config.section("features"))[:12]
        folder = self._out / _WORK / f"{size}-{features}"
        corpus = self._pool.subset(self._order[:size])
        until = "linear" if self.svm_alone else None
        run = fit(corpus, folder, config, until=until, executor=self._executor)
        ranking = self._ranked(run)
        report = scores.evaluate(
            ranking, self._judged, train_counts=self._counts, n_train=len(self._order)
        )
        return float(np.mean([report.scores[name] for name in self._measure.split("+")]))

    def _ranked(self, run: Run) -> Ranking:
        if not self.svm_alone:
            return Classifier.load(run.path).predict(self._judged.texts, _DEPTH)
        X = run.features().transform(self._judged.texts)
        return run.svm().rank(X, _DEPTH, self._executor)

    # The study

    def _study(self) -> optuna.Study:
        import optuna
        from optuna.storages.journal import JournalFileBackend

        storage = optuna.storages.JournalStorage(JournalFileBackend(str(self._out / _STUDY)))
        study = optuna.create_study(
            study_name="depl",
            storage=storage,
            direction="maximize",
            load_if_exists=True,
            pruner=optuna.pruners.SuccessiveHalvingPruner(
                min_resource=1, reduction_factor=2, min_early_stopping_rate=0
            ),
        )
        # Otherwise a search that is continued would propose the same once more.
        study.sampler = optuna.samplers.TPESampler(seed=self._base.seed + len(study.trials))
        for trial in study.get_trials(states=[optuna.trial.TrialState.RUNNING]):
            # A kill ended it; it is tried again.
            study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
            study.enqueue_trial(trial.params)
        return study

    def _begin_with_own(self, study: optuna.Study) -> None:
        """Try the settings as they are before any other."""
        own = {varied.name: varied.own(self._base) for varied in self._space}
        if None not in own.values():
            study.enqueue_trial(own)

    def _done(self, study: optuna.Study) -> list[Trial]:
        import optuna

        states = [optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED]
        return [self._as_trial(trial) for trial in study.get_trials(states=states)]

    def _as_trial(self, found: optuna.trial.FrozenTrial) -> Trial:
        about: dict[str, Any] = found.user_attrs
        stopped = found.value is None or about["documents"] < self.sizes[-1]
        score = found.intermediate_values[max(found.intermediate_values)]
        return Trial(
            found.number, about["settings"], score, about["documents"], stopped, about["seconds"]
        )

    def _refuse_another(self) -> None:
        """Refuse a folder with another search: its trials cannot be compared with these."""
        about = storage.plain(
            {
                "documents": storage.corpus_fingerprint(self._pool.subset(self._order)),
                "judged": storage.corpus_fingerprint(self._judged),
                "config": self._base.to_dict(),
                "space": [[x.name, x.values, x.low, x.high] for x in self._space],
                "measure": self._measure,
            }
        )
        path = self._out / _ABOUT
        if path.exists():
            if storage.read_json(path) != about:
                raise RunError(
                    f"{self._out} holds a search with other documents, settings or values. Choose "
                    f"another --out, or delete the folder."
                )
            return
        if self._out.exists() and (not self._out.is_dir() or any(self._out.iterdir())):
            raise RunError(f"{self._out} holds other files. Choose a new folder with --out.")
        storage.write_json(path, about)


def _refuse_unknown(measure: str) -> None:
    known = [
        f"{name}@{k}" for name in ("P", "PSP", "nDCG", "R", "RP", "macroF1") for k in (1, 3, 5)
    ]
    for name in measure.split("+"):
        if name not in known:
            raise DeplError(
                f"--measure takes one of {', '.join(known)}, or several with + between them, whose "
                f"mean counts; got {measure!r:.100}."
            )
