"""``depl``: the registration of all commands, and the script's entry point."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Annotated, NoReturn

import typer
from rich.text import Text

from depl import __version__
from depl.cli.check import check
from depl.cli.console import err
from depl.cli.demo import demo
from depl.cli.evaluate import evaluate
from depl.cli.explain import explain
from depl.cli.feedback import feedback_app
from depl.cli.fit import fit
from depl.cli.help import Command, Group
from depl.cli.info import info
from depl.cli.init import init
from depl.cli.labels import labels_app
from depl.cli.learn import learn
from depl.cli.predict import predict
from depl.cli.review import review
from depl.cli.serve import serve
from depl.cli.theory import theory
from depl.cli.token import token
from depl.cli.tune import tune
from depl.core.errors import DeplError

app = typer.Typer(
    name="depl",
    cls=Group,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_PEOPLE = "Learn from people"
for panel, commands in {
    "Train and measure": (fit, evaluate, info, init, tune),
    "Suggest labels": (predict, explain, serve, token),
    _PEOPLE: (review, learn),
    "Other": (demo, check, theory),
}.items():
    for command in commands:
        app.command(cls=Command, rich_help_panel=panel)(command)
app.add_typer(feedback_app, name="feedback", rich_help_panel=_PEOPLE)
app.add_typer(labels_app, name="labels", rich_help_panel=_PEOPLE)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"depl {__version__}")
        raise typer.Exit


@app.callback()
def depl(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Tag documents with labels from a very large label set, and get the rare ones right."""


def main() -> None:
    """Run ``depl``; an error that the user can fix is one message and exit code 2."""
    try:
        app()
        sys.stdout.flush()  # or a full disk would show when Python ends
    except DeplError as error:
        _refuse(str(error))
    except OSError as error:  # of standard output, or of a file that nobody foresaw
        _forget_output()
        where = error.filename or "standard output"
        _refuse(f"Cannot read or write {where}: {error.strerror or error}.")
    except SystemExit as end:
        if end.code == 130:  # what typer silently makes of a KeyboardInterrupt
            raise KeyboardInterrupt from None
        raise


def _refuse(message: str) -> NoReturn:
    err.print(Text.assemble(("Error: ", "bold red"), message))
    sys.exit(2)


def _forget_output() -> None:
    """Drop what is still in the buffer: Python would write it, and fail again, when it ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
