"""A fitted run, ready to suggest labels. Inference only: nothing here trains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from depl.corpus import Label, LabelSet
from depl.errors import CorpusError
from depl.features import TfidfFeatures
from depl.linear import OneVsAllSVM
from depl.ranking import Ranking
from depl.run import Run


@dataclass(frozen=True)
class LabelCard:
    """All that a run knows about one label."""

    label: Label
    training_documents: int
    description: str
    keywords: list[tuple[str, float]]


class Classifier:
    """Suggests labels for texts.

    Use ``Classifier.load(run)``; the parts it is made of are public for those who want them.

    Parameters
    ----------
    labels : LabelSet
        All labels, seen in training or not.
    train_counts : array of shape (n_labels,)
        How many training documents carry each label.
    n_train : int
        How many training documents there were.
    features : TfidfFeatures
        Fitted.
    svm : OneVsAllSVM
        Fitted.
    descriptions : list of str
        The pseudo description of every label.
    keywords : list of lists of (term, weight)
        The keywords of every label.
    name : str
        What reports call this classifier.
    """

    def __init__(
        self,
        *,
        labels: LabelSet,
        train_counts: NDArray[np.int64],
        n_train: int,
        features: TfidfFeatures,
        svm: OneVsAllSVM,
        descriptions: list[str],
        keywords: list[list[tuple[str, float]]],
        name: str,
    ) -> None:
        self.labels = labels
        self.train_counts = train_counts
        self.n_train = n_train
        self.features = features
        self.svm = svm
        self.descriptions = descriptions
        self.keywords = keywords
        self.name = name

    @classmethod
    def load(cls, path: str | Path) -> Classifier:
        """Read a run folder; this runs no code from it."""
        run = Run.open(path)
        train_counts, n_train = run.train_counts()
        descriptions, keywords = run.descriptions()
        return cls(
            labels=run.labels,
            train_counts=train_counts,
            n_train=n_train,
            features=run.features(),
            svm=run.linear(),
            descriptions=descriptions,
            keywords=keywords,
            name=run.path.resolve().name,
        )

    def predict(self, texts: Sequence[str], k: int = 5) -> Ranking:
        """The k best labels of every text."""
        if isinstance(texts, str):
            raise CorpusError("predict takes a list of texts; got a single text. Put it in [ ].")
        return self.svm.rank(self.features.transform(texts), k)

    def find(self, query: str) -> int:
        """Position of the label with this id or, failing that, this name (case ignored)."""
        position = self.labels.get(query)
        if position >= 0:
            return position
        wanted = query.casefold()
        same = [i for i, x in enumerate(self.labels) if x.name.casefold() == wanted]
        if len(same) == 1:
            return same[0]
        if same:
            ids = ", ".join(self.labels[i].id for i in same[:5])
            raise CorpusError(f"{len(same)} labels are named {query!r}. Give the id: {ids}.")
        similar = [x for x in self.labels if wanted in x.name.casefold()][:5]
        hint = "; ".join(f"{x.id} ({x.name})" for x in similar)
        raise CorpusError(
            f"No label has the id or name {query!r}."
            + (f" Names that contain it: {hint}." if hint else " `depl labels RUN list` lists all.")
        )

    def card(self, position: int) -> LabelCard:
        """All that is known about the label at this position."""
        return LabelCard(
            self.labels[position],
            int(self.train_counts[position]),
            self.descriptions[position],
            self.keywords[position],
        )

    def matched_keywords(self, text: str, position: int) -> list[tuple[str, float]]:
        """The label's keywords that are in the text, with what each adds to the SVM's score."""
        x = self.features.transform([text])
        value = dict(zip(x.indices.tolist(), x.data.tolist(), strict=True))
        in_text = {self.features.terms_[t]: v for t, v in value.items()}
        matched = [(t, w * in_text[t]) for t, w in self.keywords[position] if t in in_text]
        return sorted(matched, key=lambda pair: -pair[1])
