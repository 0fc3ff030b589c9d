"""``depl review``: from documents to an ordered queue."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from depl.cli.app import app
from depl.core.errors import ConfigError, CorpusError
from depl.labels.review_queue import ReviewQueue, Waiting
from depl.model.classifier import Classifier
from depl.model.review import lessons, ordered

TEXTS = {
    "a": "Customs duty on sparkling wine from vineyards",
    "b": "Catch quotas for cod and herring of fishing vessels",
    "c": "Hives of bees, honey and the keeping of apiaries",
    "d": "Butter of dairies",
}


def depl(*arguments: object):
    found = CliRunner().invoke(app, [*map(str, arguments)])
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "new.csv"
    rows = [["id", "text"], *map(list, TEXTS.items()), ["e", ""]]
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return path


def test_documents_are_queued_once_and_listed_in_the_order_of_what_they_teach(
    own_run: Path, table: Path, tmp_path: Path
) -> None:
    found = depl("review", own_run, table, "--limit", 2)
    assert found.exit_code == 0
    assert "new.csv:6 left out:" in found.stderr
    assert "Queued 4 documents. 4 documents wait; 0 done, 0 skipped." in found.stderr
    model = Classifier.load(own_run)
    known = zip(TEXTS, lessons(model, list(TEXTS.values())), strict=True)
    waiting = [Waiting(i, name, "", *row, "open", True) for i, (name, row) in enumerate(known)]
    wanted = [x.id for x in ordered(model, waiting)]
    lines = found.stdout.splitlines()
    assert [line.split()[1] for line in lines[:4:2]] == wanted[:2]
    assert lines[4].strip() == "and 2 more documents"

    queue = tmp_path / "queue.csv"
    again = depl("review", own_run, table, "--output", queue)
    assert "4 documents were in the queue already." in again.stderr
    with queue.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == wanted
    assert [row["text"] for row in rows] == [TEXTS[x] for x in wanted]
    assert {row["source"] for row in rows} == {"new.csv"}


def test_the_number_of_a_row_names_no_document(own_run: Path, tmp_path: Path) -> None:
    """Row 2 of a table is not row 2 of the next one: what was decided about it was mixed up."""
    bee, cod = tmp_path / "monday.csv", tmp_path / "tuesday.csv"
    bee.write_text(f'text\n"{TEXTS["c"]}"\n')
    cod.write_text(f'text\n"{TEXTS["b"]}"\n')
    found = depl("review", own_run, bee)
    assert found.stdout.split()[:2] == ["1", "monday.csv:2"]
    depl("review", own_run, cod)
    model = Classifier.load(own_run)
    [one, other] = map(ReviewQueue(own_run).document, (1, 2))
    model.feedback.add(one.text, accepted=[model.labels[0].id], id=one.id)
    model.feedback.add(other.text, accepted=[model.labels[1].id], id=other.id)
    documents = model.feedback.store.documents()
    assert [(x.text, len(x.carried)) for x in documents] == [(TEXTS["c"], 1), (TEXTS["b"], 1)]


def test_what_is_done_leaves_the_queue(own_run: Path, table: Path, tmp_path: Path) -> None:
    depl("review", own_run, table)
    queue = ReviewQueue(own_run)
    first = queue.waiting()[0]
    queue.mark(first.number, "done", by="anna")
    found = depl("review", own_run)
    assert "3 documents wait; 1 done, 0 skipped." in found.stderr
    assert "anna: 1 done" in found.stderr
    facts = json.loads(depl("review", own_run, "--json", "--limit", 1).stdout)
    assert (facts["total"], facts["done"], len(facts["next"])) == (4, 1, 1)
    assert facts["next"][0]["id"] != first.id
    lines = tmp_path / "queue.jsonl"
    depl("review", own_run, "--output", lines)
    assert len(lines.read_text(encoding="utf-8").splitlines()) == 3
    assert "4 documents removed" in depl("review", own_run, "--clear").stderr
    assert queue.progress().total == 0


def test_a_folder_of_documents(own_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "letters"
    folder.mkdir()
    for name, text in TEXTS.items():
        (folder / f"{name}.txt").write_text(text)
    assert "Queued 4 documents." in depl("review", own_run, folder).stderr
    assert ReviewQueue(own_run).waiting()[0].id.endswith("a.txt")


def test_mistakes_are_explained(own_run: Path, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="There is nothing to review"):
        depl("review", own_run)
    with pytest.raises(ConfigError, match=r"\.csv, \.tsv or \.jsonl"):
        depl("review", own_run, "--output", tmp_path / "queue.txt")
    (tmp_path / "empty.csv").write_text("id,text\n1,\n")
    with pytest.raises(CorpusError, match="No document could be read"):
        depl("review", own_run, tmp_path / "empty.csv")
