"""Help and `import depl` stay fast: they bring no heavy library."""

from __future__ import annotations

import os
import re
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


@pytest.mark.skipif(sys.platform != "linux", reason="asks the OpenMP library of Linux wheels")
@pytest.mark.parametrize("asked", [None, "ACTIVE"])
def test_threads_of_the_boosting_sleep_while_they_wait_unless_told_otherwise(asked):
    script = """
import os, sys
import depl.pipeline
assert "sklearn" not in sys.modules  # its OpenMP library reads the setting when it is loaded
from depl.fusion.trees import boosting_class
boosting_class()
print(os.environ.get("OMP_WAIT_POLICY"))
"""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_"))}
    environment |= {"OMP_DISPLAY_ENV": "TRUE"} | ({"OMP_WAIT_POLICY": asked} if asked else {})
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    policies = re.findall(r"OMP_WAIT_POLICY = '(\w+)'", done.stderr)
    assert policies[-1] == (asked or "PASSIVE")
    assert done.stdout.split() == [str(asked)]
