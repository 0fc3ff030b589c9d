"""Help and `import depl` stay fast: they bring no heavy library."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "torch",
    "transformers",
    "numba",
    "sklearn",
    "scipy",
    "pyarrow",
    "matplotlib",
    "simplemma",
    "joblib",
    "safetensors",
)

HELP = """
import sys
from depl.cli.app import app
for arguments in ARGUMENTS:
    try:
        app(arguments)
    except SystemExit as end:
        assert end.code == 0, end.code
"""

IMPORT = """
import sys
import depl
assert depl.__version__
dir(depl)
"""


def loaded(script: str) -> set[str]:
    """The heavy libraries that are in memory when the script has run."""
    report = f"print('LOADED', *(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", f"{script}\n{report}"], capture_output=True, text=True, check=True
    )
    return set(done.stdout.rpartition("LOADED")[2].split())


def test_help_of_every_command_brings_no_heavy_library():
    verbs = ["init", "fit", "evaluate", "predict", "info", "demo"]
    arguments = [["--help"], *([verb, "--help"] for verb in verbs)]
    assert loaded(HELP.replace("ARGUMENTS", repr(arguments))) == set()


def test_import_brings_no_heavy_library():
    assert loaded(IMPORT) == set()


@pytest.mark.parametrize(
    "script",
    [HELP.replace("ARGUMENTS", "[['--help']]"), IMPORT],
    ids=["depl --help", "import depl"],
)
def test_startup_takes_less_than_four_tenths_of_a_second_of_cpu(script: str):
    resource = pytest.importorskip("resource")

    def seconds() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds() for _ in range(3)) < 0.4
