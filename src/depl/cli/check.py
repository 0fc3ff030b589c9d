"""``depl check``."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import typer
from rich.markup import escape

from depl.cli.console import count, out, print_json, progress
from depl.cli.options import Json, RunFolder

if TYPE_CHECKING:
    from depl.run.folder import Run


def check(run: RunFolder, as_json: Json = False) -> None:
    """Check that no file of a run is damaged or missing; say how to repair what is.

    Sizes and hashes are compared. The exit code is 0 if all is well, and 1 if something is damaged.
    """
    from depl.labels.feedback import FeedbackStore
    from depl.labels.journal import Journal
    from depl.labels.review_queue import ReviewQueue
    from depl.run.folder import Run

    checked = Run.open(run)
    manifest = checked.manifest()
    with progress():
        stages = _check_stages(checked)
    Journal(checked.path).entries()  # an error that names the line, if it is damaged
    FeedbackStore(checked.path).check()
    ReviewQueue(checked.path).check()
    learned = checked.learned.current()
    if learned:
        checked.learned.check(learned)
    damaged = [stage for stage in stages if stage.damaged]
    remedies = list(dict.fromkeys(x for stage in damaged for x in stage.remedies))
    if as_json:
        facts = {"run": str(run), "format_version": manifest["format_version"]}
        facts |= {"depl": manifest.get("depl"), "whole": not damaged}
        print_json(facts | {"stages": [stage.as_json() for stage in stages]})
    else:
        _print(checked, manifest, stages, remedies)
    if damaged:
        raise typer.Exit(1)


@dataclass(frozen=True)
class _Checked:
    """What was found in one stage."""

    stage: str
    files: int
    bytes: int
    damaged: dict[str, str]  # by file: what is wrong with it
    remedies: list[str]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def _check_stages(run: Run) -> list[_Checked]:
    from depl.core.hashes import difference
    from depl.core.progress import bar

    files = {stage: run.files(stage) for stage in run.manifest()["stages"]}
    found, done = [], 0
    total = sum(x.bytes for kept in files.values() for x in kept.values())
    with bar("Checking, in MB", total >> 20) as tell:
        for stage, kept in files.items():
            damaged = {}
            for name, record in kept.items():
                wrong = difference(run.path / stage / name, record, run.path)
                if wrong is not None:
                    damaged[name] = wrong
                done += record.bytes
                tell(done >> 20, stage)
            remedies = sorted({run.remedy(stage, name) for name in damaged})
            size = sum(x.bytes for x in kept.values())
            found.append(_Checked(stage, len(kept), size, damaged, remedies))
    return found


def _print(run: Run, manifest: dict[str, Any], stages: list[_Checked], remedies: list[str]) -> None:
    writer = f", written by depl {manifest['depl']}" if "depl" in manifest else ""
    out.print(
        f"[bold]{escape(str(run.path))}[/]  run format {manifest['format_version']}{escape(writer)}"
    )
    for x in stages:
        state = "[red]damaged[/]" if x.damaged else "[green]whole[/]" if x.files else "[dim]?[/]"
        out.print(
            f"  {x.stage:<14}{count(x.files, 'file'):>10}{x.bytes / 2**20:>11.1f} MB  {state}"
        )
        for name, wrong in x.damaged.items():
            out.print(f"    [red]{escape(name)}[/] {escape(wrong)}")
    if not all(x.files for x in stages):
        out.print(
            f"\nThis format keeps no hashes, so nothing could be checked. `depl fit "
            f"{escape(str(run.path))}` adds them."
        )
    elif not remedies:
        out.print("\nEverything is as it was written.")
    for remedy in remedies:
        out.print(f"\nTo repair, {escape(remedy)}")
