"""All settings of a run, checked before any work begins.

A setting is written once, here, with its default, range and purpose; ``depl init`` prints all of
this as a commented TOML file, and the command line's ``--set section.key=value`` changes one.
"""

from __future__ import annotations

import copy
import difflib
import tomllib
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import attrs
from attrs.validators import and_, deep_iterable, ge, gt, le, lt

from depl.core.errors import ConfigError
from depl.run.recipes import RECIPES


def _setting(default: object, help: str, validator: Any = None) -> Any:  # noqa: ANN401
    return attrs.field(default=default, validator=validator, metadata={"help": help})


@attrs.frozen(kw_only=True)
class FeaturesConfig:
    """Texts to tf-idf."""

    analyzer: Literal["simplemma", "spacy", "words"] = _setting(
        "simplemma", "lemmas by simplemma, by spaCy (pip install 'depl[spacy]'), or plain words"
    )
    language: str = _setting("en", "language code for the lemmas")
    min_df: int = _setting(2, "leave out terms in fewer documents than this", ge(1))
    max_df: float = _setting(
        0.7, "leave out terms in a larger share of the documents", and_(gt(0), le(1))
    )
    sublinear_tf: bool = _setting(True, "1 + ln(tf) in place of tf")


@attrs.frozen(kw_only=True)
class LinearConfig:
    """The one-vs-all SVM."""

    loss: Literal["squared_hinge", "hinge"] = _setting(
        "squared_hinge", "the paper's is the hinge; its square is what most of the field takes"
    )
    C: float = _setting(0.7, "weight of the loss against the regulariser", and_(gt(0), lt(inf)))
    C_grid: tuple[float, ...] = _setting(
        (),
        "if given, C is the value of these with the best score on a validation slice",
        deep_iterable(and_(gt(0), lt(inf))),
    )
    cull: float = _setting(0.05, "drop weights smaller than this", ge(0))
    rare_bonus: float = _setting(
        0.025, "lower a label's score by this times ln(training documents); 0 is the plain SVM"
    )
    tol: float = _setting(
        1e-3, "solve each label to within this share of its optimum", and_(gt(0), le(0.5))
    )


@attrs.frozen(kw_only=True)
class DescriptionsConfig:
    """Keywords and pseudo descriptions."""

    keywords: int = _setting(20, "keywords a label, the heaviest SVM weights first", ge(1))
    numbers: bool = _setting(
        False, "let terms without a letter, such as 1408, into descriptions (keywords keep them)"
    )
    max_tokens: int = _setting(16, "length of a pseudo description (the paper: 16 or 32)", ge(1))


@attrs.frozen(kw_only=True)
class EncoderConfig:
    """The text encoder of the neural half."""

    training: Literal["none", "frozen", "full"] = _setting(
        "none",
        "none: the sparse half alone; frozen: the encoder as it is, poolers and head are trained "
        "(for CPUs); full: everything is trained (for a GPU)",
    )
    name: str = _setting(
        "all-MiniLM-L6-v2", "a name of the Hugging Face hub or a folder; this one comes with depl"
    )
    max_tokens: int = _setting(256, "where documents are cut", ge(8))
    document_pooling: Literal["mean", "cls"] = _setting("mean", "the paper's is cls")
    label_pooling: Literal["mean", "cls"] = _setting("mean", "the paper's is the mean")
    similarity: Literal["cosine", "dot"] = _setting(
        "cosine", "cosine with a learned scale and offset, or the paper's dot product"
    )
    int8: bool = _setting(
        False, "on a CPU, encode with 8-bit numbers: twice as fast, vectors differ a little"
    )


def _epochs(default: int) -> Any:  # noqa: ANN401
    return _setting(default, "passes over the training documents, at most", ge(0))


def _batch_size(default: int) -> Any:  # noqa: ANN401
    return _setting(default, "documents a step", ge(1))


def _rate(default: float, of: str) -> Any:  # noqa: ANN401
    return _setting(default, f"learning rate of the {of}", and_(ge(0), lt(inf)))


def _accumulate() -> Any:  # noqa: ANN401
    return _setting(1, "compute each batch in so many portions, to save memory", ge(1))


def _patience() -> Any:  # noqa: ANN401
    return _setting(3, "stop after so many epochs without a better validation score", ge(1))


@attrs.frozen(kw_only=True)
class ClassifierConfig:
    """The first neural stage: encoder and classification head. No epochs leave it out."""

    epochs: int = _epochs(6)
    batch_size: int = _batch_size(256)  # smaller ones leave a large GPU waiting for its CPU
    accumulate: int = _accumulate()
    encoder_lr: float = _rate(1.5e-4, "encoder")
    pooler_lr: float = _rate(1e-3, "document pooler")
    head_lr: float = _rate(1e-2, "head")
    patience: int = _patience()


@attrs.frozen(kw_only=True)
class RetrievalConfig:
    """The second neural stage: DE-ret, DEPL or DEPL+c, from where the first one ended."""

    objective: Literal["joint", "dual"] = _setting(
        "joint", "joint: retrieval and classifier together (DEPL+c); dual: retrieval alone (DEPL)"
    )
    label_text: Literal["description", "name"] = _setting(
        "description", "pseudo descriptions, or names alone (DE-ret)"
    )
    epochs: int = _epochs(4)
    batch_size: int = _batch_size(256)
    accumulate: int = _accumulate()
    encoder_lr: float = _rate(2e-4, "encoder")
    pooler_lr: float = _rate(2e-3, "poolers")
    head_lr: float = _rate(1e-3, "head")
    hard_negatives: int = _setting(10, "the SVM's best wrong labels of each document", ge(0))
    labels_per_batch: int = _setting(2_000, "labels each batch is scored against", ge(1))
    alive: float = _setting(
        0.7,
        "share of each branch's own loss in the joint one; 0 is the paper's",
        and_(ge(0), le(1)),
    )
    patience: int = _patience()


@attrs.frozen(kw_only=True)
class NeighboursConfig:
    """Votes of the nearest training documents."""

    k: int = _setting(50, "how many vote", ge(1))
    sharpness: float = _setting(20.0, "a vote weighs exp(sharpness x cosine)", ge(0))


@attrs.frozen(kw_only=True)
class FusionConfig:
    """The last stage: all parts' rankings become one, with probabilities."""

    depth: int = _setting(100, "labels each part ranks", ge(1))
    candidates: int = _setting(40, "how many of them may be suggested", ge(1))
    head_loss: float = _setting(
        0.2,
        "points of P@1 and P@5 that may be given up so that rare labels rise; 0: none rise",
        ge(0),
    )


@attrs.frozen(kw_only=True)
class Config:
    """All settings of a run."""

    seed: int = _setting(0, "one seed for everything that is random", ge(0))
    threads: int = _setting(
        0, "worker threads and processes; 0 is one a core (no effect on results)", ge(0)
    )
    validation: float = _setting(
        0.1, "share of the training documents on which choices are made", and_(gt(0), le(0.5))
    )
    device: Literal["auto", "cpu", "cuda"] = _setting(
        "auto", "where the encoder computes; auto is a GPU where there is one"
    )
    checkpoint_seconds: float = _setting(
        60.0, "how much training a kill may cost at most, within an epoch", ge(0)
    )
    tensorboard: bool = _setting(
        False, "training curves for TensorBoard, beside logs/*.jsonl (pip install tensorboard)"
    )
    features: FeaturesConfig = attrs.field(factory=FeaturesConfig)
    linear: LinearConfig = attrs.field(factory=LinearConfig)
    descriptions: DescriptionsConfig = attrs.field(factory=DescriptionsConfig)
    encoder: EncoderConfig = attrs.field(factory=EncoderConfig)
    classifier: ClassifierConfig = attrs.field(factory=ClassifierConfig)
    retrieval: RetrievalConfig = attrs.field(factory=RetrievalConfig)
    neighbours: NeighboursConfig = attrs.field(factory=NeighboursConfig)
    fusion: FusionConfig = attrs.field(factory=FusionConfig)

    @classmethod
    def load(cls, source: str | Path | None = None, overrides: Sequence[str] = ()) -> Config:
        """Settings of a recipe, of a TOML file, or the defaults, with overrides applied.

        Parameters
        ----------
        source : str, path or None
            A name in ``depl.run.recipes.RECIPES`` or a TOML file; None means the defaults.
        overrides : sequence of str
            Changes such as "linear.C=0.5".

        Examples
        --------
        >>> Config.load(overrides=["linear.C=0.5"]).linear.C
        0.5
        """
        if source is None or str(source) in RECIPES:
            values = copy.deepcopy(RECIPES[str(source or "sparse")])
        else:
            values = _read_toml(Path(source))
        return cls.from_dict(_changed(values, overrides))

    def changed(self, overrides: Sequence[str]) -> Config:
        """These settings with ``section.key=value`` overrides applied."""
        return self.from_dict(_changed(self.to_dict(), overrides))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Config:
        """Check nested settings; every trouble found is named in one message."""
        troubles: list[str] = []
        config: Config = _build(cls, values, "", troubles)
        if troubles:
            raise ConfigError("\n".join(troubles))
        return config

    @property
    def neural(self) -> bool:
        """Whether a run has the neural half."""
        return self.encoder.training != "none"

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain values, for JSON."""
        return attrs.asdict(self)

    def section(self, name: str) -> dict[str, Any]:
        """One section as plain values."""
        return attrs.asdict(getattr(self, name))


def template(config: Config | None = None) -> str:
    """Write the settings as a complete, commented TOML file."""
    config = config or Config()
    return "\n".join(_section_lines(config, "")).strip() + "\n"


def _section_lines(section: attrs.AttrsInstance, name: str) -> list[str]:
    fields = attrs.fields(type(section))
    lines = ["", f"[{name}]  # {type(section).__doc__}"] if name else [f"# {type(section).__doc__}"]
    for field in fields:
        value = getattr(section, field.name)
        if not attrs.has(type(value)):
            lines.append(f"{field.name} = {_toml(value)}  # {field.metadata['help']}")
    for field in fields:
        value = getattr(section, field.name)
        if attrs.has(type(value)):
            lines += _section_lines(value, field.name)
    return lines


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return repr(value)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(
            f"There is no settings file {path}, nor a recipe of that name (there are "
            f"{', '.join(RECIPES)}). `depl init > my.toml` writes a file to start from."
        ) from None
    except OSError as error:
        raise ConfigError(f"Cannot read the settings file {path}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from error


def _changed(values: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    for override in overrides:
        _apply(values, override)
    return values


def _apply(values: dict[str, Any], override: str) -> None:
    dotted, equals, raw = override.partition("=")
    if not equals or not dotted.strip():
        raise ConfigError(f"--set takes section.key=value, such as linear.C=0.5; got {override!r}.")
    try:
        value = tomllib.loads(f"x = {raw}")["x"]
    except tomllib.TOMLDecodeError:
        value = raw.strip()  # a bare word is a string
    *parents, key = dotted.strip().split(".")
    for parent in parents:
        values = values.setdefault(parent, {})
        if not isinstance(values, dict):
            raise ConfigError(f"{parent!r} in --set {override} is a setting, not a section.")
    values[key] = value


def _build(cls: type[Any], values: Mapping[str, Any], path: str, troubles: list[str]) -> Any:  # noqa: ANN401
    """An instance of ``cls`` from plain values; what is wrong is added to ``troubles``."""
    hints = get_type_hints(cls)
    known = [field.name for field in attrs.fields(cls)]
    checked: dict[str, Any] = {}
    for key, value in values.items():
        where = f"{path}{key}"
        if key not in known:
            by_lower = {name.lower(): name for name in known}
            nearest = difflib.get_close_matches(key.lower(), by_lower, n=1, cutoff=0.4)
            hint = f" Did you mean {path}{by_lower[nearest[0]]}?" if nearest else ""
            troubles.append(f"There is no setting {where}.{hint} Known: {', '.join(known)}.")
        elif attrs.has(hints[key]):
            if isinstance(value, Mapping):
                checked[key] = _build(hints[key], value, f"{where}.", troubles)
            else:
                troubles.append(f"{where} is a section with settings of its own; got {value!r}.")
        else:
            try:
                checked[key] = _coerce(hints[key], value)
            except TypeError as error:
                troubles.append(f"{where} must be {error}; got {value!r}.")
    for field in attrs.fields(cls):
        if field.name in checked and field.validator is not None:
            try:
                field.validator(None, field, checked[field.name])
            except ValueError as error:
                rule = str(error).removeprefix(f"'{field.name}' ").rpartition(": ")[0]
                troubles.append(f"{path}{field.name} {rule}; got {checked[field.name]!r}.")
                del checked[field.name]
    return cls(**checked)


def _coerce(hint: Any, value: Any) -> Any:  # noqa: ANN401
    """The value as the hinted type, or a TypeError that says what was expected."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        if value not in arguments:
            raise TypeError("one of " + ", ".join(map(repr, arguments)))
        return value
    if origin is UnionType:
        return None if value is None else _coerce(arguments[0], value)
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise TypeError("a list such as [0.5, 1.0]")
        return tuple(_coerce(arguments[0], item) for item in value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (hint is not bool and isinstance(value, bool)):
        names = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
        raise TypeError(names[hint])
    return value
