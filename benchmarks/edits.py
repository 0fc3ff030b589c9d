"""What an edit of labels costs, from the first to the ten-thousandth, and how long they take to load.

    python benchmarks/edits.py RUN [--edits 10000]

Copies RUN without its edits into a temporary folder and edits the copy: a label is added, described
and renamed, others are added and undone or removed, over and over. After every edit the new state is
made, as the service does. Printed are the median of the first hundred edits and of the last hundred, their
ratio, and the seconds to load the run with all edits, less the seconds to load it without any.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from depl import Classifier, Label

_SOME = 100


def edits(model: Classifier, n: int) -> list[float]:
    """Make n edits of all kinds; the seconds that each took."""
    seconds = []
    for i in range(n):
        start = time.perf_counter()
        _edit(model, i)()
        assert model.state.labels
        seconds.append(time.perf_counter() - start)
    return seconds


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


def loading(run: Path) -> float:
    """Seconds to load a run, the best of three."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        assert Classifier.load(run).state.labels
        times.append(time.perf_counter() - start)
    return min(times)


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
        first, last = (statistics.median(some) for some in (took[:_SOME], took[-_SOME:]))
        print(f"first {_SOME} edits  {1000 * first:8.2f} ms each (median)")
        print(f"last {_SOME} edits   {1000 * last:8.2f} ms each, {last / first:.2f} times the first")
        print(f"all {args.edits:,} edits {sum(took):8.1f} s")
        print(f"loading them     {loading(run) - bare:8.2f} s, beside {bare:.2f} s for the run itself")


if __name__ == "__main__":
    main()
