"""A fitted run, ready to suggest labels. Inference only: nothing here trains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from depl.corpus import Label, LabelSet
from depl.errors import CorpusError
from depl.features import TfidfFeatures
from depl.fusion import Fusion
from depl.linear import OneVsAllSVM
from depl.names import NameMatch
from depl.ranking import Ranking
from depl.run import Run

if TYPE_CHECKING:
    from depl.retriever import TextRetriever


_DEPTH = 100  # labels that each part ranks for the fusion


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
    names : NameMatch
        Matches label names with texts.
    fusion : Fusion or None
        What makes one ranking of all parts'; None leaves the SVM alone.
    retriever : TextRetriever or None
        The neural parts, where the fusion knows them.
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
        names: NameMatch,
        fusion: Fusion | None,
        retriever: TextRetriever | None,
        descriptions: list[str],
        keywords: list[list[tuple[str, float]]],
        name: str,
    ) -> None:
        self.labels = labels
        self.train_counts = train_counts
        self.n_train = n_train
        self.features = features
        self.svm = svm
        self.names = names
        self.fusion = fusion
        self.retriever = retriever
        self.descriptions = descriptions
        self.keywords = keywords
        self.name = name

    @classmethod
    def load(cls, path: str | Path) -> Classifier:
        """Read a run folder; this runs no code from it."""
        run = Run.open(path)
        train_counts, n_train = run.train_counts()
        descriptions, keywords = run.descriptions()
        fusion = run.fusion() if "fusion" in run.manifest()["stages"] else None
        return cls(
            labels=run.labels,
            train_counts=train_counts,
            n_train=n_train,
            features=run.features(),
            svm=run.linear(),
            names=run.names(),
            fusion=fusion,
            retriever=_load_retriever(run, fusion),
            descriptions=descriptions,
            keywords=keywords,
            name=run.path.resolve().name,
        )

    def predict(self, texts: Sequence[str], k: int = 5) -> Ranking:
        """The k best labels of every text, with their probabilities.

        A run that was fitted no further than its descriptions has the SVM's scores instead.
        """
        if self.fusion is None:
            return self.parts(texts, k)["svm"]
        return self.fusion.rank(self.parts(texts), self.train_counts, k)

    def parts(self, texts: Sequence[str], k: int = _DEPTH) -> dict[str, Ranking]:
        """What each part alone ranks best: svm, names, and where there are, the neural ones."""
        if isinstance(texts, str):
            raise CorpusError("predict takes a list of texts; got a single text. Put it in [ ].")
        X = self.features.transform(texts)
        rankings = {"svm": self.svm.rank(X, k), "names": self.names.rank(X, k)}
        if self.retriever is not None:
            rankings |= self.retriever.rank(texts, k)
        return rankings

    def all_rankings(self, texts: Sequence[str], k: int) -> dict[str, Ranking]:
        """The k best labels by each part, by DEPL+c where there is one, and by all together."""
        parts = self.parts(texts, max(k, _DEPTH))
        found = {name: ranking.top(k) for name, ranking in parts.items()}
        if self.retriever is not None and "classifier" in parts:
            found["depl+c"] = self.retriever.rank_jointly(texts, k)
        if self.fusion is not None:
            found["fusion"] = self.fusion.rank(parts, self.train_counts, k)
        return found

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


def _load_retriever(run: Run, fusion: Fusion | None) -> TextRetriever | None:
    """The neural parts of a run, if its fusion was fitted with them."""
    if fusion is None or "retrieval" not in fusion.parts_:
        return None
    from depl import pretrained
    from depl.processes import Processes
    from depl.retriever import Retriever, TextRetriever

    config, folder = run.config(), run.encoder_folder("encoder")
    encoder = pretrained.load(folder).to(Processes.launched(config.device).device)
    retriever = Retriever(
        encoder,
        run.index("labels"),
        run.index("documents"),
        run.Y,
        neighbours=config.neighbours.k,
        sharpness=config.neighbours.sharpness,
    )
    return TextRetriever(retriever, folder, config.encoder.max_tokens)
