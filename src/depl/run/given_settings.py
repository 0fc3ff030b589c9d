"""Settings as people give them: TOML files, and ``--set section.key=value``."""

from __future__ import annotations

import copy
import difflib
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from depl.core.errors import ConfigError
from depl.run.recipes import RECIPES


def read_toml(path: Path) -> dict[str, Any]:
    """The nested settings of a TOML file; an error that helps where there is none."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        close = difflib.get_close_matches(str(path), RECIPES, 1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise ConfigError(
            f"There is no settings file {path}, and no recipe of that name.{hint} The recipes are "
            f"{', '.join(RECIPES)}. `depl init > my.toml` writes a file to start from."
        ) from None
    except OSError as error:
        raise ConfigError(f"Cannot read the settings file {path}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from error


def overridden(values: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """A copy of nested settings with ``section.key=value`` overrides applied."""
    result = copy.deepcopy(dict(values))
    for override in overrides:
        dotted, equals, raw = (part.strip() for part in override.partition("="))
        if not equals or not dotted:
            raise ConfigError(
                f"--set takes section.key=value, such as linear.C=0.5; got {override!r}."
            )
        *parents, key = dotted.split(".")
        section = result
        for parent in parents:
            section = section.setdefault(parent, {})
            if not isinstance(section, dict):
                raise ConfigError(f"{parent!r} in --set {override} is a setting, not a section.")
        try:
            section[key] = tomllib.loads(f"x = {raw}")["x"]
        except tomllib.TOMLDecodeError:
            section[key] = raw  # a bare word is a string
    return result
