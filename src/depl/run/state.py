"""A run in memory: everything that depends on its labels, in one immutable object.

An edit of labels makes another ``State``, so that the labels, weights and vectors of one are always
consistent, whatever other threads do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit

from depl.core.corpus import LabelSet
from depl.core.errors import ConfigError, RunError
from depl.core.ranking import Ranking
from depl.core.texts import as_texts
from depl.run.folder import Fold, Run
from depl.run.neighbours import word_neighbours
from depl.run.newcomers import Newcomers
from depl.run.titles import Titles, read_titles
from depl.sparse.characters import CharacterSVM
from depl.sparse.names import NameMatch
from depl.sparse.neighbours import WORD_NEIGHBOURS, WordNeighbours
from depl.sparse.svm import OneVsAllSVM
from depl.sparse.tfidf import TfidfFeatures

if TYPE_CHECKING:
    from depl.neural.attention import LabelAttention
    from depl.neural.reranker import Reranker
    from depl.neural.retriever import TextRetriever, Vectors

_RETRIEVAL = {"depl": "retrieval"}  # the part that a model is, where it has another name
_LOGITS = ("depl", "classifier")


@dataclass(frozen=True)
class State:
    """What ranks the labels, and what is known about them.

    Parameters
    ----------
    labels : LabelSet
        All labels, seen in training or not.
    train_counts : array of shape (n_labels,)
        How many training documents carry each label.
    features : TfidfFeatures
        Fitted.
    svm : OneVsAllSVM
        Fitted.
    names : NameMatch
        Matches label names with texts.
    descriptions : list of str
        The pseudo description of every label.
    keywords : list of lists of (term, weight)
        The keywords of every label.
    retriever : TextRetriever or None
        The neural parts, where the run has them.
    removed : mapping of int to str
        Positions of labels that were removed, and the ids they had; they are never ranked.
    n_train : int
        How many training documents there were.
    facts : array of shape (n_labels, n_facts) or None
        What else the fusion knows of the labels.
    newcomers : Newcomers or None
        Labels that were added since, where there are any and the run has probabilities.
    characters : CharacterSVM or None
        The SVM on characters, where the run has one.
    attention : LabelAttention or None
        The label-wise attention, where the run has it.
    reranker : Reranker or None
        What reads documents and labels together, where the run has it.
    titles : bool
        Whether titles are ranked on their own, too.
    word_neighbours : WordNeighbours or None
        The training documents whose words are compared, where they vote.
    """

    labels: LabelSet
    train_counts: NDArray[np.int64]
    features: TfidfFeatures
    svm: OneVsAllSVM
    names: NameMatch
    descriptions: list[str]
    keywords: list[list[tuple[str, float]]]
    retriever: TextRetriever | None = None
    removed: Mapping[int, str] = field(default_factory=dict)
    n_train: int = 0
    facts: NDArray[np.float32] | None = None
    newcomers: Newcomers | None = None
    characters: CharacterSVM | None = None
    attention: LabelAttention | None = None
    reranker: Reranker | None = None
    titles: bool = False
    word_neighbours: WordNeighbours | None = None

    @classmethod
    def load(cls, run: Run, parts: Sequence[str]) -> State:
        """The run as it was fitted; ``parts`` are those that its fusion combines."""
        number = run.learned.current()
        learned = run.learned.read(number, run.threads) if number else None
        described = run.descriptions()
        if learned is not None:
            described = described.with_others(learned.labels.tolist(), learned.descriptions)
        counts, n_train = run.train_counts()
        characters = None
        if "characters" in parts:
            characters = run.characters() if learned is None else learned.characters
        state = cls(
            labels=run.labels,
            train_counts=counts if learned is None else learned.train_counts,
            n_train=n_train if learned is None else learned.n_train,
            facts=run.label_facts(),
            features=run.features() if learned is None else learned.features,
            svm=run.svm() if learned is None else learned.svm,
            names=run.names() if learned is None else learned.names,
            descriptions=described.texts,
            keywords=described.keywords,
            retriever=_load_retriever(run, parts) if "retrieval" in parts else None,
            characters=characters,
            attention=load_attention(run) if "attention" in parts else None,
            reranker=load_reranker(run) if "reranker" in parts else None,
            titles=read_titles(parts),
            word_neighbours=word_neighbours(run, learned) if WORD_NEIGHBOURS in parts else None,
        )
        if state.retriever is not None and learned is not None and learned.vectors is not None:
            knowing = learned.vectors.taken_in(state.retriever.retriever, learned.places, learned.Y)
            state = replace(state, retriever=replace(state.retriever, retriever=knowing))
        state._check_sizes(run)
        return state

    def _check_sizes(self, run: Run) -> None:
        """Refuse parts of different runs: compiled code goes by the sizes of one to index another.

        The hashes in the manifest tell of that, but a run of an older format has none.
        """
        labels, terms = len(self.labels), len(self.features.terms_)
        weights, names = self.svm.weights_, self.names.names
        right = (
            {len(self.train_counts), weights.shape[0], len(self.descriptions)} == {labels}
            and {len(self.features.idf_), weights.shape[1], names.shape[1]} == {terms}
            and self.names.owner.max(initial=-1) < labels
            and (self.facts is None or len(self.facts) == labels)
        )
        if right and self.characters is not None:
            right = self.characters.svm.weights_.shape[0] == labels
        if right and self.word_neighbours is not None:
            near = self.word_neighbours
            right = near.n_terms == terms and near.Y.shape[1] == labels
        if right and self.retriever is not None:
            neural = self.retriever.retriever
            indices = [x for x in (neural.labels, neural.names) if x is not None]
            sizes = {x.vectors.shape[1] for x in (*indices, neural.documents)}
            right = (
                all(len(x) == labels for x in indices)
                and len(neural.documents) == neural.Y.shape[0]
                and sizes == {neural.encoder.document_pooler.out_features}
                and (neural.encoder.head is None or neural.encoder.head.out_features == labels)
            )
        if right and self.attention is not None:
            own = self.attention.encoder.attention
            right = own is not None and len(own) == len(self.attention.known) == labels
        if right and self.reranker is not None:
            head = self.reranker.encoder.head
            right = head is not None and head.out_features == 1
        if not right:
            raise RunError(
                f"The stages of {run.path} do not fit each other: some of its files are of another "
                f"run. Make them again with: depl fit {run.path} --from features"
            )

    def encode(self, texts: Sequence[str]) -> Vectors | None:
        """The texts' vectors, (n, size); None where the run has no encoder."""
        return None if self.retriever is None else self.retriever.encode(as_texts(texts))

    def rank(
        self, texts: Sequence[str], k: int, vectors: Vectors | None = None
    ) -> dict[str, Ranking]:
        """The k best labels of every text by each part: by name as in a fusion.

        The texts' vectors by ``encode`` can be given: they are expensive.
        """
        texts = as_texts(texts)
        return self._rank(texts, self.features.transform(texts), k, vectors)

    def rank_apart(
        self, texts: Sequence[str], k: int, vectors: Vectors | None = None
    ) -> tuple[dict[str, Ranking], Ranking | None]:
        """As ``rank``, but without the labels that were added; and the k most probable of those.

        The fusion knows what the parts' scores mean for labels that they were trained for.
        """
        texts = as_texts(texts)
        X = self.features.transform(texts)
        if vectors is None:
            vectors = self.encode(texts)
        if self.newcomers is None:
            return self._rank(texts, X, k, vectors), None
        new = self.newcomers.positions.tolist()
        parts = self._rank(texts, X, k + len(new), vectors)
        parts = {name: ranking.without(new).top(k) for name, ranking in parts.items()}
        return parts, self.newcomers.rank(texts, X, parts["svm"], k, vectors)

    def _rank(
        self, texts: Sequence[str], X: csr_array, k: int, vectors: Vectors | None
    ) -> dict[str, Ranking]:
        if vectors is None:
            vectors = self.encode(texts)
        rankings = {"svm": self.svm.rank(X, k), **self.names.parts(texts, X, self.features, k)}
        found, deep = {}, k + len(self.removed)  # what follows still ranks labels that were removed
        if self.word_neighbours is not None:
            found[WORD_NEIGHBOURS] = self.word_neighbours.rank(X, deep)
        if self.characters is not None:
            found["characters"] = self.characters.rank(texts, deep)
        if self.retriever is not None and vectors is not None:
            found |= self.retriever.retriever.rank(vectors, deep)
        rankings |= {name: self._there(ranking, k) for name, ranking in found.items()}
        if self.titles:
            rankings |= self._rank_titles(Titles.of(texts), k)
        if self.attention is not None:
            rankings["attention"] = self.attention.rank(texts, rankings.values(), k)
        if self.reranker is not None:
            others = list(rankings.values())
            rankings["reranker"] = self.reranker.rank(texts, others, self.descriptions, k)
        return rankings

    def _rank_titles(self, titles: Titles, k: int) -> dict[str, Ranking]:
        found = titles.by_words(self.features, self.svm, self.names, k)
        if self.retriever is not None:
            ranking = self.retriever.rank_by_name(titles.texts, k + len(self.removed))
            found["name retrieval"] = self._there(ranking, k)
        return titles.parts(found)

    def rank_jointly(self, vectors: Vectors, k: int) -> Ranking:
        """The k best labels by the paper's DEPL+c."""
        assert self.retriever is not None
        ranking = self.retriever.retriever.rank_jointly(vectors, k + len(self.removed))
        return self._there(ranking, k)

    def rank_by(self, model: str, texts: Sequence[str], k: int) -> Ranking:
        """The k best labels by one of the models of the settings but the fusion.

        With the probabilities that the paper's models give; the SVM's and others' own scores.
        """
        if model in ("svm", "names"):  # nothing is encoded
            alone = replace(self, retriever=None, attention=None, reranker=None, titles=False)
            return alone.rank(texts, k)[model]
        vectors = self.encode(texts)
        some = replace(self, attention=None, reranker=None, titles=False)
        parts = {} if vectors is None else some.rank(texts, k, vectors)
        if model == "depl+c" and vectors is not None and "classifier" in parts:
            return self.rank_jointly(vectors, k)
        ranking = parts.get(_RETRIEVAL.get(model, model))
        if ranking is None:
            there = ["fusion", "svm", "names", *("classifier",) * ("classifier" in parts)]
            there += ["depl", "neighbours"] * (vectors is not None)
            raise ConfigError(
                f"This run has no model {model!r}: it was fitted without that part. "
                f"It has {', '.join(there)}."
            )
        return replace(ranking, scores=expit(ranking.scores)) if model in _LOGITS else ranking

    def _there(self, ranking: Ranking, k: int) -> Ranking:
        return ranking.without(self.removed).top(k) if self.removed else ranking


def _load_retriever(run: Run, parts: Sequence[str]) -> TextRetriever:
    from depl.neural import encoder_files
    from depl.neural.distributed import Processes
    from depl.neural.retriever import Retriever, TextRetriever

    folder = run.encoder_folder("encoder")
    encoder = encoder_files.load(folder).to(Processes.launched(run.config().device).device)
    voting = run.settings("fusion")["neighbours"]
    retriever = Retriever(
        encoder,
        run.index("labels"),
        run.index("documents"),
        run.Y,
        names=run.index("names") if "name retrieval" in parts else None,
        neighbours=voting["k"],
        sharpness=voting["sharpness"],
    )
    return TextRetriever(retriever, folder, run.settings("documents")["max_tokens"])


def load_attention(run: Run, fold: Fold = "final") -> LabelAttention:
    """What scores labels by the tokens that each of them looks at."""
    from depl.neural import encoder_files
    from depl.neural.attention import LabelAttention
    from depl.neural.distributed import Processes

    folder = run.encoder_folder("attention", fold)
    encoder = encoder_files.load(folder).to(Processes.launched(run.config().device).device)
    rows = run.rows(fold)
    return LabelAttention(
        encoder,
        folder,
        max_tokens=run.settings("documents")["max_tokens"],
        known=np.bincount(run.Y[rows].indices, minlength=len(run.labels)) > 0,
        candidates=run.settings("attention")["candidates"],
    )


def load_reranker(run: Run) -> Reranker:
    """What reads documents and labels together."""
    from depl.neural import encoder_files
    from depl.neural.distributed import Processes
    from depl.neural.reranker import Reranker

    folder, made_with = run.encoder_folder("reranker"), run.settings("reranker")
    encoder = encoder_files.load(folder).to(Processes.launched(run.config().device).device)
    return Reranker(encoder, folder, made_with["max_tokens"], made_with["candidates"])
