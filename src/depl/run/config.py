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
        "lemmas from simplemma or spaCy (pip install 'depl[spacy]'), or plain words",
    )
    language: str = setting(
        "auto", "language code of the texts, such as en or de; auto: found from the texts"
    )
    pairs: Literal["auto", "yes", "no"] = setting(
        "auto", "take two words in a row as a term, too; auto: in short texts that are not too many"
    )
    min_df: int = setting(1, "ignore terms that occur in fewer documents than this", ge=1)
    max_df: float = setting(
        0.7, "ignore terms that occur in a larger share of the documents than this", gt=0, le=1
    )
    sublinear_tf: bool = setting(True, "use 1 + ln(tf) instead of the term frequency tf")
    title_weight: float = setting(
        0.5,
        "how much the words of a title, the first line of a text of several, count beside the "
        "whole text, where most texts have one; 0: no more than others",
        ge=0,
    )


@dataclass(frozen=True, kw_only=True)
class LinearConfig(Section):
    """The linear SVM: one-vs-all, or over a tree of labels."""

    solver: Literal["auto", "one-vs-all", "tree"] = setting(
        "auto",
        "tree: quicker for many labels, a little less precise; auto: where one-vs-all is too slow",
    )
    loss: Literal["squared_hinge", "hinge"] = setting(
        "squared_hinge", "the paper uses hinge; squared_hinge is the usual choice in the field"
    )
    C: float = setting(0.7, "weight of the loss relative to the regularisation", gt=0)
    C_grid: tuple[float, ...] = setting(
        (), "if given, C is the best of these values on the validation documents", gt=0
    )
    cull: float = setting(0.05, "drop weights smaller than this in absolute value", ge=0)
    rare_bonus: float = setting(
        0.025,
        "favour rare labels: lower a label's score by this times ln(its number of training "
        "documents); 0: plain SVM",
    )
    tol: float = setting(1e-3, "train each label to within this share of its optimum", gt=0, le=0.5)


@dataclass(frozen=True, kw_only=True)
class CharactersConfig(Section):
    """A second linear SVM, on sequences of four characters."""

    documents: int = setting(
        10_000,
        "fit it where there are at most so many training documents, and no encoder; 0: never",
        ge=0,
    )


@dataclass(frozen=True, kw_only=True)
class DescriptionsConfig(Section):
    """Keywords and pseudo descriptions of the labels."""

    keywords: int = setting(20, "keywords per label: the terms with the largest weights", ge=1)
    stop_words: bool = setting(
        False, "allow words of grammar, such as 'of' or German 'gegen', as keywords"
    )
    numbers: bool = setting(
        False, "allow terms without letters, such as 1408, in descriptions as in keywords"
    )
    definitions: int = setting(
        0,
        "describe labels with fewer training documents than this by their broader labels and their "
        "definition in the vocabulary, too, before keywords",
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
        "none: only the sparse half; frozen: train poolers and head, not the encoder (for CPUs); "
        "full: train everything (for a GPU)",
    )
    name: str = setting(
        "all-MiniLM-L6-v2",
        "a model of the Hugging Face hub or a folder; all-MiniLM-L6-v2 comes with depl[neural]",
    )
    max_tokens: int = setting(256, "cut documents after this many tokens", ge=8)
    document_pooling: Literal["mean", "cls"] = setting(
        "mean", "how token vectors become a document's vector; the paper uses cls"
    )
    label_pooling: Literal["mean", "text_mean", "cls"] = setting(
        "mean",
        "how token vectors become a label's vector; text_mean, as in the paper: without the "
        "tokens [CLS] and [SEP]",
    )
    poolers: Literal["identity", "random"] = setting(
        "identity", "what the poolers start as; random keeps dot products near 0 at first"
    )
    similarity: Literal["cosine", "dot"] = setting(
        "cosine", "cosine: with a learned scale and offset; dot: dot product, as in the paper"
    )
    int8: bool = setting(
        False, "on a CPU with VNNI or AMX, encode with 8-bit integers: twice as fast, nearly equal"
    )


# What both neural stages have.
_EPOCHS = "maximum number of passes over the training documents"
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
        "joint", "joint: train retrieval and classifier (DEPL+c); dual: only retrieval (DEPL)"
    )
    label_text: Literal["description", "name"] = setting(
        "description", "represent labels by pseudo descriptions, or by names alone (DE-ret)"
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
        2_000, "labels each batch is scored against: positives, hard negatives, random ones", ge=1
    )
    alive: float = setting(
        0.7, "weight of each branch's own loss in the joint loss; the paper uses 0", ge=0, le=1
    )
    apart: float = setting(
        0.0,
        "share of the epochs in which each branch has its own loss alone, before the joint one",
        ge=0,
        le=0.9,
    )
    patience: int = setting(3, _PATIENCE, ge=1)
    enough_steps: int = setting(
        0,
        "leave out epochs beyond so many training steps, except the first 8: many documents need "
        "few epochs; 0: none are left out",
        ge=0,
    )
    last_epochs: int = setting(
        0,
        "passes over all documents that the encoder of the held-out fit goes on for, in place of a "
        "second training; 0: train on all of them from the beginning",
        ge=0,
    )


@dataclass(frozen=True, kw_only=True)
class AttentionConfig(Section):
    """Label-wise attention: the classifier goes on, and each label weighs the tokens itself."""

    epochs: int = setting(
        0,
        "number of passes over the training documents; 0: no label-wise attention (it takes "
        "encoder.training = full)",
        ge=0,
    )
    batch_size: int = setting(256, "documents per training step", ge=1)
    accumulate: int = setting(1, _ACCUMULATE, ge=1, le="batch_size")
    encoder_lr: float = setting(1e-4, "learning rate of the encoder", ge=0)
    pooler_lr: float = setting(1e-3, "learning rate of the document pooler", ge=0)
    head_lr: float = setting(5e-3, "learning rate of the head and the attention", ge=0)
    last_epochs: int = setting(
        2, "passes over all documents that the one of the held-out fit goes on for", ge=1
    )
    labels_per_batch: int = setting(
        5_000, "labels each batch is scored against: positives, hard negatives, random ones", ge=1
    )
    candidates: int = setting(
        100, "labels of each document that it scores, those that the other parts agree on", ge=1
    )


@dataclass(frozen=True, kw_only=True)
class NeighboursConfig(Section):
    """Votes of the nearest training documents."""

    k: int = setting(50, "number of neighbours that vote", ge=1)
    sharpness: float = setting(20.0, "a vote has the weight exp(sharpness x cosine)", ge=0)
    documents: int = setting(
        100_000,
        "also let those vote whose words are nearest, where there are at most so many training "
        "documents; 0: never",
        ge=0,
    )


@dataclass(frozen=True, kw_only=True)
class RerankerConfig(Section):
    """A cross-encoder that reads a document together with each of its best labels."""

    candidates: int = setting(
        0,
        "labels of each document that it reads, those that the other parts agree on; 0: no "
        "re-ranker (it takes encoder.training = full, and on a CPU it is slow)",
        ge=0,
    )
    epochs: int = setting(2, "number of passes over the training pairs", ge=1)
    batch_size: int = setting(512, "pairs of document and label per training step", ge=1)
    accumulate: int = setting(1, _ACCUMULATE, ge=1, le="batch_size")
    encoder_lr: float = setting(1e-4, "learning rate of the encoder", ge=0)
    head_lr: float = setting(1e-3, "learning rate of the pooler and the head", ge=0)
    negatives: int = setting(10, "wrong labels per training document", ge=1)
    documents: int = setting(50_000, "train on at most so many documents", ge=1)
    max_tokens: int = setting(128, "cut a pair of label and document after this many tokens", ge=16)


@dataclass(frozen=True, kw_only=True)
class FusionConfig(Section):
    """The last stage: the rankings of all parts become one, with probabilities."""

    depth: int = setting(100, "labels ranked by each part", ge=1)
    candidates: int = setting(
        40, "how many of these may be suggested (the best of each part)", ge=1
    )
    titles: Literal["auto", "yes", "no"] = setting(
        "auto",
        "rank labels by the title alone, too, which is the first line of a text of several; "
        "auto: where most texts have one",
    )
    head_loss: float = setting(
        0.2,
        "points of P@1 and P@5 that may be lost to rank rare labels higher; 0: do not",
        ge=0,
    )


@dataclass(frozen=True, kw_only=True)
class Config(Section):
    """All settings of a run."""

    seed: int = setting(0, "seed of everything that is random", ge=0)
    model: Literal["fusion", "depl+c", "depl", "classifier", "svm", "names", "neighbours"] = (
        setting(
            "fusion",
            "what suggests labels: all parts together (fusion) or one of them; depl+c is the "
            "paper's, depl its retrieval alone (does not affect fitting)",
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
        "how many times documents are held out, others each time; 0: once, but up to three times "
        "in a sparse run where the share above is fewer than 4,000 documents",
        ge=0,
        le=10,
    )
    device: Literal["auto", "cpu", "cuda"] = setting(
        "auto", "where the encoder runs; auto: on a GPU if there is one"
    )
    checkpoint_seconds: float = setting(
        60.0,
        "seconds between checkpoints: at most this much training is lost when a fit is interrupted",
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
