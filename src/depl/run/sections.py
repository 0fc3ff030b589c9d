"""Settings as frozen dataclasses that check themselves, are read from plain values, and explained.

The standard library does it without a dependency; ``import depl.run.config`` takes 0.08 s of CPU
time, with attrs 0.09 s, with cattrs 0.13 s and with pydantic 0.26 s (``depl --help`` imports none).
pydantic would save 30 lines of 420 for 7.6 MB (which typer brings from 0.29 on), but raises its own
errors where a section is made in Python; cattrs finds only the first value of a section that is
out of range. tomlkit, 0.04 s and 0.2 MB, would write what ``json.dumps`` writes.
"""

from __future__ import annotations

import difflib
import json
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from functools import cache
from math import isfinite
from operator import ge, gt, le
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from depl.core.errors import ConfigError

_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a string"}
_WIDTH = 100  # characters of a line of a settings file
_LIMITS = {"ge": (ge, ">="), "gt": (gt, ">"), "le": (le, "<=")}

# The types of a section's fields; they are strings, and compiling them takes a while.
_hints: Callable[[Any], dict[str, Any]] = cache(get_type_hints)


def setting(default: object, help: str, **limits: float | str) -> Any:  # noqa: ANN401
    """A setting; a limit (ge, gt, le) is a number, or the name of a setting before this one."""
    return field(default=default, metadata={"help": help, "limits": limits})


@dataclass(frozen=True, kw_only=True)
class Section:
    """Base class of sections; a section with values that make no sense cannot be made."""

    def __post_init__(self) -> None:
        hints, problems = _hints(type(self)), []
        for entry in fields(self):
            value = getattr(self, entry.name)
            try:
                value = _coerced(hints[entry.name], value)
                object.__setattr__(self, entry.name, value)
                self._check(value, entry.metadata.get("limits", {}))
            except ValueError as error:
                problems.append(f"{entry.name} {error}; got {value!r}.")
                object.__setattr__(self, entry.name, entry.default)  # others are compared with it
        if problems:
            raise ConfigError("\n".join(problems))

    def _check(self, value: Any, limits: Mapping[str, float | str]) -> None:  # noqa: ANN401
        for rule, limit in limits.items():
            holds, sign = _LIMITS[rule]
            bound = getattr(self, limit) if isinstance(limit, str) else limit
            if not all(holds(x, bound) for x in (value if isinstance(value, tuple) else [value])):
                said = f"{limit} ({bound})" if isinstance(limit, str) else limit
                raise ValueError(f"must be {sign} {said}")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Make the section, and the sections in it, from plain values.

        Raises
        ------
        ConfigError
            Says everything that is wrong with the values, a problem a line.
        """
        problems: list[str] = []
        section = cls._from_dict(values, "", problems, _hints(cls))
        if problems:
            raise ConfigError("\n".join(problems))
        return section

    @classmethod
    def _from_dict(
        cls, values: Mapping[str, Any], path: str, problems: list[str], top: Mapping[str, Any]
    ) -> Self:
        hints, given = _hints(cls), {}
        for key, value in values.items():
            if key not in hints:
                hint, known = _did_you_mean(path, str(key), hints, top), ", ".join(hints)
                problems.append(f"There is no setting {path}{key}.{hint} Known: {known}.")
            elif is_dataclass(hints[key]) and isinstance(value, Mapping):
                given[key] = hints[key]._from_dict(value, f"{path}{key}.", problems, top)
            else:
                given[key] = value
        try:
            return cls(**given)
        except ConfigError as error:
            problems += [path + problem for problem in str(error).split("\n")]
            return cls()

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain values, for JSON."""
        return asdict(self, dict_factory=_plain)

    def lines(self) -> Iterator[str]:
        """The settings of this section, without those of sections in it, as commented TOML.

        A purpose is beside the value where there is room for it, and above it where there is not.
        """
        for entry in fields(self):
            if "help" in entry.metadata:
                # What JSON makes of strings, finite numbers, booleans and lists is TOML, too.
                value = json.dumps(getattr(self, entry.name), ensure_ascii=False)
                value = value.replace("\x7f", "\\u007f")  # but for this character
                line, purpose = f"{entry.name} = {value}", entry.metadata["help"]
                if len(line) + len(purpose) + len("  # ") <= _WIDTH:
                    yield f"{line}  # {purpose}"
                else:
                    yield from textwrap.wrap(
                        purpose, _WIDTH, initial_indent="# ", subsequent_indent="# "
                    )
                    yield line


def _plain(items: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in items}


def _did_you_mean(path: str, key: str, known: Mapping[str, Any], top: Mapping[str, Any]) -> str:
    """A hint at a setting with a similar name here, or at those with this name elsewhere."""
    by_lower = {name.lower(): path + name for name in known}
    near = difflib.get_close_matches(key.lower(), by_lower, n=1, cutoff=0.65)
    inside = {name: _hints(kind) for name, kind in top.items() if is_dataclass(kind)}
    elsewhere = [key] * (key in top) + [f"{name}.{key}" for name in inside if key in inside[name]]
    names = [by_lower[name] for name in near] or elsewhere
    some = ", ".join(names[:-1])
    return f" Did you mean {' or '.join(filter(None, [some, *names[-1:]]))}?" if names else ""


def _coerced(hint: Any, value: Any) -> Any:  # noqa: ANN401
    """The value as the hinted type, or a ValueError that says what was expected."""
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise ValueError("must be one of " + ", ".join(map(repr, get_args(hint))))
        return value
    if get_origin(hint) is tuple:
        if not isinstance(value, (list, tuple)):
            raise ValueError("must be a list such as [0.5, 1.0]")
        return tuple(_coerced(get_args(hint)[0], item) for item in value)
    if hint is float and type(value) is int:
        value = float(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        kind = _KINDS.get(hint)
        raise ValueError(f"must be {kind}" if kind else "is a section with settings of its own")
    if hint is float and not isfinite(value):
        raise ValueError("must be finite")
    return value
