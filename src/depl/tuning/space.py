"""Which settings are varied, and between which values.

Values are texts as after ``--set section.key=``, so that everything a setting can be is checked
and read in one place, ``depl.run.config``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from depl.core.errors import ConfigError
from depl.run.config import Config

if TYPE_CHECKING:
    from optuna import Trial

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_RANGE = re.compile(rf"({_NUMBER})\.\.({_NUMBER})")
_LOG = 10  # a range over a factor of this is searched by factors, not by differences
_USELESS = {"threads", "device", "checkpoint_seconds", "tensorboard", "seed", "validation", "folds"}

# What is worth trying on any corpus with the sparse recipe. Few kinds of features: they are kept
# from trial to trial.
USUAL = (
    "linear.C=0.1..10",
    "linear.rare_bonus=0..0.1",
    "features.min_df=1..4",
    "features.max_df=0.3,0.7,1.0",
    "features.sublinear_tf=true,false",
)


@dataclass(frozen=True)
class Varied:
    """A setting and what it may be: one of some values, or a number between two."""

    name: str
    values: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0
    whole: bool = False

    def suggest(self, trial: Trial) -> str:
        """The value of a trial."""
        if self.values:
            return str(trial.suggest_categorical(self.name, self.values))
        if self.whole:
            return str(trial.suggest_int(self.name, int(self.low), int(self.high), log=self._log))
        return repr(trial.suggest_float(self.name, self.low, self.high, log=self._log))

    @property
    def _log(self) -> bool:
        return self.low > 0 and self.high / self.low >= _LOG

    def own(self, base: Config) -> Any:  # noqa: ANN401 - what Optuna calls a parameter
        """The value that the settings have without any search; None if it is not among these."""
        if self.values:
            same = [x for x in self.values if base.changed([f"{self.name}={x}"]) == base]
            return same[0] if same else None
        value = _value(base, self.name)
        return value if self.low <= value <= self.high else None


def parse_space(wishes: Sequence[str], base: Config) -> tuple[Varied, ...]:
    """What ``--vary`` asks for.

    Parameters
    ----------
    wishes : sequence of str
        Such as "linear.C=0.1..10" or "linear.loss=hinge,squared_hinge"; none: ``USUAL``.
    base : Config
        The settings that are varied.

    Examples
    --------
    >>> parse_space(["features.min_df=1..4"], Config())
    (Varied(name='features.min_df', values=(), low=1.0, high=4.0, whole=True),)
    """
    space = [_parse(wish, base) for wish in wishes or USUAL]
    names = [varied.name for varied in space]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ConfigError(f"--vary names {twice[0]} twice. Give all its values at once.")
    return tuple(space)


def _parse(wish: str, base: Config) -> Varied:
    name, equals, raw = (part.strip() for part in wish.partition("="))
    if not equals or not raw:
        raise ConfigError(
            f"--vary takes a setting and its values, such as linear.C=0.1..10 or "
            f"features.sublinear_tf=true,false; got {wish!r}."
        )
    if name in _USELESS:
        raise ConfigError(f"--vary {name}: this setting does not make a run better or worse.")
    found = _RANGE.fullmatch(raw)
    values = tuple(dict.fromkeys(value.strip() for value in raw.split(",")))
    for value in found.groups() if found else values:
        base.changed([f"{name}={value}"])  # a ConfigError says what is wrong with it
    if found is None:
        if len(values) < 2:
            raise ConfigError(
                f"--vary {name} has one value. Give several, {name}=A,B, or a range, "
                f"{name}=LOW..HIGH; to change the setting in all trials: --set {wish}."
            )
        return Varied(name, values)
    low, high = map(float, found.groups())
    if low >= high:
        raise ConfigError(f"--vary {name}: a range goes from the lower to the higher number.")
    return Varied(name, low=low, high=high, whole=isinstance(_value(base, name), int))


def _value(config: Config, name: str) -> Any:  # noqa: ANN401 - settings have many types
    value: Any = config
    for part in name.split("."):
        value = getattr(value, part)
    return value
