"""Names from outside on the terminal: shown as they are, and never obeyed."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console
from rich.table import Table
from typer.testing import CliRunner

from depl.cli.app import app, main
from depl.cli.console import err, moment, out, print_entry, visible
from depl.cli.next_steps import print_next
from depl.core import progress
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


def test_a_bar_goes_when_its_work_is_done():
    terminal = Console(file=io.StringIO(), force_terminal=True, width=60)
    with progress.shown(terminal):
        assert list(progress.track([1, 2], "Reading", total=2)) == [1, 2]
        with progress.bar("Training", total=3) as tell:
            tell(3, "")
        with progress.busy("fusion"):
            [task] = progress._bars.tasks
            terminal.print("fusion is at work")
            assert (task.description, task.total) == ("fusion", None)
        assert not progress._bars.tasks
    assert "0:00:00" in terminal.file.getvalue()


@pytest.fixture
def narrow(monkeypatch):
    """What is printed on standard error, which is a terminal of 30 columns."""
    monkeypatch.setattr(err, "_force_terminal", True)
    monkeypatch.setattr(err, "_width", 30)
    monkeypatch.setattr(err, "_color_system", None)
    monkeypatch.setattr(err, "_file", file := io.StringIO())
    return file


def test_lines_are_broken_between_words_on_a_terminal(narrow):
    path = "/a/path/that/is/longer/than/the/terminal.csv"
    err.print(f"  [bold]0.35[/]  a label of several words\nSee {path}.")
    print_entry(err, "  labels  ", "Schlagwörter, split at a semicolon")
    assert [line.rstrip() for line in narrow.getvalue().splitlines()] == [
        "  0.35  a label of several",
        "  words",
        "See",
        f"{path}.",
        "  labels  Schlagwörter, split",
        "          at a semicolon",
    ]


def test_commands_to_copy_are_left_whole(narrow, fitted_run):
    print_next(fitted_run)
    assert f"  depl evaluate {fitted_run} CORPUS  all figures, and" in narrow.getvalue()


def test_a_line_is_a_line_in_a_pipe(monkeypatch):
    for console in (out, err):
        monkeypatch.setattr(console, "_width", None)
    words = "word " * 100
    with err.capture() as captured:
        err.print(words)
        print_entry(err, "  labels  ", words)
    assert captured.get().count("\n") == 2
    table = Table("name", "words", box=None)
    table.add_row("wine", words)
    with out.capture() as captured:
        out.print(table)
    assert captured.get().count("\n") == 2  # with its head


def test_errors_are_broken_between_words_too(narrow, monkeypatch):
    monkeypatch.setattr("sys.argv", ["depl", "check", "nowhere"])
    with pytest.raises(SystemExit):
        main()
    assert narrow.getvalue().startswith("Error: There is no run folder\nnowhere.")


def test_a_command_that_is_missing_is_named():
    done = CliRunner().invoke(app, ["labels", "runs/law"], env={"COLUMNS": "120"})
    assert done.exit_code == 2
    assert "give one of list, show, add" in done.stderr


def test_help_has_no_ranges():
    for command in ("serve", "predict", "review"):
        assert "<=" not in CliRunner().invoke(app, [command, "--help"]).stdout.replace(">=", "<=")


def test_times_are_those_of_this_machine(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert moment("2026-11-19T21:18:57.123+00:00") == "2026-11-20 06:18:57"
    finally:
        monkeypatch.undo()
        time.tzset()


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
