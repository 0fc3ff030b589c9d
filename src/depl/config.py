"""All settings of a run, checked before any work begins.

A setting is written once, here, with its default, range and purpose; ``depl init`` prints all of
this as a commented TOML file, and the command line's ``--set section.key=value`` changes one.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import attrs
from attrs.validators import and_, deep_iterable, ge, gt, le, lt

from depl.errors import ConfigError


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
class Config:
    """All settings of a run."""

    seed: int = _setting(0, "one seed for everything that is random", ge(0))
    threads: int = _setting(
        0, "worker threads and processes; 0 is one a core (no effect on results)", ge(0)
    )
    validation: float = _setting(
        0.1, "share of the training documents on which choices are made", and_(gt(0), le(0.5))
    )
    features: FeaturesConfig = attrs.field(factory=FeaturesConfig)
    linear: LinearConfig = attrs.field(factory=LinearConfig)
    descriptions: DescriptionsConfig = attrs.field(factory=DescriptionsConfig)

    @classmethod
    def load(cls, path: str | Path | None = None, overrides: Sequence[str] = ()) -> Config:
        """Read a TOML file (or the defaults) and apply ``section.key=value`` overrides.

        Examples
        --------
        >>> Config.load(overrides=["linear.C=0.5"]).linear.C
        0.5
        """
        values: dict[str, Any] = {} if path is None else _read_toml(Path(path))
        for override in overrides:
            _apply(values, override)
        return cls.from_dict(values)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Config:
        """Check nested settings; every trouble found is named in one message."""
        troubles: list[str] = []
        config: Config = _build(cls, values, "", troubles)
        if troubles:
            raise ConfigError("\n".join(troubles))
        return config

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
            f"There is no settings file {path}. `depl init > {path}` writes one."
        ) from None
    except OSError as error:
        raise ConfigError(f"Cannot read the settings file {path}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from error


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
