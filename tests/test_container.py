"""The Dockerfile and the compose file fit the repository: files that exist, options that exist."""

from __future__ import annotations

import re
from pathlib import Path

from typer.testing import CliRunner

from depl.cli.app import app

ROOT = Path(__file__).parents[1]


def copied() -> list[str]:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    found = [line.split()[1:-1] for line in lines if line.startswith("COPY ")]
    return [name for names in found for name in names if not names[0].startswith("--from")]


def test_what_is_copied_is_there_and_not_ignored():
    kept = (ROOT / ".dockerignore").read_text().splitlines()
    assert kept[0] == "*"
    assert copied()
    for name in copied():
        assert (ROOT / name).exists(), name
        assert f"!{name}" in kept, name


def test_the_commands_have_options_that_exist():
    said = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200"}).output
    for file in ("Dockerfile", "compose.yaml"):
        for command in re.findall(r'\["serve".*\]', (ROOT / file).read_text()):
            for option in re.findall(r'"(--[a-z-]+)"', command):
                assert option in said, f"{file}: {option}"


def test_the_lock_file_has_what_the_service_needs():
    locked = (ROOT / "requirements.lock").read_text()
    project = (ROOT / "pyproject.toml").read_text()
    needed = re.search(r"^serve = \[(.*)\]$", project, re.MULTILINE)
    assert needed
    for name in re.findall(r'"([a-z0-9-]+)', needed[1]):
        spelt = name.replace("-", "[-_]")
        assert re.search(rf"^{spelt}==", locked, re.MULTILINE | re.IGNORECASE), name
