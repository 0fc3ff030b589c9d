"""A fitted run, ready to suggest labels. Inference only: nothing here trains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from depl.core.corpus import Label, LabelSet
from depl.core.errors import CorpusError, RunError
from depl.core.ranking import Ranking
from depl.fusion.fusion import FUSION, Fusion
from depl.fusion.thresholds import Thresholds
from depl.labels.editor import LiveLabels
from depl.labels.overlaid_index import rank_jointly, rank_neural
from depl.labels.overlay import Parts
from depl.model.explanation import Explanation, TrainingDocuments, explain, nearest_labels
from depl.run.folder import Run
from depl.sparse.names import NameMatch
from depl.sparse.svm import OneVsAllSVM
from depl.sparse.tfidf import TfidfFeatures

if TYPE_CHECKING:
    from torch import Tensor

    from depl.neural.retriever import TextRetriever


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
    thresholds : Thresholds or None
        From which probability on to suggest, where the run was fitted with a fusion.
    training : TrainingDocuments or None
        The documents that explanations refer to.
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
        thresholds: Thresholds | None = None,
        training: TrainingDocuments | None = None,
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
        self.thresholds = thresholds
        self.training = training
        self.removed: Mapping[int, str] = {}  # tombstones: position, and the id the label had
        self._live: LiveLabels | None = None  # only a loaded run can be edited

    @classmethod
    def load(cls, path: str | Path) -> Classifier:
        """Read a run folder; this runs no code from it."""
        run = Run.open(path)
        train_counts, n_train = run.train_counts()
        descriptions, keywords = run.descriptions()
        fusion = run.fusion() if "fusion" in run.manifest()["stages"] else None
        model = cls(
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
            thresholds=None if fusion is None else run.thresholds(),
            training=TrainingDocuments(run),
        )
        model._read_edits(run)
        return model

    def predict(self, texts: Sequence[str], k: int = 5) -> Ranking:
        """The k best labels of every text, with their probabilities.

        A run that was fitted no further than its descriptions has the SVM's scores instead.
        """
        if self.fusion is None:
            return self.parts(texts, k)["svm"]
        return self.fusion.rank(self.parts(texts), self.train_counts, k)

    def parts(
        self, texts: Sequence[str], k: int = _DEPTH, *, vectors: Tensor | None = None
    ) -> dict[str, Ranking]:
        """What each part alone ranks best: svm, names, and where there are, the neural ones.

        Vectors that ``encode`` has already made of the texts can be given; they are the dear part.
        """
        if vectors is None:
            vectors = self.encode(texts)
        X = self.features.transform(texts)
        rankings = {"svm": self.svm.rank(X, k), "names": self.names.rank(X, k)}
        if self.retriever is not None and vectors is not None:
            rankings |= rank_neural(self.retriever.retriever, vectors, self.removed, k)
        return rankings

    def all_rankings(self, texts: Sequence[str], k: int) -> dict[str, Ranking]:
        """The k best labels by each part, by DEPL+c where there is one, and by all together."""
        vectors = self.encode(texts)
        parts = self.parts(texts, max(k, _DEPTH), vectors=vectors)
        found = {name: ranking.top(k) for name, ranking in parts.items()}
        if self.retriever is not None and vectors is not None and "classifier" in parts:
            inner = self.retriever.retriever
            found["depl+c"] = rank_jointly(inner, vectors, self.removed, k)
        if self.fusion is not None:
            found["fusion"] = self.fusion.rank(parts, self.train_counts, k)
        return found

    def encode(self, texts: Sequence[str]) -> Tensor | None:
        """The texts' vectors, (n, size); None where the run has no encoder."""
        if isinstance(texts, str):
            raise CorpusError("predict takes a list of texts; got a single text. Put it in [ ].")
        return None if self.retriever is None else self.retriever.encode(texts)

    def find(self, query: str) -> int:
        """Position of the label with this id or, failing that, this name (case ignored)."""
        position = self.labels.get(query)
        if position >= 0 and position not in self.removed:
            return position
        wanted = query.casefold()
        there = [(i, x) for i, x in enumerate(self.labels) if i not in self.removed]
        same = [i for i, x in there if x.name.casefold() == wanted]
        if len(same) == 1:
            return same[0]
        if same:
            ids = ", ".join(self.labels[i].id for i in same[:5])
            raise CorpusError(f"{len(same)} labels are named {query!r}. Give the id: {ids}.")
        if query in self.removed.values():
            raise CorpusError(
                f"The label {query!r} was removed. `depl labels RUN history` tells when, and undo "
                f"brings it back if it was the last edit; its id can be added again."
            )
        similar = [x for _, x in there if wanted in x.name.casefold()][:5]
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

    def explain(self, text: str, label: str, *, neighbours: int = 5) -> Explanation:
        """Why the label with this id or name is suggested for a text, or is not."""
        return explain(self, text, [self.find(label)], neighbours=neighbours)[0]

    def explain_best(self, text: str, k: int = 3, *, neighbours: int = 5) -> list[Explanation]:
        """The k best labels of a text, explained."""
        return explain(self, text, k, neighbours=neighbours)

    def nearest_labels(self, position: int, k: int) -> list[tuple[int, float]]:
        """Positions and similarities of the k labels most like the one at this position."""
        return nearest_labels(self, position, k)

    def add_labels(
        self,
        labels: Sequence[Label],
        *,
        descriptions: Mapping[str, str] | None = None,
        examples: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Add labels that can be suggested at once; nothing is trained again.

        Parameters
        ----------
        labels : sequence of Label
            With ids that no label has.
        descriptions : mapping of str to str, optional
            By label id, what the label is about; name and keywords are the description otherwise.
        examples : mapping of str to sequence of str, optional
            By label id, texts of documents that deserve the label.
        """
        self._show(self._editable().add(labels, descriptions or {}, examples or {}))

    def describe_label(self, label_id: str, text: str) -> None:
        """Replace a label's description."""
        self._show(self._editable().describe(label_id, text))

    def rename_label(self, label_id: str, name: str) -> None:
        """Replace a label's name."""
        self._show(self._editable().rename(label_id, name))

    def remove_label(self, label_id: str) -> None:
        """Never suggest a label again; its id is free for another."""
        self._show(self._editable().remove(label_id))

    def undo(self) -> str:
        """Take back the last edit of labels that is in force; tells which it was."""
        undone, parts = self._editable().undo()
        self._show(parts)
        return undone

    def _read_edits(self, run: Run) -> None:
        """Lay over the run what people did to its labels."""
        decided_by = "svm" if self.fusion is None else self.fusion.chosen_
        base = Parts(
            self.labels,
            self.train_counts,
            self.svm,
            self.names,
            self.retriever,
            self.descriptions,
            self.keywords,
            self.removed,
        )
        alone = None if decided_by == FUSION else decided_by
        self._live = LiveLabels(run, base, self.features, alone)
        if self._live.edited:
            self._show(self._live.parts())

    def _editable(self) -> LiveLabels:
        if self._live is None:
            raise RunError(
                "This classifier was not loaded from a run folder, so there is nowhere to keep "
                "edits of its labels. Classifier.load(RUN) gives one that can be edited."
            )
        return self._live

    def _show(self, parts: Parts) -> None:
        """Take over edited parts; what the rankings are looked up in first, for other threads."""
        self.labels, self.train_counts = parts.labels, parts.train_counts
        self.descriptions, self.keywords = parts.descriptions, parts.keywords
        self.removed = parts.removed
        self.svm, self.names, self.retriever = parts.svm, parts.names, parts.retriever

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
    from depl.neural import encoder_files
    from depl.neural.distributed import Processes
    from depl.neural.retriever import Retriever, TextRetriever

    config, folder = run.config(), run.encoder_folder("encoder")
    encoder = encoder_files.load(folder).to(Processes.launched(config.device).device)
    retriever = Retriever(
        encoder,
        run.index("labels"),
        run.index("documents"),
        run.Y,
        names=run.index("names") if "name retrieval" in fusion.parts_ else None,
        neighbours=config.neighbours.k,
        sharpness=config.neighbours.sharpness,
    )
    return TextRetriever(retriever, folder, config.encoder.max_tokens)
