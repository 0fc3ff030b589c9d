"""What the head of a report says of its runs: when, by what, with which settings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from depl.cli.console import count


def report_details(runs: Sequence[Path]) -> dict[str, str]:
    """The date and the version, and of each run its place, its training documents and settings."""
    import depl
    from depl.run.folder import Run

    now = datetime.now().astimezone()
    details = {"date": f"{now:%Y-%m-%d %H:%M %Z}", "depl": depl.__version__}
    for number, path in enumerate(runs, 1):
        run = Run.open(path)
        which = f" {number}" if len(runs) > 1 else ""
        counts, n = run.train_counts()
        details[f"run{which}"] = str(path)
        details[f"trained on{which}"] = f"{count(n, 'document')}, {count(len(counts), 'label')}"
        details[f"settings{which}"] = run.config().in_words
    return details
