"""Feedback: nothing acknowledged is lost, everything can be undone, and it can be trained on."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quick_python import Quick
from typer.testing import CliRunner

from depl import Classifier, read
from depl.cli.app import app
from depl.core.corpus import Corpus, LabelSet
from depl.core.errors import BusyError, CorpusError, RunError
from depl.labels.decisions import DecidedDocument, Decision
from depl.labels.feedback import FeedbackStore, KeyTakenError, NoSuchDecisionError
from depl.labels.feedback_corpus import taught
from depl.pipeline.fit import fit
from depl.run.config import Config
from depl.run.folder import Run

WINE = "Labelling of sparkling wines made from grapes of named vineyards"
BEES = "Hives of bees, honey and the keeping of apiaries"


@pytest.fixture
def store(tmp_path: Path) -> FeedbackStore:
    return FeedbackStore(tmp_path, "v1")


def test_a_decision_is_kept_with_all_that_belongs_to_it(store):
    (entry,) = store.add(
        WINE, [Decision("2560", "accepted", 0.9, "k1")], id="d1", source="mail", by="Ada"
    )
    assert (entry.number, entry.key, entry.run) == (1, "k1", "v1")
    assert (entry.document, entry.opening, entry.source) == ("d1", WINE, "mail")
    assert (entry.label, entry.verdict, entry.probability) == ("2560", "accepted", 0.9)
    assert (entry.by, entry.undone, entry.undone_by) == ("Ada", None, None)
    assert entry.time.endswith("+00:00")
    assert store.history() == [entry]
    with sqlite3.connect(store.path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_a_key_counts_once_and_belongs_to_one_decision(store):
    first = store.add(WINE, [Decision("2560", "accepted", 0.9, "k1")])
    assert store.add(WINE, [Decision("2560", "accepted", 0.9, "k1")]) == first
    with pytest.raises(KeyTakenError, match="entry 1"):
        store.add(WINE, [Decision("17", "added"), Decision("2560", "rejected", key="k1")])
    with pytest.raises(KeyTakenError):
        store.add(BEES, [Decision("2560", "accepted", key="k1")])
    assert store.count() == 1  # nor was the other decision of that call kept


def test_undoing_is_a_row_and_can_be_repeated(store):
    store.add(WINE, [Decision("2560", "accepted"), Decision("17", "rejected")])
    undone = store.undo(1, by="Bob")
    assert (undone.label, undone.undone_by) == ("2560", "Bob")
    assert undone.undone
    assert store.undo(1, by="Eve") == undone
    assert [x.undone is None for x in store.history()] == [True, False]
    assert store.last().number == 2
    with pytest.raises(NoSuchDecisionError, match="no decision 3"):
        store.undo(3)
    # A decision that was undone is not made again by its own key.
    key = undone.key
    assert store.add(WINE, [Decision("2560", "accepted", key=key)])[0].undone


def test_history_by_document_and_label_in_pages(store):
    for i in range(7):
        store.add(f"text {i % 2}", [Decision(str(i % 3), "added")], id=f"d{i % 2}")
    assert [x.number for x in store.history()] == [7, 6, 5, 4, 3, 2, 1]
    assert [x.number for x in store.history(document="d1")] == [6, 4, 2]
    assert [x.number for x in store.history(label="0")] == [7, 4, 1]
    assert [x.number for x in store.history(document="d0", label="0")] == [7, 1]
    assert [x.number for x in store.history(limit=3)] == [7, 6, 5]
    assert [x.number for x in store.history(limit=3, before=5)] == [4, 3, 2]
    assert (store.count(), store.count(document="d1"), store.count(label="none")) == (7, 3, 0)


def test_suggestions_are_judged_by_people_who_accept_and_reject(store):
    store.add(WINE, [Decision("2560", "accepted", 0.9), Decision("17", "added", 0.1)], by="Ada")
    store.add(WINE, [Decision("77", "accepted", 0.8)], by="Bob")
    store.add(BEES, [Decision("77", "accepted", 0.7), Decision("4", "rejected")], by="Ada")
    assert store.judged() == {}  # nobody has rejected a suggestion
    store.add(BEES, [Decision("17", "rejected", 0.6)], id="bees", by="Ada")
    found = store.judged()
    assert found.pop("bees") == ({"17"}, True)
    assert sorted(found.values()) == [({"2560"}, True), ({"77"}, True)]
    store.undo(2)  # she has added nothing
    assert store.judged()["bees"] == ({"17"}, False)
    store.undo(store.last().number)
    assert store.judged() == {}


VERDICTS = st.sampled_from(["accepted", "rejected", "added"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), VERDICTS),
        st.integers(1, 12),  # undo this one
    ),
    max_size=12,
)


@settings(max_examples=25)
@given(steps=STEPS)
def test_the_last_decision_that_was_not_undone_is_in_force(tmp_path_factory, steps):
    store = FeedbackStore(tmp_path_factory.mktemp("feedback"))
    log: list[tuple[str, str, str]] = []
    undone: set[int] = set()
    for step in steps:
        if isinstance(step, tuple):
            document, label, verdict = step
            store.add(f"text of {document}", [Decision(label, verdict)], id=document)
            log.append(step)
        elif step <= len(log):
            store.undo(step)
            undone.add(step)
    expected: dict[str, dict[str, str]] = {}
    for number, (document, label, verdict) in enumerate(log, 1):
        if number not in undone:
            expected.setdefault(document, {})[label] = verdict
    found = {x.id: x for x in store.documents()}
    assert set(found) == set(expected)
    for id, verdicts in expected.items():
        assert found[id].carried == {x for x, v in verdicts.items() if v != "rejected"}
        assert found[id].rejected == {x for x, v in verdicts.items() if v == "rejected"}
        assert found[id].text == f"text of {id}"


@pytest.mark.parametrize(
    ("text", "decisions", "message"),
    [
        (" ", [Decision("1", "added")], "empty"),
        (WINE, [], "no decision"),
        (WINE, [Decision("1", "liked")], "one of accepted, rejected, added; got 'liked'"),
        (WINE, [Decision("1", "added"), Decision("1", "rejected")], "two decisions"),
        ("half \ud800", [Decision("1", "added")], "surrogate"),
        (WINE, [Decision("1", "added", key="\ud800")], "surrogate"),
    ],
)
def test_what_cannot_be_kept_is_refused_and_makes_no_file(store, text, decisions, message):
    with pytest.raises(CorpusError, match=message):
        store.add(text, decisions)
    assert not store.path.exists()


# Kills, several processes, damage

ADDING = """
import sys, time
from pathlib import Path
from depl.labels.decisions import Decision
from depl.labels.feedback import FeedbackStore
store = FeedbackStore(Path(sys.argv[1]))
for i in range(100_000):
    some = [Decision(str(j), "added", key=f"{sys.argv[2]}{i}-{j}") for j in range(3)]
    store.add(f"text {i}", some, id=f"{sys.argv[2]}{i}")
    print(i, flush=True)
    time.sleep(0.002)  # SQLite keeps no queue: who never pauses may shut others out
"""


@pytest.fixture
def adding(quick_python: Callable[..., Quick]) -> Callable[[Path, str], Quick]:
    """Starts a process that adds until it is killed, and reports every add."""
    return lambda run, prefix: quick_python("-c", ADDING, run, prefix, stdout=subprocess.PIPE)


def killed(process: Quick, after: int, pause: float) -> int:
    """Kill it in the middle of whatever it does; tells how many adds it had acknowledged."""
    with process:
        assert [process.stdout.readline() for _ in range(after)] == [f"{i}\n" for i in range(after)]
        time.sleep(pause)
        process.send_signal(signal.SIGKILL)
        return after + len([x for x in process.stdout if x.endswith("\n")])


def check_kept(store: FeedbackStore, prefix: str, sure: int) -> None:
    kept = [x for x in store.history() if x.key.startswith(prefix)][::-1]
    assert len(kept) in (3 * sure, 3 * (sure + 1))  # whole calls, and one not yet acknowledged
    wanted = [f"{prefix}{i}-{j}" for i in range(len(kept) // 3) for j in range(3)]
    assert [x.key for x in kept] == wanted


def test_a_kill_loses_nothing_that_was_acknowledged(store, adding, tmp_path):
    for attempt in range(10):
        prefix = f"{'abcdefghij'[attempt]}"
        sure = killed(adding(tmp_path, prefix), attempt % 4, 0.0011 * attempt)
        check_kept(store, prefix, sure)
        store.check()


def test_two_processes_write_at_once(store, adding, tmp_path):
    processes = {prefix: adding(tmp_path, prefix) for prefix in "ab"}
    for prefix, process in processes.items():
        check_kept(store, prefix, killed(process, 10, 0))


def test_who_waits_too_long_is_told(store, monkeypatch):
    monkeypatch.setattr("depl.core.database._WAIT", 0.05)
    store.add(WINE, [Decision("1", "added")])
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(BusyError, match="Another process is writing"):
        store.add(WINE, [Decision("2", "added")])
    assert len(store.history()) == 1  # reading waits for nobody
    other.close()


def test_a_file_that_is_no_database_is_told_and_a_link_is_not_followed(store, tmp_path):
    store.path.parent.mkdir()
    store.path.write_bytes(b"something else" * 100)
    with pytest.raises(RunError, match=r"feedback\.sqlite is damaged"):
        store.history()
    store.path.unlink()
    (tmp_path / "elsewhere").write_bytes(b"")
    store.path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunError, match="is a link"):
        store.add(WINE, [Decision("1", "added")])
    assert (tmp_path / "elsewhere").read_bytes() == b""


def test_a_file_of_a_later_version_is_refused(store):
    store.add(WINE, [Decision("1", "added")])
    with sqlite3.connect(store.path) as connection:
        connection.execute("PRAGMA user_version = 9")
    connection.close()
    with pytest.raises(RunError, match="later version"):
        store.add(WINE, [Decision("2", "added")])


def test_making_it_can_be_killed_and_is_finished_later(store):
    store.path.parent.mkdir()
    sqlite3.connect(store.path).close()  # a file without tables
    assert store.history() == []
    store.add(WINE, [Decision("1", "added")])
    assert store.count() == 1


# Feedback as a corpus


def test_feedback_joins_the_documents_it_is_about(dataset):
    train = dataset.train
    labels = LabelSet([*dataset.labels])
    feedback = [
        DecidedDocument("train-1", "another text", {"17"}, {"2560"}),  # by id
        DecidedDocument("x", train.texts[1], {"77"}),  # by text
        DecidedDocument("y", BEES, {"77", "gone"}, {"17"}),
        DecidedDocument("z", WINE, set(), {"2560"}),
    ]
    found = taught(feedback, labels, train)
    assert (found.without_labels, found.unknown_labels) == (1, ["gone"])
    corpus = found.corpus
    carried = [{labels[j].id for j in row.indices} for row in corpus.Y]
    assert (corpus.ids[0], corpus.texts[0], carried[0]) == ("train-1", "another text", {"17"})
    assert (corpus.ids[1], carried[1]) == ("train-2", {"2560", "77"})
    assert (corpus.ids[48:], corpus.texts[48:], carried[48:]) == (["y"], [BEES], [{"77"}])
    rest = Corpus(corpus.ids[2:48], corpus.texts[2:48], corpus.Y[2:48], labels)
    assert (train.Y[2:] != rest.Y).nnz == 0
    assert rest.ids == train.ids[2:]
    assert taught(feedback[2:], labels).corpus.ids == ["y"]


# The model, the run and the commands


def test_the_model_finds_labels_by_name_and_knows_their_probability(own_run):
    model = Classifier.load(own_run)
    best = model.predict([WINE], 1)
    entries = model.feedback.add(WINE, accepted=["wine"], added=["bee-keeping"], key="once")
    assert [(x.label, x.verdict) for x in entries] == [("2560", "accepted"), ("77", "added")]
    assert entries[0].probability == pytest.approx(float(best.scores[0, 0]))
    assert entries[0].run == Run(own_run).version()
    assert model.feedback.add(WINE, accepted=["wine"], added=["77"], key="once") == entries
    assert model.feedback.history(label="wine") == entries[:1]
    model.feedback.undo(1)
    assert model.feedback.corpus().corpus.Y.nnz == 1
    with pytest.raises(CorpusError, match="No label has the id or name 'mead'"):
        model.feedback.add(WINE, added=["mead"])
    alone = Classifier(model.state, n_train=48)
    with pytest.raises(RunError, match="nowhere to keep feedback"):
        _ = alone.feedback


def test_a_run_with_feedback_is_whole_and_keeps_it_when_fitted_again(own_run, dataset):
    Classifier.load(own_run).feedback.add(WINE, accepted=["wine"])
    before = Run(own_run).version()
    assert depl("check", own_run).endswith("Everything is as it was written.\n")
    fit(dataset.train, own_run, Config.load(None, ["linear.C=2"]))
    fit(dataset.train.subset(range(40)), own_run, overwrite=True)
    (entry,) = Classifier.load(own_run).feedback.history()
    assert entry.run == before != Run(own_run).version()
    (own_run / "feedback" / "feedback.sqlite").write_bytes(b"something else" * 100)
    result = CliRunner().invoke(app, ["check", str(own_run)])
    assert "is damaged" in str(result.exception)


def depl(*arguments: object) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_the_commands_add_list_undo_and_export_for_a_fit(own_run, tmp_path):
    (tmp_path / "bees.txt").write_text(BEES)
    told = depl(
        "feedback", own_run, "add", tmp_path / "bees.txt", "--add", "bee-keeping",
        "--reject", "wine", "--id", "b1", "--by", "Ada",
    )  # fmt: skip
    assert "rejected wine (2560)" in told
    assert "added bee-keeping (77)" in told
    json_lines = depl("feedback", own_run, "add", WINE, "--accept", "wine", "--json")
    entry = json.loads(json_lines)
    assert (entry["number"], entry["label"], entry["source"]) == (3, "2560", "")
    listed = depl("feedback", own_run, "list")
    assert [line.split()[0] for line in listed.splitlines()] == ["3", "2", "1"]
    assert len(depl("feedback", own_run, "list", "--document", "b1").splitlines()) == 2
    by_label = depl("feedback", own_run, "list", "--label", "wine", "--json").splitlines()
    assert [json.loads(line)["number"] for line in by_label] == [3, 1]
    assert "2 earlier decisions" in depl("feedback", own_run, "list", "--limit", "1")
    assert depl("feedback", own_run, "undo").startswith("Undone: accepted wine (2560)")
    assert "(undone)" in depl("feedback", own_run, "list").splitlines()[0]

    told = depl("feedback", own_run, "export", tmp_path / "corpus", "--with-training")
    assert told.startswith("Wrote 49 documents")
    data = read(tmp_path / "corpus")
    assert (data.train.ids[-1], data.train.texts[-1]) == ("b1", BEES)
    depl("fit", tmp_path / "corpus", "--out", tmp_path / "again")
    again = Classifier.load(tmp_path / "again")
    assert int(again.train_counts[again.find("bee-keeping")]) == 1

    facts = json.loads(depl("feedback", own_run, "export", tmp_path / "alone", "--json"))
    assert (facts["documents"], facts["labels"]) == (1, 12)
    depl("feedback", own_run, "add", WINE, "--reject", "wine")
    told = depl("feedback", own_run, "export", tmp_path / "more")
    assert "1 document was left out: nobody gave it a label." in told


def test_nothing_to_list_to_undo_or_to_export_is_told(own_run, tmp_path):
    assert depl("feedback", own_run, "list") == "There is no feedback on this run yet.\n"
    for command in (["undo"], ["export", str(tmp_path / "corpus")]):
        result = CliRunner().invoke(app, ["feedback", str(own_run), *command])
        assert "There is n" in str(result.exception)
    assert not (own_run / "feedback").exists()


def test_a_call_without_a_decision_is_told_which_options_there_are(own_run):
    result = CliRunner().invoke(app, ["feedback", str(own_run), "add", "sparkling wine"])
    message = str(result.exception)
    assert all(option in message for option in ("--accept", "--reject", "--add"))
