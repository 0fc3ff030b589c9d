"""A scikit-learn estimator that tags texts with labels: fit, predict, cross-validate, pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, Self
from weakref import finalize

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.validation import check_is_fitted

from depl.core import progress
from depl.core.corpus import Corpus
from depl.core.errors import ConfigError, DeplError
from depl.core.ranking import Ranking
from depl.core.texts import as_texts
from depl.evaluation import scores
from depl.fusion import thresholds
from depl.model.classifier import Classifier
from depl.pipeline import fit as pipeline
from depl.readers.targets import Targets, read_targets
from depl.run.config import Config

_DENSE = 200_000_000  # cells of the largest dense matrix that is made: 800 MB
_LEAST = 1e-7  # stands for the probability of a label that is not suggested at all
_CUT = 5  # score is nDCG at this cut-off


class Tagger(BaseEstimator):  # type: ignore[misc]
    """Suggest labels for texts, in the way of scikit-learn.

    To scikit-learn it is a classifier once it has been fitted on a matrix of 0 and 1. Before, it is
    a plain estimator, so that ``cross_val_score`` and ``GridSearchCV`` split lists of names into
    folds like any other y; they cannot be stratified.

    Parameters
    ----------
    recipe : str, path, mapping or Config
        The settings, as ``Config.load`` takes them: "sparse", "cpu-frozen", a TOML file.
    settings : mapping or None
        Changes to single settings, such as ``{"linear.C": 0.5}``.
    out : path or None
        The run folder; None keeps it in a temporary folder for as long as the object lives.
    overwrite : bool
        Replace a run on other documents that is in ``out``.
    separator : str or None
        What separates labels where y has strings; None: a string is one label.
    label_names : sequence of str or None
        What the columns of y mean where it is a matrix; by default a DataFrame's own columns.
    threshold : float or None
        ``predict`` takes labels with at least this probability; None: the threshold with the best
        F1 on documents that were held out during ``fit``.
    k : int or None
        ``predict`` takes the k best labels of every document instead, whatever their probability.

    Attributes
    ----------
    classes_ : array of str
        The labels, in the order of the columns of all matrices.
    model_ : Classifier
        The fitted run: ``model_.explain(text, label)`` says why.

    Notes
    -----
    It passes the checks of scikit-learn's ``parametrize_with_checks``, whose rows of numbers are
    written as words for them, but for two kinds: ``check_estimator_sparse_*``, as a sparse matrix
    is no list of texts, and ``check_fit2d_1sample``, as a single document is refused with a
    ``DeplError``. Checks of how numbers in X are validated are not run: it holds texts.

    Examples
    --------
    >>> texts = ["red wine and white wine", "wine from grapes", "olive oil", "oil and olives"] * 5
    >>> tagger = Tagger(threshold=0.5).fit(texts, [["wine"], ["wine"], ["oil"], ["oil"]] * 5)
    >>> tagger.predict(["grapes for wine", "olives"]).toarray().tolist()
    [[0, 1], [1, 0]]
    >>> tagger.classes_.tolist()
    ['oil', 'wine']
    """

    def __init__(
        self,
        recipe: str | Path | Mapping[str, Any] | Config = "sparse",
        *,
        settings: Mapping[str, Any] | None = None,
        out: str | Path | None = None,
        overwrite: bool = False,
        separator: str | None = None,
        label_names: Sequence[str] | None = None,
        threshold: float | None = None,
        k: int | None = None,
    ) -> None:
        self.recipe = recipe
        self.settings = settings
        self.out = out
        self.overwrite = overwrite
        self.separator = separator
        self.label_names = label_names
        self.threshold = threshold
        self.k = k

    def fit(self, X: Any, y: Any) -> Self:  # noqa: ANN401 - whatever holds texts and labels
        """Train on texts and their labels.

        Parameters
        ----------
        X : sequence of str
            The texts: a list, an array, a Series, a DataFrame of one column.
        y : sequence or matrix
            For each text a list or set of label names, or a string; or a matrix of 0 and 1, dense
            or sparse. Names that differ only in white space, case or Unicode form are one label.
        """
        config = self._config()
        corpus, targets = self._corpus(X, y)
        path = self._temporary() if self.out is None else Path(self.out)
        with progress.shown_in_notebook():
            run = pipeline.fit(corpus, path, config, overwrite=self.overwrite)
        self._keep(run.path)
        self._of_matrix = targets.matrix
        return self

    def predict(self, X: Any) -> csr_array:  # noqa: ANN401
        """Which labels each text gets: a sparse matrix of 0 and 1, documents x labels."""
        texts = self._texts(X)
        if self.k is not None:
            return self._marked(self.suggest(texts, self.k))
        at_least = self.threshold
        if at_least is None:
            found = self.model_.thresholds
            at_least = found.best_f1 if found is not None else None
        if at_least is None:
            at_least = 0.5  # too few documents were held out to choose one
        return self._marked(thresholds.keep(self.suggest(texts, self._most), at_least))

    def suggest(self, X: Any, k: int = 5) -> Ranking:  # noqa: ANN401
        """The k best labels of each text with their probabilities; small for any number of labels.

        ``suggest(X, k).to_csr(len(classes_))`` is the same as a sparse matrix.
        """
        texts = self._texts(X)
        if k < 1:
            raise ConfigError(f"k must be at least 1; got {k}.")
        return self.model_.predict(texts, k=k)

    def predict_proba(self, X: Any) -> NDArray[np.float32]:  # noqa: ANN401
        """The probability of every label, documents x labels; 0 for those that no part finds.

        A dense matrix of 100,000 documents and 10,000 labels would take 4 GB: matrices of more
        than 200 million cells are refused. ``suggest`` has what is not 0.
        """
        texts = self._texts(X)
        cells = len(texts) * len(self.classes_)
        if cells > _DENSE:
            raise DeplError(
                f"A dense matrix of {len(texts):,} documents and {len(self.classes_):,} labels "
                f"would take {4 * cells / 1e9:.1f} GB. Take suggest(X, k), which has the k best "
                f"labels of each document, or suggest(X, k).to_csr(len(tagger.classes_))."
            )
        dense: NDArray[np.float32]
        dense = self.suggest(texts, self._most).to_csr(len(self.classes_)).toarray()
        return dense

    def decision_function(self, X: Any) -> NDArray[np.float32]:  # noqa: ANN401
        """The log-odds of every label, documents x labels; a dense matrix like ``predict_proba``.

        Labels that no part finds have those of a probability of one in ten million.
        """
        p = np.clip(self.predict_proba(X).astype(np.float64), _LEAST, 1 - _LEAST)
        return np.log(p / (1 - p)).astype(np.float32)

    def score(self, X: Any, y: Any) -> float:  # noqa: ANN401
        """nDCG@5, from 0 to 1: how well the first five suggestions are chosen and ordered.

        Not the share of documents whose labels are all right and no other, as in scikit-learn's
        classifiers: with thousands of labels that is close to 0 for every method. Labels of y that
        the tagger does not know count as missed. For other measures, compare ``predict(X)`` with
        scikit-learn's metrics.
        """
        check_is_fitted(self)
        corpus, _ = self._corpus(X, y, known=self.model_.labels.ids)
        report = scores.evaluate_known(
            self.suggest(corpus.texts, _CUT),
            corpus,
            labels=self.model_.labels,
            train_counts=self.model_.train_counts,
            n_train=self.model_.n_train,
            ks=(_CUT,),
        )
        return report.scores[f"nDCG@{_CUT}"] / 100

    @property
    def _most(self) -> int:
        """As many labels as can be suggested at all."""
        fusion = self.model_.fusion
        found = 0 if fusion is None else fusion.depth_ * len(fusion.parts_)
        return min(len(self.classes_), found or len(self.classes_))

    def _config(self) -> Config:
        # What JSON makes of a value is TOML, too.
        changes = [f"{name}={json.dumps(value)}" for name, value in (self.settings or {}).items()]
        return Config.load(self.recipe, changes)

    def _texts(self, X: Any) -> list[str]:  # noqa: ANN401
        check_is_fitted(self)
        return as_texts(X)

    def _corpus(
        self,
        X: Any,  # noqa: ANN401
        y: Any,  # noqa: ANN401
        known: Sequence[str] = (),
    ) -> tuple[Corpus, Targets]:
        texts = as_texts(X)
        if y is None:
            raise ValueError("A Tagger requires y to be passed, but the target y is None.")
        targets = read_targets(
            y, separator=self.separator, label_names=self.label_names, known=known
        )
        if targets.Y.shape[0] != len(texts):
            raise DeplError(
                f"There are {len(texts)} texts, and labels of {targets.Y.shape[0]} documents. Give "
                f"labels for each text."
            )
        ids = [str(i) for i in range(len(texts))]
        return Corpus(ids, texts, targets.Y, targets.labels), targets

    def _marked(self, ranking: Ranking) -> csr_array:
        marked = ranking.to_csr(len(self.classes_))
        marked.data = np.ones(len(marked.data), np.int64)
        return marked

    def _keep(self, path: Path) -> None:
        self.model_ = Classifier.load(path)
        self.classes_ = np.array(self.model_.labels.ids, dtype=object)
        self._path = path

    def _temporary(self) -> Path:
        """A folder that goes with this object, or when there is another."""
        if hasattr(self, "_remove"):
            self._remove()
        path = Path(mkdtemp(prefix="depl-"))
        self._remove: finalize[..., Self] = finalize(self, rmtree, path, ignore_errors=True)
        return path

    # What scikit-learn asks for

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        if getattr(self, "_of_matrix", False):
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags(multi_label=True)
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """The parameters and, once fitted, the files of the run folder."""
        state = dict(super().__getstate__())
        for name in ("model_", "classes_", "_path", "_remove"):
            state.pop(name, None)
        if hasattr(self, "model_"):
            found = (p for p in sorted(self._path.rglob("*")) if p.is_file())
            names = {p: p.relative_to(self._path) for p in found}
            shown = {p: n for p, n in names.items() if not any(x.startswith(".") for x in n.parts)}
            state["files"] = {n.as_posix(): p.read_bytes() for p, n in shown.items()}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        files = dict(state).pop("files", None)
        super().__setstate__({name: value for name, value in state.items() if name != "files"})
        if files is None:
            return
        folder = self._temporary()
        for name, raw in files.items():
            relative = PurePosixPath(name)
            if relative.is_absolute() or ".." in relative.parts:
                raise DeplError(f"This pickle holds a file outside its run folder: {name!r}.")
            path = folder / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(raw)
        self._keep(folder)
