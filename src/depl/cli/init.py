"""``depl init``."""

from __future__ import annotations

from typing import Annotated

import typer

from depl.run.recipes import RECIPES


def init(
    recipe: Annotated[
        str, typer.Argument(metavar="[RECIPE]", help=f"One of {', '.join(RECIPES)}.")
    ] = "sparse",
) -> None:
    """Print a settings file with all settings explained, to start from."""
    from depl.run.config import Config, template

    typer.echo(template(Config.load(recipe)), nl=False)
