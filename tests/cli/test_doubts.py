"""What is said where something is wrong from the start: with the table, or with the command."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from depl.cli.app import app
from depl.core.errors import CorpusError, DeplError, RunError

CODES = ("0101.21", "0402.10", "2204.21")


def said(*arguments: object) -> str:
    """Standard error of a command, in one line."""
    result = CliRunner().invoke(app, list(map(str, arguments)))
    if isinstance(result.exception, DeplError):
        raise result.exception
    return " ".join(result.stderr.replace("│", " ").split())


def table(path: Path, n: int, label) -> Path:
    rows = [f"{i},goods of kind {i},{label(i)}" for i in range(n)]
    path.write_text("\n".join(["Nr,Description,Code", *rows]))
    return path


@pytest.mark.parametrize(
    ("n", "label", "words"),
    [
        (40, lambda i: "0101.21", "every document has the label '0101.21', so there is nothing"),
        (40, lambda i: f"x{i}", "every document has a label of its own, so nothing can be learnt"),
        (3, lambda i: CODES[i % 2], "3 documents are very few to learn from"),
        (2, lambda i: CODES[i], "2 documents are very few to learn from"),
        (40, lambda i: CODES[i % 3], ""),
    ],
)
def test_a_table_that_teaches_little_is_noticed(tmp_path: Path, n: int, label, words: str):
    path = table(tmp_path / "goods.csv", n, label)
    for command in (["info", path], ["fit", path, "--out", tmp_path / "run", "--until", "corpus"]):
        message = said(*command)
        assert words in message
        assert ("check" in message) == bool(words)


def test_a_table_for_measuring_may_have_any_labels(own_run: Path, tmp_path: Path):
    path = tmp_path / "few.csv"
    path.write_text("text,labels\nsparkling wine of grapes,wine\n")
    assert "check" not in said("evaluate", own_run, path)


@pytest.mark.parametrize("command", ["info", "fit"])
@pytest.mark.parametrize("header", ["Nr,Description,Code", "a,b"])
def test_a_table_without_rows_says_so(tmp_path: Path, command: str, header: str):
    path = tmp_path / "goods.csv"
    path.write_text(header + "\n")
    more = ["--out", tmp_path / "run"] if command == "fit" else []
    with pytest.raises(CorpusError, match=r"There is no record in .*goods\.csv"):
        said(command, path, *more)


@pytest.mark.parametrize(
    ("arguments", "right"),
    [
        (["labels", "show", "0101.21"], "depl labels RUN show 0101.21"),
        (["feedback", "list", "x"], "depl feedback RUN list x"),
    ],
)
def test_a_run_that_was_forgotten_is_asked_for(arguments: list[str], right: str):
    result = CliRunner().invoke(app, arguments, prog_name="depl", env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert right in result.stderr


def test_a_file_in_the_place_of_the_run(tmp_path: Path, own_run: Path):
    path = table(tmp_path / "goods.csv", 3, lambda i: "x")
    with pytest.raises(RunError, match="is a file, where the run folder belongs"):
        said("predict", path, own_run)


def test_feedback_without_a_decision_says_how_to_give_one(own_run: Path):
    with pytest.raises(CorpusError, match="--accept LABEL, wrong with --reject LABEL"):
        said("feedback", own_run, "add", "sparkling wine")


@pytest.fixture(scope="module")
def customs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose labels are codes, one for each document."""
    folder = tmp_path_factory.mktemp("customs")
    words = {"0101.21": "breeding mare", "0402.10": "milk powder", "2204.21": "bottled wine"}
    rows = [f"{i},{words[CODES[i % 3]]} lot {i},{CODES[i % 3]}" for i in range(90)]
    (folder / "goods.csv").write_text("\n".join(["Nr,Description,Code", *rows]))
    message = said("fit", folder / "goods.csv", "--out", folder / "run")
    assert "of the documents the label is among the first 5 suggestions, and for " in message
    (folder / "new.csv").write_text("Nr,Description\n007,breeding mare\n")
    return folder


@pytest.mark.parametrize(("suffix", "warned"), [("csv", True), ("xlsx", False)])
def test_codes_keep_their_zeros_on_the_way_out(customs: Path, suffix: str, warned: bool):
    from depl.readers import read

    target = customs / f"out.{suffix}"
    options = ["--output", target, "--overwrite", "--wide", *(["--excel"] if warned else [])]
    message = said("predict", customs / "run", customs / "new.csv", "-k", "1", *options)
    assert ("Excel drops the zeros" in message) == warned
    found = read(target, text="Description", labels="label_1", id="Nr")
    assert (found.train.ids, found.labels.ids) == (["007"], ["0101.21"])


def test_reports_in_sentences_where_each_document_has_one_label():
    from depl.evaluation.scores import Report
    from depl.evaluation.sentences import quality, summary

    bands = {name: {"labels_in_test": 0} for name in ("0", "1-9", "10-99", "100+")}
    one = Report("", 9, 9, (1, 5), {"P@1": 80.0, "P@5": 18.0, "R@5": 90.0}, bands, (), (1, 1))
    words = "for 90 % of the documents the label is among the first 5 suggestions"
    assert quality(one) == f"{words}, and for 80 % it is the first"
    assert len(summary(one)) == 1
    several = Report("", 9, 9, (1, 5), {"P@1": 80.0, "P@5": 30.0, "R@5": 90.0}, bands, (), (1, 1))
    assert quality(several).startswith("on average 1.5 of 5 suggestions are right")


def test_of_several_sheets_another_may_be_read(tmp_path: Path):
    import xlsxwriter

    path = tmp_path / "goods.xlsx"
    with xlsxwriter.Workbook(path) as book:
        for name in ("2023", "2024"):
            sheet = book.add_worksheet(name)
            sheet.write_row(0, 0, ["Description", "Code"])
            for i in range(1, 40):
                sheet.write_row(i, 0, [f"goods of kind {i} in {name}", CODES[i % 3]])
    assert "sheet '2023' (not read: 2024) sheets --sheet NAME reads another one" in said(
        "info", path
    )
    assert "reads another one" not in said("info", path, "--sheet", "2024")
