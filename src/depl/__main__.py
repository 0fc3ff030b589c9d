"""The entry point of ``depl`` and ``python -m depl``.

Ctrl-C and SIGTERM are obeyed before anything else is imported, which takes a moment.
"""

from __future__ import annotations

import os
import sys
import time
from threading import Thread, main_thread

from depl.cli.interrupts import last_words, obey_signals

_PATIENCE = 5.0  # seconds


def main() -> None:
    """Run ``depl``; a signal ends it with one sentence and the exit code that shells expect."""
    obey_signals()
    try:
        from depl.cli.app import main

        main()
    except KeyboardInterrupt:
        # Where code in a string is interrupted, as dataclasses have it while they are imported,
        # Python would end itself by SIGINT. It forgets that with the next code in a string.
        exec("")
        said, code = last_words()
        print(f"\n{said}", file=sys.stderr, flush=True)  # noqa: T201 - a console is not there yet
        Thread(target=_end, args=(code,), daemon=True).start()
        sys.exit(code)


def _end(code: int) -> None:
    """End this process soon after its main thread, whatever the other threads do.

    Python waits for them, for ever where a signal came between the start of one and its pool's
    taking note of it. What is to be kept is on the disk by now.
    """
    main_thread().join()
    time.sleep(_PATIENCE)
    os._exit(code)


if __name__ == "__main__":
    main()
