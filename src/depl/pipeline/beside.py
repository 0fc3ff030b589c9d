"""The classifier, trained by a process of its own on a GPU while this one goes on with the SVMs.

It needs the tokens of the documents and which of them are held out, and nothing that the processor
computes for minutes. So these come first, and then the two halves of a run are made at once. What
the other process makes is taken over when its turn comes; if it could not make it, this one does,
and says what is wrong.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from depl.pipeline.stages import STAGE_NAMES, STAGES, Stage
from depl.pipeline.work import Work
from depl.run.config import Config
from depl.run.folder import Run

(STAGE,) = (stage for stage in STAGES if stage.name == "classifier")

_DRIVER = Path("/proc/driver/nvidia")  # there wherever a process can have one of its GPUs
_START = "import sys; sys.path[:] = {path!r}; from depl.pipeline.beside import work; work()"


def pays(config: Config, until: str | None) -> bool:
    """Whether a fit with these settings has something to train on a GPU beside its other work."""
    asked = until is None or STAGE_NAMES.index(until) >= STAGE_NAMES.index(STAGE.name)
    trains = config.encoder.training == "full" and config.classifier.epochs > 0
    return asked and trains and config.device != "cpu" and _DRIVER.exists()


def needs_first(stages: Sequence[Stage]) -> list[Stage]:
    """The same stages, but those that the classifier needs before all others."""
    early = set(STAGE.needs)
    for stage in reversed(stages):
        if stage.name in early:
            early.update(stage.needs)
    return sorted(stages, key=lambda stage: stage.name not in early)


class Beside:
    """A stage in the making by another process, which ends with this one.

    Parameters
    ----------
    run : Run
        With everything that the stage needs.
    scratch : Path
        Where its checkpoints are, and where its result waits to be taken over.
    """

    def __init__(self, run: Run, scratch: Path) -> None:
        self._start = time.perf_counter()
        self._result = scratch / "result"
        shutil.rmtree(self._result, ignore_errors=True)
        self._result.mkdir(parents=True)
        folders = [str(path.resolve()) for path in (run.path, self._result, scratch)]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START.format(path=sys.path), *folders],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,  # if it fails, this process says why
        )

    def take_over(self, work: Work) -> str | None:
        """Wait for the stage, and put it where it belongs; a remark, or None if there is none."""
        if self._process.wait() != 0:
            return None
        for path in self._result.iterdir():
            shutil.move(path, work.folder)
        return f"in {time.perf_counter() - self._start:.0f} s, beside the stages before"

    def end(self) -> None:
        """Stop; nothing is lost but what came after the last checkpoint."""
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()


# In the other process


def work() -> None:
    """Make the stage; end when nobody waits for it any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    threading.Thread(target=_end_with_parent, daemon=True).start()
    path, folder, scratch = (Path(argument) for argument in sys.argv[1:])
    run = Run.open(path)
    STAGE.make(Work(run, run.config(), folder, scratch))


def _end_with_parent() -> None:
    os.read(sys.stdin.fileno(), 1)  # nothing is ever written: it returns when the pipe is closed
    os._exit(1)
