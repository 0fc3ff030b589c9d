"""Files of new labels: examples in them, the forms they may have, and fields that no label has."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from depl.cli.app import app
from depl.core.corpus import Label
from depl.core.errors import CorpusError
from depl.model.classifier import Classifier

# With the separators at which cells of other lists are split.
TEXTS = ["Licences for the storage of goods; who has claimed them | who has not", "[Storage] ends"]
DEPOT = {"id": "dep", "name": "depot", "examples": TEXTS}
BERTH = {"id": "kai", "name": "berth", "alt_names": ["quay"]}


def add(run: Path, *arguments: object) -> str:
    command = ["labels", str(run), "add", *map(str, arguments)]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def added(run: Path) -> list[dict[str, Any]]:
    """The labels of the last edit, as the journal has them."""
    last = (run / "labels" / "journal.jsonl").read_text(encoding="utf-8").splitlines()[-1]
    labels: list[dict[str, Any]] = json.loads(last)["labels"]
    return labels


def as_json_lines(path: Path) -> Path:
    path = path.with_suffix(".jsonl")
    path.write_text(f"{json.dumps(DEPOT)}\n{json.dumps(BERTH)}\n")
    return path


def as_json(path: Path) -> Path:
    path = path.with_suffix(".json")
    path.write_text(json.dumps([DEPOT, BERTH], indent=1))
    return path


def as_csv(path: Path) -> Path:
    path = path.with_suffix(".csv")
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["ID", "Name", "alt_names", "Examples"])
        writer.writerow(["dep", "depot", "", json.dumps(TEXTS)])
        writer.writerow(["kai", "berth", "quay", ""])
    return path


def as_parquet(path: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = path.with_suffix(".parquet")
    pq.write_table(pa.Table.from_pylist([DEPOT | {"alt_names": None}, BERTH]), path)
    return path


@pytest.mark.parametrize("write", [as_json_lines, as_json, as_csv, as_parquet])
def test_examples_in_the_file_are_those_of_the_label(
    own_run: Path, fitted_run: Path, tmp_path: Path, write: Callable[[Path], Path]
):
    said = add(own_run, write(tmp_path / "labels"))
    assert "Added 2 labels with 2 examples." in said
    assert "Note" not in said
    by_file, from_file = Classifier.load(own_run), added(own_run)
    assert by_file.train_counts[-2:].tolist() == [2, 0]
    by_file.undo()
    by_file.add_labels(
        [Label("dep", "depot"), Label("kai", "berth", ("quay",))], examples={"dep": TEXTS}
    )
    assert from_file == added(own_run)


def test_a_cell_without_brackets_is_one_example(own_run: Path, tmp_path: Path):
    (tmp_path / "labels.csv").write_text(f'id,name,examples\ndep,depot,"{TEXTS[0]}"\n')
    assert "Added 1 label with 1 example." in add(own_run, tmp_path / "labels.csv")
    assert added(own_run)[0]["examples"] == TEXTS[:1]


def test_examples_of_both_files_are_taken(own_run: Path, tmp_path: Path):
    more = [{"text": "Quay and berth", "labels": ["kai"]}, {"text": "End", "labels": ["dep"]}]
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(x) + "\n" for x in more))
    said = add(own_run, as_json_lines(tmp_path / "x"), "--examples", tmp_path / "docs.jsonl")
    assert "Added 2 labels with 4 examples." in said
    assert [x["examples"] for x in added(own_run)] == [[*TEXTS, "End"], ["Quay and berth"]]


def test_fields_that_no_label_has_are_pointed_out(own_run: Path, tmp_path: Path):
    path = tmp_path / "labels.csv"
    path.write_text("id,name,Example,notation,empty\ndep,depot,Goods,7,\nkai,berth,,,\n")
    said = " ".join(add(own_run, path).split())
    assert "Added 2 labels." in said
    assert (
        "Note: labels.csv has fields that were not used: 'example' (did you mean 'examples'?), "
        "'notation'. A new label can have id, name, alt_names, broader, description, examples. If "
        "one of these was meant, undo, rename it in the file, and add again."
    ) in said
    (tmp_path / "labels.jsonl").write_text('{"id": "a", "name": "x", "Alt_Names": ["y"]}\n')
    said = " ".join(add(own_run, tmp_path / "labels.jsonl").split())
    assert "not used: 'Alt_Names' (did you mean 'alt_names'?)." in said
    many = {"id": "b", "name": "z"} | {f"f{i}": 1 for i in range(7)}
    (tmp_path / "labels.jsonl").write_text(json.dumps(many))
    assert "'f4' and 2 more." in " ".join(add(own_run, tmp_path / "labels.jsonl").split())


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        ([" "], r"documents with no text: 1 found\n    labels\.jsonl:1  an example of 'a'"),
        ([{"text": "x"}], r"labels\.jsonl:1  an item of examples is \{'text': 'x'\}"),
        ({"text": "x"}, r"labels\.jsonl:1  examples is \{'text': 'x'\}"),
        ([7], r"labels\.jsonl:1  an item of examples is 7"),
    ],
)
def test_what_is_no_text_is_refused_with_its_line(
    own_run: Path, tmp_path: Path, examples: object, message: str
):
    row = {"id": "a", "name": "x", "examples": examples}
    (tmp_path / "labels.jsonl").write_text(json.dumps(row))
    with pytest.raises(CorpusError, match=message):
        add(own_run, tmp_path / "labels.jsonl")
    assert not (own_run / "labels" / "journal.jsonl").exists()
