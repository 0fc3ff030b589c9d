"""The entry point of ``depl`` and ``python -m depl``.

Ctrl-C and SIGTERM are obeyed before anything else is imported, which takes a moment.
"""

from __future__ import annotations

import sys

from depl.cli.interrupts import last_words, obey_signals


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
        print(f"\n{said}", file=sys.stderr)  # noqa: T201 - a console is not there yet
        sys.exit(code)


if __name__ == "__main__":
    main()
