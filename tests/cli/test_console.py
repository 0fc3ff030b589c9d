"""Names from outside on the terminal: shown as they are, and never obeyed."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from typer.testing import CliRunner

from depl.cli.app import app
from depl.cli.console import err, out, visible
from depl.core.corpus import Corpus, Dataset, Label, LabelSet
from depl.pipeline.fit import fit
from depl.readers import write

HOSTILE = "[/x] \x1b[2Jwine\u202e [red]"
SHOWN = r"[/x] \x1b[2Jwine\u202e [red]"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A run and a corpus whose paths, ids, names and texts hold markup and control characters."""
    folder = tmp_path_factory.mktemp("console") / HOSTILE  # a folder "[" and one in it
    folder.mkdir(parents=True)
    labels = LabelSet([Label(HOSTILE, HOSTILE, (f"other {HOSTILE}",)), Label("b", "olive oil")])
    texts = [f"{HOSTILE} sparkling wine {i}" for i in range(12)]
    texts += [f"virgin olive oil {i}" for i in range(12)]
    corpus = Corpus.from_rows(
        [f"{HOSTILE}{i}" for i in range(24)], texts, [[i // 12] for i in range(24)], labels
    )
    write(
        Dataset(labels, {"train": corpus, "dev": corpus}, name=HOSTILE), folder / "[red]\x1b corpus"
    )
    return fit(corpus, folder / "run").path, folder / "[red]\x1b corpus"


def test_every_command_survives_markup_and_control_characters(hostile, tmp_path):
    run, corpus = hostile
    (tmp_path / HOSTILE).parent.mkdir()
    (tmp_path / f"{HOSTILE}.jsonl").write_text('{"text": "sparkling wine"}\n{oops\n')
    commands = [
        ("fit", run),
        ("fit", corpus, "--out", tmp_path / HOSTILE, "--until", "features"),
        ("info", run),
        ("info", corpus),
        ("evaluate", run, corpus, "--split", "dev"),
        ("labels", run, "list"),
        ("labels", run, "show", HOSTILE),
        ("explain", run, f"sparkling wine {HOSTILE}"),
        ("predict", run, tmp_path / f"{HOSTILE}.jsonl"),
        ("predict", run, tmp_path / f"{HOSTILE}.jsonl", "--output", tmp_path / f"{HOSTILE}.csv"),
    ]
    for command in commands:
        done = CliRunner().invoke(app, list(map(str, command)))
        assert done.exit_code == 0, (command, done.exception)
        assert "\x1b" not in done.output, command
        assert "\u202e" not in done.output, command
        assert "[/x]" in done.output or "[red]" in done.output, command


def test_control_characters_are_shown_and_styles_of_our_own_are_kept():
    for console in (out, err):
        with console.capture() as captured:
            console.print("[bold]wine[/]", visible("\x1b\x9b\x07\x00\ud800"))
        assert captured.get() == "wine \\x1b\\x9b\\x07\\x00\\ud800\n"
    assert visible("Käse\n日本 😀") == "Käse\n日本 😀"
    assert visible(HOSTILE) == SHOWN


def test_a_terminal_gets_colours_but_no_foreign_sequence():
    console = Console(
        file=io.StringIO(), force_terminal=True, color_system="standard", highlight=False
    )
    console._render_hooks.extend(out._render_hooks)
    console.print(f"[red]a label[/] {'x' + chr(27) + '[2J'}")
    printed = console.file.getvalue()
    assert "\x1b[31ma label" in printed
    assert "\\x1b[2J" in printed
    assert "\x1b[2J" not in printed


def test_a_narrow_terminal_gets_all_reports_in_several_tables(fitted_run, dataset, monkeypatch):
    from depl.api import evaluate_parts
    from depl.cli.evaluate import print_table
    from depl.model.classifier import Classifier

    reports = evaluate_parts(Classifier.load(fitted_run), dataset.dev)
    monkeypatch.setattr(out, "_width", 60)
    with out.capture() as capture:
        print_table(reports, title="laws")
    said = capture.get()
    assert "…" not in said
    assert max(map(len, said.splitlines())) <= 60
    assert said.count("labels  metric") == 3
    for report in reports:
        assert f"{report.scores['PSP@5']:.2f}" in said
        assert report.name.split()[-1] in said
