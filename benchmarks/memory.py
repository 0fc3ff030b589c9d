"""What a command takes, with all its processes: memory and CPU seconds, stage by stage for a fit.

    python benchmarks/memory.py --run RUN -- depl fit CORPUS --out RUN --config sparse
    python benchmarks/memory.py -- depl predict RUN texts.jsonl --output labels.jsonl

Memory that is the processes' own is told apart from pages of files that they have mapped: the
system takes the latter back when it needs room. The last line says how much was the processes' own
when a tenth, half and nearly all of the time had passed: memory that grows with the input shows
there. With --limit, a command whose own memory grows beyond so many GiB is ended.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

EVERY = 0.1  # seconds between two looks
MOMENTS = (0.1, 0.5, 0.99)  # of the time that a command took


@dataclass
class Taken:
    """What a stage has taken so far."""

    seconds: float = 0.0
    cpu: float = 0.0
    own: float = 0.0
    mapped: float = 0.0


def tree(pid: int) -> Iterator[int]:
    """A process and those that it has started, and so on."""
    yield pid
    try:
        tasks = [*Path(f"/proc/{pid}/task").iterdir()]
        children = [x for task in tasks for x in (task / "children").read_text().split()]
    except OSError:  # it has ended
        return
    for child in children:
        yield from tree(int(child))


def memory(pid: int) -> tuple[float, float]:
    """GiB that are the processes' own, and GiB of files that they have mapped."""
    own = mapped = 0
    for process in tree(pid):
        try:
            lines = Path(f"/proc/{process}/status").read_text().splitlines()
        except OSError:
            continue
        kib = {x[: x.index(":")]: int(x.split()[1]) for x in lines if x.startswith("Rss")}
        own += kib.get("RssAnon", 0) + kib.get("RssShmem", 0)
        mapped = max(mapped, kib.get("RssFile", 0))  # they share them
    return own / 2**20, mapped / 2**20


def cpu_seconds(pid: int) -> float:
    """Of all processes, and of those that have ended."""
    ticks = 0
    for process in tree(pid):
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def stage(run: Path | None) -> str:
    """Which stage of a run is being made; what comes before the first is reading."""
    if run is None:
        return "all"
    making = [x.name for x in run.glob(".*.tmp") if x.is_dir()]
    return making[0][1:-4] if making else "reading"


def watch(
    command: list[str],
    run: Path | None,
    limit: float | None,
    found: dict[str, Taken],
    seen: list[tuple[float, float]],
) -> int:
    """Run a command, note what each stage takes, and give its exit code.

    ``seen`` gets the seconds since the start and the GiB of its own, at every look.
    """
    child = subprocess.Popen(command)
    begun = before = time.monotonic()
    spent, name = 0.0, stage(run)
    while child.poll() is None:
        own, mapped = memory(child.pid)
        now, cpu = time.monotonic(), max(spent, cpu_seconds(child.pid))
        seen.append((now - begun, own))
        making = stage(run)
        name = making if making != "reading" or name == "reading" else name
        taken = found.setdefault(name, Taken())
        taken.seconds += now - before
        taken.cpu += cpu - spent
        taken.own, taken.mapped = max(taken.own, own), max(taken.mapped, mapped)
        before, spent = now, cpu
        if limit is not None and own > limit:
            print(f"more than {limit} GiB", file=sys.stderr)
            child.terminate()
            child.wait()
        time.sleep(EVERY)
    return child.returncode


def at_moments(seen: list[tuple[float, float]]) -> str:
    """GiB of its own at some moments; at each the most of a hundredth of the time around it."""
    whole = seen[-1][0] if seen else 0.0
    said = []
    for moment in MOMENTS:
        near = [own for t, own in seen if abs(t - moment * whole) <= 0.005 * whole]
        said.append(f"{max(near, default=0.0):.3f} after {moment:.0%}")
    return f"GiB of its own: {', '.join(said)} of the time"


def main() -> None:
    """Run the command and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", type=Path, help="the run folder that the command makes")
    parser.add_argument("--limit", type=float, help="GiB of its own that the command may take")
    parser.add_argument("--json", type=Path, help="keep the figures in this file, too")
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    found: dict[str, Taken] = {}
    seen: list[tuple[float, float]] = []
    try:
        code = watch(args.command, args.run, args.limit, found, seen)
    except KeyboardInterrupt:  # what is known until here
        code = 130
    print("| stage | seconds | CPU s | GiB | GiB with mapped files |")
    print("| --- | --- | --- | --- | --- |")
    for name, taken in found.items():
        both = taken.own + taken.mapped
        times = f"{taken.seconds:.0f} | {taken.cpu:.0f}"
        print(f"| {name} | {times} | {taken.own:.2f} | {both:.2f} |")
    print("\n" + at_moments(seen))
    if args.json is not None:
        args.json.write_text(json.dumps({name: vars(x) for name, x in found.items()}, indent=1))
    sys.exit(code)


if __name__ == "__main__":
    main()
