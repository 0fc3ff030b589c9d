"""How help is laid out: metavars as they are written, and no type where there is nothing to give.

Typer puts ``<bool>`` beside flags, ``<list[Path]>`` beside arguments and braces around them, and
``[x>=1]`` beside numbers, which a message says where it matters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

if TYPE_CHECKING:
    from typer._click.core import Command as ClickCommand
    from typer._click.core import Context, Parameter


class _Argument(TyperArgument):
    """An argument whose metavar says everything."""

    def display_type_rich(self, ctx: Context) -> None:
        return None

    def get_usage_pieces(self, ctx: Context) -> list[str]:
        return [self.metavar or self.name.upper()]


class _Option(TyperOption):
    """An option without the range of its number."""

    def _get_number_range_help_str(self) -> str | None:
        return None


def _plain(params: list[Parameter]) -> list[Parameter]:
    for param in params:
        if isinstance(param, TyperArgument):
            param.__class__ = _Argument  # typer has no way to choose the class of a parameter
        elif isinstance(param, TyperOption):
            param.__class__ = _Option
            if param.is_flag:
                param.metavar = ""
    return params


class Command(TyperCommand):
    """A command with plain help."""

    def get_params(self, ctx: Context) -> list[Parameter]:
        """All parameters, ``--help`` included."""
        return _plain(super().get_params(ctx))


class Group(TyperGroup):
    """A group of commands with plain help, which names them where none is given."""

    def invoke(self, ctx: Context) -> object:
        """Run the command."""
        if not ctx.args and not ctx._protected_args:
            ctx.fail(f"Missing command: give one of {', '.join(self.list_commands(ctx))}.")
        return super().invoke(ctx)

    def resolve_command(
        self, ctx: Context, args: list[str]
    ) -> tuple[str | None, ClickCommand | None, list[str]]:
        """Find the command; where RUN was left out, its name stands in the place of the run."""
        run = ctx.params.get("run")
        forgotten = run is not None and self.get_command(ctx, str(run)) is not None
        if forgotten and self.get_command(ctx, args[0]) is None:
            path = ctx.command_path.removesuffix(f" {run}")
            ctx.fail(
                f"{str(run)!r} stands where the run folder belongs, which comes first: "
                f"{path} RUN {run} {' '.join(args)}"
            )
        return super().resolve_command(ctx, args)

    def get_params(self, ctx: Context) -> list[Parameter]:
        """All parameters, ``--help`` included."""
        return _plain(super().get_params(ctx))
