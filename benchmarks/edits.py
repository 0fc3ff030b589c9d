"""What an edit of labels costs, the first and the ten-thousandth, and how long all take to load.

    python benchmarks/edits.py RUN [--edits 10000]

Copies RUN without its edits into a temporary folder and edits the copy: a label is added, described
and renamed, others are added and undone or removed, over and over. After every edit the new state
is made, as the service does. Printed are the medians of the first and of the last hundred edits in
CPU time and on the clock, which includes waiting for the disk, and what it takes to load them all.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from depl import Classifier, Label

_SOME = 100


def clocks() -> np.ndarray:
    """CPU time, and what the clock shows."""
    return np.array([time.process_time(), time.perf_counter()])


def edits(model: Classifier, n: int) -> np.ndarray:
    """Make n edits of all kinds; the seconds that each took, by both clocks."""
    took = np.empty((n, 2))
    for i in range(n):
        start = clocks()
        _edit(model, i)()
        assert model.state.labels
        took[i] = clocks() - start
    return took


def _edit(model: Classifier, i: int) -> Callable[[], object]:
    new = Label(f"new-{i}", f"storage licence number {i}", (f"permit {i}",))
    last = f"new-{i - i % 8}"
    kinds: list[Callable[[], object]] = [
        lambda: model.add_labels([new]),
        lambda: model.describe_label(last, f"permission to keep goods, kind {i}"),
        lambda: model.rename_label(last, f"warehouse permit {i}"),
        lambda: model.add_labels([new]),
        model.undo,
        lambda: model.add_labels([new]),
        lambda: model.remove_label(f"new-{i - 1}"),
        lambda: model.add_labels([new], descriptions={new.id: f"goods in store {i}"}),
    ]
    return kinds[i % 8]


def loading(run: Path) -> np.ndarray:
    """Seconds to load a run, the best of three."""
    took = []
    for _ in range(3):
        start = clocks()
        assert Classifier.load(run).state.labels
        took.append(clocks() - start)
    return np.min(took, axis=0)


def main() -> None:
    """Edit, and print what it cost."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--edits", type=int, default=10_000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        shutil.copytree(args.run, run)
        shutil.rmtree(run / "labels", ignore_errors=True)
        bare = loading(run)
        took = edits(Classifier.load(run), args.edits)
        first, last = (np.median(some, axis=0) for some in (took[:_SOME], took[-_SOME:]))
        more = loading(run) - bare
    print(f"{'':24}{'CPU':>10}{'clock':>10}")
    for name, (cpu, clock), unit in (
        (f"first {_SOME} edits, each", 1000 * first, "ms"),
        (f"last {_SOME} edits, each", 1000 * last, "ms"),
        ("ratio", last / first, ""),
        (f"loading {args.edits:,} edits", more, "s"),
    ):
        print(f"{name:24}{cpu:10.2f}{clock:10.2f} {unit}")


if __name__ == "__main__":
    main()
