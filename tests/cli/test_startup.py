"""`import depl` and help bring no heavy library: that is what keeps them fast."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

HEAVY = (
    "torch",
    "transformers",
    "numpy",
    "numba",
    "sklearn",
    "scipy",
    "pyarrow",
    "matplotlib",
    "simplemma",
    "joblib",
    "safetensors",
    "fastapi",
    "uvicorn",
)

# The commands are taken from the app itself, so that none is forgotten.
HELP = """
import sys
import typer
from depl.cli.app import app

def commands(group):
    for name, command in group.commands.items():
        arguments = [p.metavar for p in group.params if p.param_type_name == "argument"]
        yield [*arguments, name]
        if hasattr(command, "commands"):
            yield from ([*arguments, name, *below] for below in commands(command))

found = [[], *commands(typer.main.get_command(app))]
for command in found:
    try:
        app([*command, "--help"])
    except SystemExit as end:
        assert end.code == 0, (command, end.code)
print("COMMANDS", *(" ".join(command) for command in found), sep="|")
"""

IMPORT = """
import sys
import depl
assert depl.__version__
dir(depl)
"""


def loaded(script: str) -> tuple[set[str], str]:
    """The heavy libraries that are in memory when the script has run, and what it printed."""
    report = f"print('LOADED', *(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", f"{script}\n{report}"], capture_output=True, text=True, check=True
    )
    printed, _, names = done.stdout.rpartition("LOADED")
    return set(names.split()), printed


def test_help_of_every_command_brings_no_heavy_library():
    heavy, printed = loaded(HELP)
    assert heavy == set()
    seen = printed.rpartition("COMMANDS|")[2].strip().split("|")
    assert {"", "fit", "explain", "serve", "theory", "labels", "labels RUN add"} <= set(seen)
    # Rich would take what is in brackets for markup.
    assert "pip install 'depl[ray]'" in re.sub(r"[│\s]+", " ", printed)


def test_import_brings_no_heavy_library():
    assert loaded(IMPORT)[0] == set()


@pytest.mark.skipif(sys.platform != "linux", reason="asks the OpenMP library of Linux wheels")
@pytest.mark.parametrize("asked", [None, "ACTIVE"])
def test_openmp_threads_sleep_while_they_wait_unless_told_otherwise(asked):
    script = """
import sys
import depl.pipeline
assert "sklearn" not in sys.modules  # its OpenMP library reads the setting when it is loaded
import sklearn.ensemble
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


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_signal_while_modules_are_imported_has_its_exit_code_too(tmp_path):
    # Dataclasses are made by code in strings; where that is interrupted, Python ends by SIGINT.
    (tmp_path / "interrupted.py").write_text(
        "import depl.__main__, depl.cli.app\n"
        "code = 'import os, signal; os.kill(os.getpid(), signal.SIGTERM)'\n"
        "depl.cli.app.main = lambda: exec(code)\n"
        "depl.__main__.main()\n"
    )
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "interrupted"]
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": paths}
    )
    assert (done.returncode, done.stderr.strip()) == (143, "Terminated.")


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_an_interrupted_command_does_not_wait_for_threads_that_never_end():
    script = (
        "import depl.__main__, depl.cli.app, os, signal, threading\n"
        "threading.Thread(target=threading.Event().wait).start()\n"
        "depl.cli.app.main = lambda: os.kill(os.getpid(), signal.SIGTERM)\n"
        "depl.__main__._PATIENCE = 0.1\n"
        "depl.__main__.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr.strip()) == (143, "Terminated.")
