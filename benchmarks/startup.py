"""How long Python takes to start with depl, in one run beside what cannot be avoided.

    python benchmarks/startup.py [--repeats 5]

CPU seconds of fresh processes, the least of several runs of each: `import depl` and `depl --help`
beside a Python that does nothing and one that imports numpy, which neither of the two may need.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import depl": ["-c", "import depl"],
    "depl --version": ["-m", "depl", "--version"],
    "depl --help": ["-m", "depl", "--help"],
    "depl predict --help": ["-m", "depl", "predict", "--help"],
}


def cpu_seconds(arguments: list[str]) -> float:
    """User and system time of one process, which may keep its bytecode for the next."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], capture_output=True, check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print a line per command: CPU seconds, and ratios to the first two."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    # In turns, so that a busy moment of the machine does not hit one command alone.
    rounds = [{name: cpu_seconds(args) for name, args in COMMANDS.items()} for _ in range(repeats)]
    least = {name: min(times[name] for times in rounds) for name in COMMANDS}
    for name, seconds in least.items():
        bare, numpy = seconds / least["python -c pass"], seconds / least["import numpy"]
        print(f"{name:<22}{seconds:6.3f} s {bare:6.1f} x bare Python {numpy:6.2f} x import numpy")


if __name__ == "__main__":
    main()
