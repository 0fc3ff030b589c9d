"""A fitted run, ready to suggest labels. Inference only: nothing here trains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from depl.core.corpus import Label, LabelSet
from depl.core.display import html_table
from depl.core.errors import RunError
from depl.core.ranking import Ranking
from depl.fusion.fusion import FUSION, Fusion
from depl.fusion.thresholds import Thresholds
from depl.labels.editor import LabelEditor
from depl.labels.encoded import EncodedTexts
from depl.labels.feedback import FeedbackStore
from depl.labels.review_queue import ReviewQueue
from depl.model.explanation import Explanation, explain, matched_keywords
from depl.model.feedback import Feedback
from depl.model.label_cards import LabelCard, find_label
from depl.model.rankings import depth, rank, rank_by_each
from depl.model.reasons import Match
from depl.model.similar import TrainingDocuments, nearest_labels
from depl.run.config import Config
from depl.run.folder import Run
from depl.run.state import State
from depl.sparse.names import NameMatch
from depl.sparse.svm import OneVsAllSVM
from depl.sparse.tfidf import TfidfFeatures

if TYPE_CHECKING:
    from depl.neural.retriever import TextRetriever, Vectors

_SHOWN = 5  # labels in a notebook


class Classifier:
    """Suggests labels for texts.

    Use ``Classifier.load(run)``; its parts are public.

    Parameters
    ----------
    state : State
        What ranks the labels, and what is known about them.
    n_train : int
        How many training documents there were.
    fusion : Fusion or None
        Combines the rankings of all parts; None uses the SVM alone.
    name : str
        The name of this classifier in reports.
    thresholds : Thresholds or None
        The probabilities above which to suggest, where the run has a fusion.
    run : Run or None
        The folder it was loaded from: only then can labels be edited and neighbours be shown.
    model : str
        What suggests labels, as the setting of that name: the fusion, or one of its parts.
    """

    def __init__(
        self,
        state: State,
        *,
        n_train: int,
        fusion: Fusion | None = None,
        name: str = "",
        thresholds: Thresholds | None = None,
        run: Run | None = None,
        model: str = FUSION,
    ) -> None:
        self.n_train = n_train
        self.model: str = Config.from_dict({"model": model}).model  # a ConfigError if there is none
        self.fusion = fusion
        self.name = name
        self.thresholds = thresholds if model == FUSION else None  # of its probabilities
        self.version = "" if run is None else run.version()
        self._run = run
        self._base = state
        self.training: TrainingDocuments | None = None
        self._feedback: FeedbackStore | None = None
        self._encoded: EncodedTexts | None = None
        self._edits: LabelEditor | None = None
        if run is not None:
            learned = state.features if run.learned.current() else None
            self.training = training = TrainingDocuments(run, learned)
            self._feedback = FeedbackStore(run.path, self.version)
            self._encoded = None if state.retriever is None else EncodedTexts(run)
            single = "svm" if fusion is None else None
            decided_by = single if model == FUSION else model
            self._edits = LabelEditor(run, state, decided_by, lambda: training.vectors)

    def read(self) -> None:
        """Read now what is otherwise read on first use: the run may be fitted again meanwhile."""
        if self.training is not None:
            self.training.read()
        if self._edits is not None:
            self._edits.read()

    def __repr__(self) -> str:
        parts = ", ".join(("svm",) if self.fusion is None else self.fusion.parts_)
        sizes = f"{len(self.labels):,} labels, {self.n_train:,} training documents"
        return f"Classifier({self.name}: {sizes}; parts: {parts})"

    def _repr_html_(self) -> str:
        best = np.argsort(-self.train_counts, kind="stable")[:_SHOWN].tolist()
        rows = [(x.label.name, x.training_documents, x.description) for x in map(self.card, best)]
        header = ("commonest labels", "training documents", "description")
        return html_table(repr(self), header, rows)

    @classmethod
    def load(cls, path: str | Path, model: str | None = None) -> Classifier:
        """Read a run folder; this runs no code from it.

        ``model`` says what is to suggest labels; by default it is the run's setting.
        """
        run = Run.open(path)
        fusion = run.fusion() if run.has("fusion") else None
        state = State.load(run, () if fusion is None else fusion.parts_)
        return cls(
            state,
            n_train=state.n_train,
            fusion=fusion,
            name=run.path.resolve().name,
            thresholds=None if fusion is None else run.thresholds(),
            run=run,
            model=model or run.config().model,
        )

    @property
    def folder(self) -> Path | None:
        """The run folder that it was loaded from."""
        return None if self._run is None else self._run.path

    @property
    def state(self) -> State:
        """The run with the edits of its labels; another object after every edit.

        Read several things from one ``state``.
        """
        return self._base if self._edits is None else self._edits.state()

    @property
    def labels(self) -> LabelSet:
        """All labels, seen in training or not."""
        return self.state.labels

    @property
    def train_counts(self) -> NDArray[np.int64]:
        """How many training documents carry each label."""
        return self.state.train_counts

    @property
    def features(self) -> TfidfFeatures:
        """The fitted tf-idf."""
        return self.state.features

    @property
    def svm(self) -> OneVsAllSVM:
        """The fitted SVM."""
        return self.state.svm

    @property
    def names(self) -> NameMatch:
        """What matches label names with texts."""
        return self.state.names

    @property
    def descriptions(self) -> list[str]:
        """The pseudo description of every label."""
        return self.state.descriptions

    @property
    def keywords(self) -> list[list[tuple[str, float]]]:
        """The keywords of every label, with their weights."""
        return self.state.keywords

    @property
    def retriever(self) -> TextRetriever | None:
        """The neural parts, where the run has them."""
        return self.state.retriever

    @property
    def removed(self) -> Mapping[int, str]:
        """Positions of labels that were removed, and the ids they had."""
        return self.state.removed

    def predict(self, texts: Sequence[str], k: int = 5) -> Ranking:
        """The k best labels of every text, with their probabilities.

        The SVM, names and neighbours have scores of their own instead, and so has a run that was
        fitted no further than its descriptions: the SVM's.
        """
        state = self.state
        return replace(rank(state, self.fusion, texts, k, self.model), labels=state.labels)

    @property
    def gives_probabilities(self) -> bool:
        """Whether the scores of suggestions are probabilities."""
        if self.model == FUSION:
            return self.fusion is not None
        return self.model in ("depl+c", "depl", "classifier")

    def encode(self, texts: Sequence[str]) -> Vectors | None:
        """The texts' vectors, (n, size); None where the run has no encoder."""
        return self.state.encode(texts)

    def parts(self, texts: Sequence[str], k: int | None = None) -> dict[str, Ranking]:
        """The k best labels by each part of the fusion.

        By default as many as the fusion takes.
        """
        return self.state.rank(texts, k or depth(self.fusion))

    def all_rankings(self, texts: Sequence[str], k: int) -> dict[str, Ranking]:
        """The k best labels by each part, by DEPL+c where there is one, and by the fusion."""
        return rank_by_each(self.state, self.fusion, texts, k)

    def find(self, query: str) -> int:
        """Position of the label with this id or, failing that, this name (case ignored)."""
        return find_label(self.state, query)

    def card(self, position: int) -> LabelCard:
        """All that is known about the label at this position."""
        return LabelCard.of(self.state, position)

    def explain(self, text: str, label: str, *, neighbours: int = 5) -> Explanation:
        """Why the label with this id or name is suggested for a text, or is not."""
        return self._explain(text, [self.find(label)], neighbours)[0]

    def explain_best(self, text: str, k: int = 3, *, neighbours: int = 5) -> list[Explanation]:
        """The k best labels of a text, explained."""
        return self._explain(text, k, neighbours)

    def _explain(self, text: str, which: Sequence[int] | int, neighbours: int) -> list[Explanation]:
        return explain(self.state, self.fusion, self.training, text, which, neighbours=neighbours)

    def matched_keywords(self, text: str, position: int) -> list[Match]:
        """The label's keywords that are in the text, and what each adds to the SVM's score."""
        return matched_keywords(self.state, text, position)

    def nearest_labels(self, position: int, k: int) -> list[tuple[int, float]]:
        """Positions and similarities of the k labels most like the one at this position."""
        return nearest_labels(self.state, position, k)

    def add_labels(
        self,
        labels: Sequence[Label],
        *,
        descriptions: Mapping[str, str] | None = None,
        examples: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Add labels that can be suggested at once; nothing is retrained.

        Parameters
        ----------
        labels : sequence of Label
            With ids that no label has.
        descriptions : mapping of str to str, optional
            By label id, what the label is about; the default is name and keywords.
        examples : mapping of str to sequence of str, optional
            By label id, texts of documents that deserve the label.
        """
        self._editor.add(labels, descriptions or {}, examples or {})

    def describe_label(self, label_id: str, text: str) -> None:
        """Replace a label's description."""
        self._editor.describe(label_id, text)

    def rename_label(
        self, label_id: str, name: str | None = None, alt_names: Sequence[str] | None = None
    ) -> None:
        """Replace a label's name, all its other names, or both."""
        self._editor.rename(label_id, name, alt_names)

    def remove_label(self, label_id: str) -> None:
        """Never suggest a label again; its id can be reused."""
        self._editor.remove(label_id)

    def undo(self) -> str:
        """Take back the last edit of labels that is in force; returns which it was."""
        return self._editor.undo()

    @property
    def last_edit(self) -> str | None:
        """What ``undo`` would take back, as far as this classifier knows; None for nothing."""
        return None if self._edits is None else self._edits.last()

    @property
    def columns(self) -> dict[str, Any] | None:
        """Which columns of a table the run was made from; see ``Run.columns``."""
        return None if self._run is None else self._run.columns()

    @property
    def review(self) -> ReviewQueue:
        """The documents that people are to look at."""
        if self._run is None:
            raise _not_loaded("there is no queue of documents", "has it")
        return ReviewQueue(self._run.path)

    @property
    def feedback(self) -> Feedback:
        """What people decided about suggestions, and how to add to it."""
        if self._feedback is None:
            raise _not_loaded("there is nowhere to keep feedback", "keeps it")
        return Feedback(self, self._feedback, self._encoded)

    def refresh(self) -> bool:
        """Apply edits that other processes have made since; whether there were any.

        This waits for nobody and, where there is nothing new, takes microseconds.
        """
        return self._edits is not None and self._edits.refresh()

    def locked(self) -> AbstractContextManager[None]:
        """Keep others from editing the labels while the block runs; see ``LabelEditor.locked``."""
        return self._editor.locked()

    @property
    def _editor(self) -> LabelEditor:
        if self._edits is None:
            raise _not_loaded("there is nowhere to keep edits of its labels", "can be edited")
        return self._edits


def _not_loaded(lacking: str, what: str) -> RunError:
    return RunError(
        f"This classifier was not loaded from a run folder, so {lacking}. Classifier.load(RUN) "
        f"gives one that {what}."
    )
