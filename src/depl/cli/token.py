"""``depl token``."""

from __future__ import annotations

from typing import Annotated

import typer

from depl.cli.console import err


def token(
    role: Annotated[
        str,
        typer.Option(
            "--role",
            metavar="ROLE",
            help="read, feedback, edit or admin; each includes those before it.",
        ),
    ],
    name: Annotated[
        str,
        typer.Option("--name", metavar="NAME", help="Who the token is for, such as anna."),
    ],
) -> None:
    """Make a token for the service, and its line for `depl serve --tokens-file`.

    The token is shown once and stored nowhere; the line contains only its hash.
    """
    from depl.server.tokens import new_token

    secret, made = new_token(role, name)
    err.print(f"The token of {name}, shown only this once:")
    err.print(f"  {secret}", highlight=False, soft_wrap=True)
    err.print("Its line for --tokens-file:")
    typer.echo(made.line)
