"""All settings of a run, checked before any work begins.

A setting is written once, here, with its default, range and purpose; ``depl init`` prints all of
this as a commented TOML file, and the command line's ``--set section.key=value`` changes one.
How settings are checked, and why without a library, is in ``depl.run.sections``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from depl.run.given_settings import overridden, read_toml
from depl.run.recipes import RECIPES
from depl.run.sections import Section, setting


@dataclass(frozen=True, kw_only=True)
class FeaturesConfig(Section):
    """Tf-idf features of the texts."""

    analyzer: Literal["simplemma", "spacy", "words"] = setting(
        "simplemma",
        "reduce words to lemmas with simplemma or spaCy (pip install 'depl[spacy]'), or take them "
        "as they are (words)",
    )
    language: str = setting(
        "auto", "language code of the texts, such as en or de; auto: detected from the texts"
    )
    pairs: Literal["auto", "yes", "no"] = setting(
        "auto", "count two words in a row as a term, too; auto: if texts are short and not too many"
    )
    min_df: int = setting(1, "ignore terms that occur in fewer documents than this", ge=1)
    max_df: float = setting(
        0.7, "ignore terms that occur in a larger share of the documents than this", gt=0, le=1
    )
    sublinear_tf: bool = setting(True, "use 1 + ln(tf) instead of the term frequency tf")
    title_weight: float = setting(
        0.5,
        "extra weight of the words in a title (the first of several lines), if most texts have "
        "one; 0: none",
        ge=0,
    )


@dataclass(frozen=True, kw_only=True)
class LinearConfig(Section):
    """The linear SVM: one-vs-all, or over a tree of labels."""

    solver: Literal["auto", "one-vs-all", "tree"] = setting(
        "auto",
        "tree: faster with many labels, a bit less precise; auto: tree if one-vs-all is too slow",
    )
    loss: Literal["squared_hinge", "hinge"] = setting(
        "squared_hinge", "the paper uses hinge; squared_hinge is the usual choice in the field"
    )
    C: float = setting(0.7, "weight of the loss relative to the regularisation", gt=0)
    C_grid: tuple[float, ...] = setting(
        (), "values of C to try; the best on the validation documents is used in place of C", gt=0
    )
    cull: float = setting(0.05, "drop weights smaller than this in absolute value", ge=0)
    rare_bonus: float = setting(
        0.025,
        "favour rare labels: lower each label's score by this times ln(number of its training "
        "documents); 0: plain SVM",
    )
    tol: float = setting(1e-3, "train each label to within this share of its optimum", gt=0, le=0.5)


@dataclass(frozen=True, kw_only=True)
class CharactersConfig(Section):
    """A second linear SVM, on sequences of four characters."""

    documents: int = setting(
        10_000,
        "train it if there are at most this many training documents, and no encoder; 0: never",
        ge=0,
    )


@dataclass(frozen=True, kw_only=True)
class DescriptionsConfig(Section):
    """Keywords and pseudo descriptions of the labels."""

    keywords: int = setting(20, "keywords per label: the terms with the largest weights", ge=1)
    stop_words: bool = setting(
        False, "allow function words, such as 'of' or German 'gegen', as keywords"
    )
    numbers: bool = setting(
        False, "allow terms without letters, such as 1408, in keywords and descriptions"
    )
    definitions: int = setting(
        0,
        "begin the descriptions of labels with fewer training documents than this with their "
        "broader labels and their definition in the vocabulary",
        ge=0,
    )
    max_tokens: int = setting(
        16, "maximum length of a pseudo description in tokens (the paper uses 16 or 32)", ge=1
    )


@dataclass(frozen=True, kw_only=True)
class EncoderConfig(Section):
    """The text encoder of the neural half."""

    training: Literal["none", "frozen", "full"] = setting(
        "none",
        "none: no encoder, only the sparse half; frozen: train poolers and head, not the encoder "
        "(for CPUs); full: train everything (for a GPU)",
    )
    name: str = setting(
        "all-MiniLM-L6-v2",
        "a model on the Hugging Face hub, or a folder; all-MiniLM-L6-v2 comes with depl[neural]",
    )
    max_tokens: int = setting(256, "cut documents after this many tokens", ge=8)
    document_pooling: Literal["mean", "cls"] = setting(
        "mean", "how token vectors become a document's vector; the paper uses cls"
    )
    label_pooling: Literal["mean", "text_mean", "cls"] = setting(
        "mean",
        "how token vectors become a label's vector; text_mean leaves out the tokens [CLS] and "
        "[SEP], as in the paper",
    )
    poolers: Literal["identity", "random"] = setting(
        "identity", "initial weights of the poolers; random keeps dot products near 0 at first"
    )
    similarity: Literal["cosine", "dot"] = setting(
        "cosine", "cosine: with a learned scale and offset; dot: dot product, as in the paper"
    )
    int8: bool = setting(
        False,
        "on a CPU with VNNI or AMX, encode with 8-bit integers: twice as fast, almost as good",
    )


# What both neural stages have.
_EPOCHS = "passes over the training documents, at most"
_BATCH_SIZE = "documents per training step"
_ACCUMULATE = "process each batch in this many parts, to save memory"
_PATIENCE = "stop after this many epochs without a better validation score"


@dataclass(frozen=True, kw_only=True)
class ClassifierConfig(Section):
    """The first neural stage: encoder and classification head. With 0 epochs it is skipped."""

    epochs: int = setting(6, _EPOCHS, ge=0)
    batch_size: int = setting(256, _BATCH_SIZE, ge=1)  # a large GPU waits if it is smaller
    accumulate: int = setting(1, _ACCUMULATE, ge=1, le="batch_size")
    encoder_lr: float = setting(1.5e-4, "learning rate of the encoder", ge=0)
    pooler_lr: float = setting(1e-3, "learning rate of the document pooler", ge=0)
    head_lr: float = setting(1e-2, "learning rate of the head", ge=0)
    patience: int = setting(3, _PATIENCE, ge=1)


@dataclass(frozen=True, kw_only=True)
class RetrievalConfig(Section):
    """The second neural stage: DE-ret, DEPL or DEPL+c, starting from the result of the first."""

    objective: Literal["joint", "dual"] = setting(
        "joint", "joint: train retrieval and classifier (DEPL+c); dual: retrieval alone (DEPL)"
    )
    label_text: Literal["description", "name"] = setting(
        "description", "represent labels by their pseudo descriptions, or by their names (DE-ret)"
    )
    epochs: int = setting(4, _EPOCHS, ge=0)
    batch_size: int = setting(256, _BATCH_SIZE, ge=1)
    accumulate: int = setting(1, _ACCUMULATE, ge=1, le="batch_size")
    encoder_lr: float = setting(2e-4, "learning rate of the encoder", ge=0)
    pooler_lr: float = setting(2e-3, "learning rate of the poolers", ge=0)
    head_lr: float = setting(1e-3, "learning rate of the head", ge=0)
    hard_negatives: int = setting(
        10, "negatives per document: the wrong labels that the SVM ranks highest", ge=0
    )
    labels_per_batch: int = setting(
        2_000, "labels to score each batch against: positives, hard negatives, random ones", ge=1
    )
    alive: float = setting(
        0.7, "weight of each branch's own loss in the joint loss; the paper uses 0", ge=0, le=1
    )
    apart: float = setting(
        0.0,
        "share of the epochs, the first ones, in which each branch has only its own loss",
        ge=0,
        le=0.9,
    )
    patience: int = setting(3, _PATIENCE, ge=1)
    enough_steps: int = setting(
        0,
        "skip epochs beyond this many training steps, but none of the first 8: with many "
        "documents, few epochs are enough; 0: skip none",
        ge=0,
    )
    last_epochs: int = setting(
        0,
        "train the encoder of the held-out fit for this many more passes over all documents, and "
        "not anew on all of them; 0: train it anew",
        ge=0,
    )


@dataclass(frozen=True, kw_only=True)
class AttentionConfig(Section):
    """Label-wise attention: the classifier trains on, and each label weights the tokens itself."""

    epochs: int = setting(
        0,
        "passes over the training documents; 0: no label-wise attention (it needs "
        "encoder.training = full)",
        ge=0,
    )
    batch_size: int = setting(256, "documents per training step", ge=1)
    accumulate: int = setting(1, _ACCUMULATE, ge=1, le="batch_size")
    encoder_lr: float = setting(1e-4, "learning rate of the encoder", ge=0)
    pooler_lr: float = setting(1e-3, "learning rate of the document pooler", ge=0)
    head_lr: float = setting(5e-3, "learning rate of the head and the attention", ge=0)
    last_epochs: int = setting(
        2, "train that of the held-out fit for this many more passes over all documents", ge=1
    )
    labels_per_batch: int = setting(
        5_000, "labels to score each batch against: positives, hard negatives, random ones", ge=1
    )
    candidates: int = setting(
        100, "how many labels of each document it scores: those the other parts agree on", ge=1
    )


@dataclass(frozen=True, kw_only=True)
class NeighboursConfig(Section):
    """Votes of the nearest training documents."""

    k: int = setting(50, "number of neighbours that vote", ge=1)
    sharpness: float = setting(20.0, "a vote has the weight exp(sharpness x cosine)", ge=0)
    documents: int = setting(
        100_000,
        "let the documents with the most similar words vote, too, if there are at most this many "
        "training documents; 0: never",
        ge=0,
    )


@dataclass(frozen=True, kw_only=True)
class RerankerConfig(Section):
    """A cross-encoder that reads a document together with each of its best labels."""

    candidates: int = setting(
        0,
        "how many labels of each document it reads: those the other parts agree on; 0: no "
        "re-ranker (it needs encoder.training = full, and is slow on a CPU)",
        ge=0,
    )
    epochs: int = setting(2, "passes over the training pairs", ge=1)
    batch_size: int = setting(512, "pairs of document and label per training step", ge=1)
    accumulate: int = setting(1, _ACCUMULATE, ge=1, le="batch_size")
    encoder_lr: float = setting(1e-4, "learning rate of the encoder", ge=0)
    head_lr: float = setting(1e-3, "learning rate of the pooler and the head", ge=0)
    negatives: int = setting(10, "wrong labels per training document", ge=1)
    documents: int = setting(50_000, "train on at most this many documents", ge=1)
    max_tokens: int = setting(128, "cut a pair of label and document after this many tokens", ge=16)


@dataclass(frozen=True, kw_only=True)
class FusionConfig(Section):
    """The last stage: the rankings of all parts are combined into one, with probabilities."""

    depth: int = setting(100, "labels ranked by each part", ge=1)
    candidates: int = setting(
        40, "how many of these, the best of each part, may be suggested", ge=1
    )
    titles: Literal["auto", "yes", "no"] = setting(
        "auto",
        "rank labels by the title alone, too (the first of several lines); auto: if most texts "
        "have one",
    )
    head_loss: float = setting(
        0.2,
        "how many points of P@1 and P@5 may be given up to rank rare labels higher; 0: none",
        ge=0,
    )


@dataclass(frozen=True, kw_only=True)
class Config(Section):
    """All settings of a run."""

    seed: int = setting(0, "seed for everything random", ge=0)
    model: Literal["fusion", "depl+c", "depl", "classifier", "svm", "names", "neighbours"] = (
        setting(
            "fusion",
            "what suggests labels: all parts together (fusion) or one of them; depl+c is the "
            "paper's model, depl its retrieval alone (does not affect fitting)",
        )
    )
    threads: int = setting(
        0, "worker threads and processes; 0: one per core (does not affect results)", ge=0
    )
    validation: float = setting(
        0.1, "share of the training documents held out for tuning and calibration", gt=0, le=0.5
    )
    folds: int = setting(
        0,
        "how often documents are held out, different ones each time; 0: once, or up to three "
        "times in a sparse run if the share above is fewer than 4,000 documents",
        ge=0,
        le=10,
    )
    device: Literal["auto", "cpu", "cuda"] = setting(
        "auto", "where the encoder runs; auto: on a GPU if there is one"
    )
    checkpoint_seconds: float = setting(
        60.0,
        "seconds between checkpoints; an interrupted fit loses at most this much training",
        ge=0,
    )
    tensorboard: bool = setting(
        False, "also write training curves for TensorBoard (pip install tensorboard)"
    )
    features: FeaturesConfig = field(default_factory=FeaturesConfig)
    linear: LinearConfig = field(default_factory=LinearConfig)
    characters: CharactersConfig = field(default_factory=CharactersConfig)
    descriptions: DescriptionsConfig = field(default_factory=DescriptionsConfig)
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    classifier: ClassifierConfig = field(default_factory=ClassifierConfig)
    retrieval: RetrievalConfig = field(default_factory=RetrievalConfig)
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    neighbours: NeighboursConfig = field(default_factory=NeighboursConfig)
    reranker: RerankerConfig = field(default_factory=RerankerConfig)
    fusion: FusionConfig = field(default_factory=FusionConfig)

    @classmethod
    def load(
        cls,
        source: str | Path | Mapping[str, Any] | Config | None = None,
        overrides: Sequence[str] = (),
    ) -> Config:
        """Settings from any source, with overrides applied.

        Parameters
        ----------
        source : str, path, mapping, Config or None
            A name in ``depl.run.recipes.RECIPES``, a TOML file, nested settings, or settings made
            before; None means the defaults.
        overrides : sequence of str
            Changes such as "linear.C=0.5".

        Examples
        --------
        >>> Config.load({"linear": {"C": 0.5}}, ["seed=3"]).linear.C
        0.5
        """
        if isinstance(source, Config):
            source = source.to_dict()
        elif isinstance(source, (str, Path)):
            source = RECIPES[str(source)] if str(source) in RECIPES else read_toml(Path(source))
        return cls.from_dict(overridden(source or {}, overrides))

    def changed(self, overrides: Sequence[str]) -> Config:
        """These settings with ``section.key=value`` overrides applied."""
        return self.load(self, overrides)

    @property
    def neural(self) -> bool:
        """Whether a run has the neural half."""
        return self.encoder.training != "none"

    @property
    def attends(self) -> bool:
        """Whether a run has label-wise attention."""
        return self.encoder.training == "full" and self.attention.epochs > 0

    @property
    def reranks(self) -> bool:
        """Whether a run has a re-ranker."""
        return self.encoder.training == "full" and self.reranker.candidates > 0

    @property
    def in_words(self) -> str:
        """The recipe that these settings are nearest to, and what is different from it.

        Examples
        --------
        >>> Config.load("small-gpu", ["linear.C=0.5", "seed=3"]).in_words
        'small-gpu, with seed = 3, linear.C = 0.5'
        """
        own = _flat(self.to_dict())
        recipes = {name: _flat(Config.load(name).to_dict()) for name in RECIPES}
        differences = {
            name: [f"{key} = {own[key]}" for key in own if own[key] != recipe[key]]
            for name, recipe in recipes.items()
        }
        nearest = min(differences, key=lambda name: len(differences[name]))
        return ", with ".join(filter(None, [nearest, ", ".join(differences[nearest])]))

    def section(self, name: str) -> dict[str, Any]:
        """One section as plain values."""
        section: Section = getattr(self, name)
        return section.to_dict()


def template(config: Config | None = None) -> str:
    """Write the settings as a complete, commented TOML file."""
    config = config or Config()
    lines = [f"# {config.__doc__}", *config.lines()]
    for name in (entry.name for entry in fields(config)):
        if isinstance(section := getattr(config, name), Section):
            lines += ["", f"[{name}]  # {section.__doc__}", *section.lines()]
    return "\n".join(lines) + "\n"


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Nested settings by their dotted names."""
    return {
        dotted: value
        for key, inside in values.items()
        for dotted, value in (
            {f"{key}.{name}": x for name, x in inside.items()}
            if isinstance(inside, dict)
            else {key: inside}
        ).items()
    }
