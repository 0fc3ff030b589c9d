"""Labels edited in a fitted run: suggestible at once, durable, undone, and never half done."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from tests.conftest import accept_changes
from tests.quick_python import Quick
from typer.testing import CliRunner

from depl.cli.app import app
from depl.core.corpus import Corpus, Dataset, Label, LabelSet
from depl.core.errors import CorpusError, DeplError, RunError
from depl.labels.journal import Journal
from depl.labels.moments import Moments, weigh
from depl.labels.overlay import Overlay
from depl.model.classifier import Classifier
from depl.neural.index import LabelIndex
from depl.neural.overlaid_index import OverlaidIndex
from depl.pipeline.fit import fit
from depl.run.config import Config

DEPOT = Label("dep", "depot", ("warehouse",))
EXAMPLES = [
    "Licences for the storage of goods that nobody has claimed",
    "Storage under a licence, and the withdrawal of licences",
    "Storage, its licence and its end",
]


def suggested(model: Classifier, text: str, k: int = 12) -> list[str]:
    return [label.id for label, _ in model.predict([text], k).rows(model.labels)[0]]


def assert_same(one: Classifier, other: Classifier, texts: list[str]) -> None:
    assert one.labels == other.labels
    assert one.removed == other.removed
    assert one.train_counts.tolist() == other.train_counts.tolist()
    assert one.descriptions == other.descriptions
    assert one.keywords == other.keywords
    for name, ranking in one.parts(texts).items():
        again = other.parts(texts)[name]
        assert ranking.indices.tolist() == again.indices.tolist(), name
        np.testing.assert_array_equal(ranking.scores, again.scores)


def lines(run: Path) -> list[dict[str, object]]:
    text = (run / "labels" / "journal.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def fused_run(own_run: Path) -> Path:
    """A run whose fusion goes by names; so few documents would have it go by the SVM alone."""
    return choosing(own_run, "names")


def choosing(run: Path, part: str) -> Path:
    path = run / "fusion" / "fusion.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"chosen": part}))
    accept_changes(run, "fusion")
    return run


@pytest.fixture
def model(fused_run: Path) -> Classifier:
    return Classifier.load(fused_run)


# What each edit does


def test_a_label_added_by_name_is_suggested_where_its_name_stands(model, dataset):
    before = model.parts(dataset.dev.texts)
    model.add_labels([Label("sm", "skimmed milk"), Label("sp", "spent fuel storage")])
    assert model.labels[-2:] == (Label("sm", "skimmed milk"), Label("sp", "spent fuel storage"))
    assert model.train_counts[-2:].tolist() == [0, 0]
    assert model.card(12).description == "skimmed milk"
    assert suggested(model, "powder of skimmed milk")[0] == "sm"
    assert model.parts(["skimmed milk"])["names"].indices[0, 0] == 12
    # The SVM has no weights for it, and ranks all others as it did.
    after = model.parts(dataset.dev.texts)["svm"]
    assert after.indices.tolist() == before["svm"].indices.tolist()
    assert after.indices.max() < 12


def test_all_parts_together_rank_added_labels_too(own_run):
    model = Classifier.load(choosing(own_run, "fusion"))
    model.add_labels([DEPOT, Label("sm", "skimmed milk")], examples={"dep": EXAMPLES})
    assert {"dep", "sm"} <= set(suggested(model, "storage licences and skimmed milk", k=14))


def test_other_names_and_descriptions_are_matched(model):
    model.add_labels([DEPOT, Label("p", "Bergbahn")], descriptions={"p": "storage under licences"})
    assert model.card(13).description == "storage under licences"
    assert 13 in model.parts(["storage licences"])["names"].indices[0]
    assert model.card(12).description == "depot warehouse"


def test_examples_give_weights_keywords_and_a_count(model):
    model.add_labels([DEPOT, Label("p", "Bergbahn")], examples={"dep": EXAMPLES})
    card = model.card(12)
    assert card.training_documents == 3
    assert {"licence", "storage"} <= {term for term, _ in card.keywords[:4]}
    assert card.description.startswith("depot ")
    assert model.parts(["storage licences"])["svm"].indices[0, 0] == 12
    assert model.svm.bias_[13] == -np.inf
    assert model.svm.weights_.shape[0] == len(model.labels) == 14


def test_a_description_replaces_the_old_one_and_finds_the_label(model):
    model.describe_label("77", "licences for the storage of honey")
    assert model.card(11).description == "licences for the storage of honey"
    assert 11 in model.parts(["storage licences"])["names"].indices[0]


def test_a_new_name_is_matched_in_place_of_the_old_and_leads_the_description(model):
    words = model.card(0).description.split()[1:]
    model.rename_label("2560", "vineyards")
    assert model.labels[0] == Label("2560", "vineyards", ("grape wine",))
    assert model.card(0).description.split() == ["vineyards", *words]
    assert model.find("vineyards") == 0
    assert model.parts(["vineyards"])["names"].indices[0, 0] == 0
    with pytest.raises(CorpusError, match="No label has the id or name 'wine'"):
        model.find("wine")


def test_a_new_name_is_found_word_by_word_too(model):
    def whole(text):
        return model.parts([text])["whole names"].indices[0].tolist()

    assert whole("a market in grape wine")[0] == 0
    model.add_labels([Label("h", "hop gardens")])
    model.describe_label("77", "licences for the storage of honey")
    model.rename_label("2560", "honey vineyards", ["animal wine"])
    assert whole("hop gardens beside honey vineyards, and a market in grape wine")[:2] == [0, -1]
    assert whole("of animals and wine")[0] == 0
    assert 0 not in whole("a vineyard beside the honey")
    assert model.state.facts.shape == (13, model.fusion.n_facts_)
    assert np.isnan(model.state.facts[12]).all()


def test_a_new_name_leaves_a_persons_description_alone(model):
    model.describe_label("2560", "what is in the cellar")
    model.rename_label("2560", "vino")
    assert model.card(0).description == "what is in the cellar"


def test_a_removed_label_is_in_no_ranking_and_its_id_is_free(model, dataset):
    model.remove_label("17")
    for ranking in model.all_rankings(dataset.dev.texts, k=12).values():
        assert 1 not in ranking.indices
    assert model.removed == {1: "17"}
    for query in ("17", "customs duty"):
        with pytest.raises(CorpusError, match=r"was removed|No label has"):
            model.find(query)
    with pytest.raises(CorpusError, match="removed"):
        model.rename_label("17", "duties")
    model.add_labels([Label("17", "customs")])
    assert model.find("17") == 12
    assert model.find("customs") == 12


def test_positions_of_other_labels_never_change(model, dataset):
    model.add_labels([DEPOT])
    model.add_labels([Label("p", "Bergbahn")])
    model.undo()
    model.remove_label("dep")
    model.add_labels([Label("q", "thermal baths"), Label("p", "again")])
    assert model.labels[:12] == LabelSet(dataset.labels)[:12]
    assert model.find("q") == 14
    assert model.removed == {12: "dep", 13: "p"}


# Undo


def test_undo_takes_edits_back_one_by_one(model, dataset):
    texts = dataset.dev.texts
    before = {name: r.indices.tolist() for name, r in model.parts(texts).items()}
    model.add_labels([DEPOT], examples={"dep": EXAMPLES})
    model.rename_label("2560", "vino")
    model.describe_label("17", "what is paid at the border")
    model.remove_label("192")
    assert model.undo() == "removed 'animal disease' (192)"
    assert model.undo() == "described 17 as 'what is paid at the border'"
    assert model.undo() == "renamed 2560 from 'wine' to 'vino'"
    assert model.undo() == "added 'depot' (dep) with 3 examples"
    assert {name: r.indices.tolist() for name, r in model.parts(texts).items()} == before
    assert model.descriptions[:12] == Classifier.load(model_path(model)).descriptions[:12]
    with pytest.raises(RunError, match="nothing to undo"):
        model.undo()
    with pytest.raises(CorpusError, match="'dep' was removed"):
        model.find("dep")


def model_path(model: Classifier) -> Path:
    return model._run.path


# What is on the disk


def test_a_loaded_run_is_what_the_edited_one_was_after_every_edit(model, fused_run, dataset):
    steps = [
        lambda: model.add_labels([DEPOT, Label("p", "Bergbahn")], examples={"dep": EXAMPLES[:1]}),
        lambda: model.describe_label("p", "storage under a licence"),
        lambda: model.rename_label("dep", "bonded store"),
        lambda: model.remove_label("4512"),
        lambda: model.undo(),
        lambda: model.rename_label("4512", "aviation"),
        lambda: model.remove_label("p"),
        lambda: model.add_labels([Label("p", "Bergbahn")], examples={"p": EXAMPLES}),
        lambda: model.undo(),
    ]
    for step in steps:
        step()
        assert_same(model, Classifier.load(fused_run), dataset.dev.texts)
    assert [line["entry"] for line in lines(fused_run)] == list(range(1, len(steps) + 1))


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[:100],
        lambda raw: raw[:-5],
        lambda raw: raw.replace(b"A", b"B", 1),
        lambda raw: b"\0" * 50 + raw[50:],
        lambda raw: b"",
    ],
)
def test_what_was_computed_can_be_computed_again(model, fused_run, dataset, damage):
    model.add_labels([DEPOT], examples={"dep": EXAMPLES})
    model.rename_label("2560", "vineyards")
    kept = fused_run / "labels" / "computed.log"
    whole = kept.read_bytes()
    kept.write_bytes(damage(whole))
    assert_same(model, Classifier.load(fused_run), dataset.dev.texts)
    assert kept.read_bytes() == whole
    kept.unlink()
    assert_same(model, Classifier.load(fused_run), dataset.dev.texts)
    assert kept.read_bytes() == whole


def test_a_run_that_cannot_be_written_to_loads_without_what_was_computed(
    model, fused_run, dataset, monkeypatch
):
    model.add_labels([DEPOT], examples={"dep": EXAMPLES})
    (fused_run / "labels" / "computed.log").unlink()

    def refused(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "replace", refused)
    monkeypatch.setattr(Path, "replace", refused)
    assert_same(model, Classifier.load(fused_run), dataset.dev.texts)


def test_a_disk_that_is_full_at_the_first_edit_leaves_no_empty_journal(
    model, fused_run, monkeypatch
):
    def full(descriptor: int) -> None:
        if "journal" in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(RunError, match="No space left"):
            model.add_labels([Label("n0", "storage licence")])
    again = Classifier.load(fused_run)
    assert "n0" not in again.labels
    again.add_labels([Label("n0", "storage licence")])
    assert "n0" in Classifier.load(fused_run).labels


def test_an_emptied_journal_is_missed_even_if_it_had_one_entry(model, fused_run):
    model.add_labels([Label("n0", "storage licence")])
    (fused_run / "labels" / "journal.jsonl").write_bytes(b"")
    with pytest.raises(RunError, match=r"journal\.jsonl has 0 entries, but at least 1 were made"):
        Classifier.load(fused_run)


@pytest.mark.parametrize("left", [0, 1])
def test_a_journal_that_has_lost_entries_is_refused(model, fused_run, left):
    for i in range(3):
        model.add_labels([Label(f"n{i}", f"storage licence {i}")])
    journal = fused_run / "labels" / "journal.jsonl"
    kept = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(kept[:left]))
    message = rf"journal\.jsonl has {left} entries, but at least 2 were made"
    with pytest.raises(RunError, match=message):
        Classifier.load(fused_run)
    with pytest.raises(RunError, match=message):
        depl(fused_run, "history")
    with pytest.raises(RunError, match=message):
        model.remove_label("n0")
    assert len(model.labels) == 15  # what is in memory stays as it was
    journal.write_bytes(b"".join(kept))
    assert not model.refresh() or len(model.labels) == 15
    model.remove_label("n0")
    assert len(lines(fused_run)) == 4


@pytest.mark.parametrize(
    "line",
    [
        {"edit": "add", "labels": [{"id": "a", "name": "b"}]},
        {"edit": "add", "labels": [{"id": 7, "name": "b", "alt_names": []}]},
        {"edit": "add", "labels": "abc"},
        {"edit": "add", "labels": [{"id": "a", "name": "b", "alt_names": [], "examples": [1]}]},
        {"edit": "remove", "id": ["2560"], "before": "wine"},
        {"edit": "rename", "id": "2560", "before": "wine", "name": None},
        {"edit": "undo", "of": "all"},
    ],
)
def test_a_line_of_another_shape_is_named(fused_run, line):
    journal = fused_run / "labels" / "journal.jsonl"
    journal.parent.mkdir(exist_ok=True)
    journal.write_text(json.dumps({"entry": 1, "time": "2026-01-01T00:00:00+00:00", **line}) + "\n")
    with pytest.raises(RunError, match=r"journal\.jsonl:1 is damaged"):
        Classifier.load(fused_run)


def test_a_torn_last_line_is_ignored_and_cut_off(model, fused_run):
    model.add_labels([DEPOT])
    journal = fused_run / "labels" / "journal.jsonl"
    whole = journal.read_bytes()
    for cut in (1, 10, len(whole) // 2):
        journal.write_bytes(whole + whole[:-cut])
        again = Classifier.load(fused_run)
        assert len(again.labels) == 13
    again.add_labels([Label("p", "Bergbahn")])
    assert [line["edit"] for line in lines(fused_run)] == ["add", "add"]


@pytest.mark.parametrize(
    "bad", [b"nonsense\n", b'{"entry": 7, "time": "", "edit": "remove"}\n', b"[1]\n", b"\n"]
)
def test_a_damaged_line_in_the_middle_is_named(model, fused_run, bad):
    model.add_labels([DEPOT])
    journal = fused_run / "labels" / "journal.jsonl"
    journal.write_bytes(journal.read_bytes() + bad + journal.read_bytes())
    with pytest.raises(RunError, match=r"journal\.jsonl:2 is damaged"):
        Classifier.load(fused_run)


def test_a_changed_letter_in_any_place_of_a_line_is_noticed(model, fused_run):
    model.add_labels([Label("n1", "carbon levy"), Label("n2", "honey")])
    model.rename_label("2560", "vin")
    journal = fused_run / "labels" / "journal.jsonl"
    whole = journal.read_bytes()
    end = whole.index(b"\n")  # of the first line; the second one is there to be read after it
    for place in range(end):
        changed = bytearray(whole)
        changed[place] ^= 1
        if changed[place] == ord("\n"):
            continue
        journal.write_bytes(changed)
        with pytest.raises(RunError, match=r"journal\.jsonl:1 is damaged"):
            Journal(fused_run).entries()
    journal.write_bytes(whole)
    assert len(Journal(fused_run).entries()) == 2


def test_lines_without_a_check_are_read(model, fused_run):
    model.add_labels([Label("n1", 'a "check": in a name')])
    model.rename_label("2560", "vin")
    journal = fused_run / "labels" / "journal.jsonl"
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert all(list(line)[-1] == "check" for line in lines)
    older = [{k: v for k, v in line.items() if k != "check"} for line in lines]
    journal.write_text("".join(json.dumps(line) + "\n" for line in older))
    assert Classifier.load(fused_run).labels.names[0] == "vin"
    again = Classifier.load(fused_run)
    again.undo()
    assert Classifier.load(fused_run).labels.names[0] == "wine"


def test_a_disk_that_is_full_changes_nothing(model, fused_run, monkeypatch):
    model.add_labels([DEPOT])
    before = (fused_run / "labels" / "journal.jsonl").read_bytes()

    def full(descriptor: int, raw: bytes) -> int:
        real_write(descriptor, bytes(raw)[:5])
        raise OSError(28, "No space left on device")

    real_write = os.write
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(RunError, match="No space left"):
        model.remove_label("dep")
    monkeypatch.undo()
    assert (fused_run / "labels" / "journal.jsonl").read_bytes() == before
    assert model.removed == {}
    model.remove_label("dep")
    assert len(lines(fused_run)) == 2


ADDING = """
import sys
from depl import Classifier, Label
model = Classifier.load(sys.argv[1])
print("ready", flush=True)
for i in range(100_000):
    model.add_labels([Label(f"{sys.argv[2]}{i}", f"storage licence {i}")])
    print(i, flush=True)
"""


@pytest.fixture
def adding(quick_python: Callable[..., Quick]) -> Callable[[Path, str], Quick]:
    """Starts a process that adds until it is killed, and reports every add."""
    return lambda run, prefix: quick_python("-c", ADDING, run, prefix, stdout=subprocess.PIPE)


def wait_for(process: Quick, n: int) -> None:
    """Until it has reported n adds."""
    assert process.stdout is not None
    read = [process.stdout.readline() for _ in range(n + 1)]
    assert read == ["ready\n", *(f"{i}\n" for i in range(n))]


def killed(process: Quick) -> int:
    """Kill it in the middle of whatever it does; tells how many more adds it had reported."""
    assert process.stdout is not None
    process.send_signal(signal.SIGKILL)
    reported = [x for x in process.stdout.read().splitlines(True) if x.endswith("\n")]
    process.wait()
    process.stdout.close()
    return len(reported)


def test_a_kill_in_the_middle_of_many_adds_loses_nothing_that_was_acknowledged(fused_run, adding):
    total = 0
    for attempt in range(2):
        process = adding(fused_run, f"{attempt}-")
        wait_for(process, 5)
        time.sleep(0.013 * attempt)  # not always at the same place
        sure = 5 + killed(process)
        model = Classifier.load(fused_run)
        there = len(model.labels) - 12 - total
        assert there in (sure, sure + 1)  # one may be on the disk and not yet reported
        ids = [f"{attempt}-{i}" for i in range(there)]
        assert [x.id for x in model.labels[12 + total :]] == ids
        total += there
    assert suggested(model, "storage licence")[0][1:2] == "-"


def test_two_processes_at_once_do_not_mix_their_lines(fused_run, adding):
    processes = [adding(fused_run, prefix) for prefix in ("a", "b")]
    for process in processes:
        wait_for(process, 5)
    sure = [5 + killed(process) for process in processes]
    model = Classifier.load(fused_run)
    for prefix, n in zip("ab", sure, strict=True):
        own = [x.id for x in model.labels[12:] if x.id.startswith(prefix)]
        assert len(own) in (n, n + 1)
        assert own == [f"{prefix}{i}" for i in range(len(own))]


def test_an_edit_catches_up_with_another_process(model, fused_run, dataset):
    other = Classifier.load(fused_run)
    other.add_labels([DEPOT])
    with pytest.raises(CorpusError, match="'dep' already"):
        model.add_labels([DEPOT])
    model.rename_label("dep", "bonded store")
    assert model.labels[12].name == "bonded store"
    assert_same(model, Classifier.load(fused_run), dataset.dev.texts)


# A run that is fitted again


def test_edits_survive_a_fit_with_other_settings(model, fused_run, dataset):
    model.add_labels([DEPOT], examples={"dep": EXAMPLES})
    config = Config.load(None, ["features.analyzer=words", "linear.C=2"])
    fit(dataset.train, fused_run, config)
    again = Classifier.load(fused_run)
    assert again.find("dep") == 12
    assert "licences" in {term for term, _ in again.card(12).keywords}
    assert_same(again, Classifier.load(fused_run), dataset.dev.texts)


def narrower(dataset: Dataset, without: str) -> Corpus:
    gone = dataset.labels.index(without)
    kept = [j for j in range(12) if j != gone]
    labels = LabelSet(dataset.labels[j] for j in kept)
    train = dataset.train
    return Corpus(train.ids, train.texts, csr_array(train.Y[:, kept]), labels)


def test_edits_of_labels_that_are_gone_are_told_and_can_be_undone(model, fused_run, dataset):
    model.rename_label("2560", "vino")
    fit(narrower(dataset, "2560"), fused_run, overwrite=True)
    with pytest.raises(RunError, match=r"journal\.jsonl:1 .* '2560', which the run does not have"):
        Classifier.load(fused_run)
    result = CliRunner().invoke(app, ["labels", str(fused_run), "undo"])
    assert result.output == "Undone: renamed 2560 from 'wine' to 'vino'\n"
    assert len(Classifier.load(fused_run).labels) == 11


def test_an_added_label_that_the_corpus_has_now_is_told(fused_run, dataset):
    fit(narrower(dataset, "2560"), fused_run, overwrite=True)
    Classifier.load(fused_run).add_labels([Label("2560", "wine")])
    fit(dataset.train, fused_run, overwrite=True)
    with pytest.raises(RunError, match="which the run has anyway"):
        Classifier.load(fused_run)
    with Journal(fused_run).locked():
        Journal(fused_run).undo()
    again = Classifier.load(fused_run)
    assert again.find("2560") == 0


def test_a_run_without_fusion_takes_labels_and_says_what_it_cannot_do(dataset, tmp_path, caplog):
    fit(dataset.train, tmp_path / "run", until="descriptions")
    model = Classifier.load(tmp_path / "run")
    with caplog.at_level(logging.WARNING):
        model.add_labels([DEPOT], examples={"dep": EXAMPLES})
    assert not caplog.records
    assert suggested(model, "storage licences")[0] == "dep"
    with caplog.at_level(logging.WARNING):
        model.add_labels([Label("p", "Bergbahn")])
    assert "(p) will not be suggested" in caplog.text
    assert "Add them with examples, or finish the run with `depl fit" in caplog.text


# What is refused


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda m: m.add_labels([]), "no label to add"),
        (lambda m: m.add_labels([Label("17", "x")]), "id '17' already"),
        (lambda m: m.add_labels([DEPOT, DEPOT]), "Label ids must be unique"),
        (lambda m: m.add_labels([Label("x", " ")]), "name of the label 'x' is empty|name, or"),
        (lambda m: m.add_labels([Label("", "x")]), "id of a label is empty"),
        (lambda m: m.add_labels([DEPOT], descriptions={"dep": " "}), "description of .* is empty"),
        (lambda m: m.add_labels([DEPOT], descriptions={"x": "y"}), "a description of 'x'"),
        (lambda m: m.add_labels([DEPOT], examples={"x": ["y"]}), "an example of 'x'"),
        (lambda m: m.add_labels([DEPOT], examples={"dep": "text"}), "are a single text"),
        (lambda m: m.add_labels([DEPOT], examples={"dep": [""]}), "example of .* is empty"),
        (lambda m: m.add_labels([Label("x", "\ud83d")]), "surrogate"),
        (lambda m: m.describe_label("x", "text"), "No label has the id 'x'"),
        (lambda m: m.describe_label("17", "\n"), "description is empty"),
        (lambda m: m.rename_label("x", "name"), "No label has the id 'x'"),
        (lambda m: m.rename_label("17", ""), "name is empty"),
        (lambda m: m.remove_label("x"), "No label has the id 'x'"),
    ],
)
def test_an_edit_that_is_refused_changes_nothing(model, fused_run, dataset, edit, message):
    with pytest.raises(DeplError, match=message):
        edit(model)
    assert not (fused_run / "labels" / "journal.jsonl").exists()
    assert_same(model, Classifier.load(fused_run), dataset.dev.texts)


def test_a_classifier_without_a_folder_refuses(model):
    loose = Classifier(model.state, n_train=model.n_train)
    with pytest.raises(RunError, match="not loaded from a run folder"):
        loose.add_labels([DEPOT])


# Size


def test_a_thousand_labels_take_seconds(model, fused_run):
    labels = [Label(f"n{i}", f"store number {i}", (f"vineyard {i}",)) for i in range(1000)]
    examples = {f"n{i}": [f"storage licence {i}", *EXAMPLES] for i in range(0, 1000, 10)}
    start = time.process_time()
    model.add_labels(labels, examples=examples)
    assert time.process_time() - start < 10
    start = time.process_time()
    again = Classifier.load(fused_run)
    assert time.process_time() - start < 5
    assert again.find("store number 999") == 1011


def test_an_edit_and_its_undo_read_nothing_again(model, fused_run, monkeypatch):
    model.add_labels([DEPOT])
    again = []
    monkeypatch.setattr(Journal, "_parsed", lambda *line: again.append(line))
    monkeypatch.setattr(Overlay, "__init__", lambda *base: again.append(base))
    model.rename_label("dep", "bonded store")
    model.add_labels([Label("p", "Bergbahn")])
    model.undo()
    model.remove_label("dep")
    assert again == []
    monkeypatch.undo()
    assert_same(model, Classifier.load(fused_run), ["storage licences"])


def test_undoing_everything_gives_back_the_run(model, fused_run, dataset):
    texts = dataset.dev.texts
    bare = Classifier.load(fused_run)
    model.add_labels([DEPOT, Label("p", "Bergbahn")], examples={"dep": EXAMPLES})
    model.describe_label("2560", "what is made from grapes")
    model.rename_label("2560", "vineyards")
    model.rename_label("dep", "bonded store")
    model.remove_label("2560")
    model.add_labels([Label("2560", "vino")])
    for _ in range(6):
        model.undo()
    assert model.labels[:12] == bare.labels[:12]
    assert model.descriptions[:12] == bare.descriptions
    assert sorted(model.removed) == [12, 13, 14]
    for name, ranking in bare.parts(texts).items():
        assert model.parts(texts)[name].indices.tolist() == ranking.indices.tolist()
    assert_same(model, Classifier.load(fused_run), texts)
    with pytest.raises(RunError, match="nothing to undo"):
        model.undo()


# The parts it is made of


def test_an_overlaid_index_is_the_index_of_the_changed_vectors():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(50, 6)).astype(np.float32)
    new = {3: rng.normal(size=6), 50: rng.normal(size=6), 51: rng.normal(size=6)}
    rows = np.array(list(new.values()), np.float32)
    gone = np.array([3, 7, 9])
    overlaid = OverlaidIndex(LabelIndex.build(vectors), np.array(list(new)), rows, gone=gone, n=53)
    dense = np.concatenate([vectors, np.zeros((3, 6), np.float32)])
    for position, vector in new.items():
        dense[position] = vector
    dense[[7, 9]] = 0
    np.testing.assert_allclose(overlaid.vectors, dense, rtol=1e-6)
    queries = rng.normal(size=(20, 6)).astype(np.float32)
    scores = queries @ dense.T * 2 + 1
    scores[:, [7, 9, 52]] = -np.inf
    found = overlaid.search(queries, 60, scale=2.0, bias=1.0)
    for row, best in zip(found.indices, scores, strict=True):
        assert row[:50].tolist() == np.argsort(-best, kind="stable")[:50].tolist()
        assert (row[50:] == -1).all()


def test_examples_score_above_the_documents_that_are_not(model, dataset):
    own = dataset.train.Y.toarray()[:, 0] > 0
    texts = np.array(dataset.train.texts)
    model.add_labels([Label("v", "Wein")], examples={"v": texts[own].tolist()})
    scores = model.features.transform(texts) @ model.svm.weights_[[12]].toarray()[0]
    assert scores[own].mean() > scores[~own].mean() + 0.5
    assert np.median(scores[own]) > scores[~own].max()


def test_weights_are_the_whitened_difference_of_means():
    X = csr_array(np.array([[1, 0, 0], [0, 1, 0], [0, 0.6, 0.8], [0, 1, 0]], np.float32))
    own = csr_array(np.array([[0.6, 0, 0.8]], np.float32))
    both = csr_array(np.concatenate([own.toarray(), [[0, 1, 0]]]).astype(np.float32))
    members = csr_array(np.array([[1, 0], [0, 0], [1, 0.5]], np.float32))
    weights, bias = weigh(Moments.of(X), both, members, cull=0.0)
    dense = X.toarray()
    mean = (own.toarray()[0] + [0, 0.5, 0]) / 1.5
    for row, documents in ((0, own.toarray()[0]), (2, mean)):
        expected = (documents - dense.mean(0)) / np.sqrt(dense.var(0) + 1e-4)
        expected *= 2.25 / np.linalg.norm(expected)
        np.testing.assert_allclose(weights.toarray()[row], expected, rtol=1e-5)
    assert weights[[1]].nnz == 0
    assert bias.tolist() == [-1.0, -np.inf, -1.0]


# The command line


def depl(run: Path, *arguments: str) -> str:
    result = CliRunner().invoke(app, ["labels", str(run), *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_a_label_of_a_name_that_is_there_is_pointed_out(fused_run, tmp_path):
    (tmp_path / "new.jsonl").write_text('{"id": "w", "name": "Wine"}\n')
    said = depl(fused_run, "add", str(tmp_path / "new.jsonl"))
    assert said.startswith("Added 1 label.")
    assert "Note: another label has the name 'Wine': 2560. Did you mean that one?" in said


def test_the_commands_add_describe_rename_remove_undo_and_tell(fused_run, tmp_path):
    labels, documents = tmp_path / "labels.jsonl", tmp_path / "docs.jsonl"
    rows = [{"id": "dep", "name": "depot"}, {"id": 9, "name": "Bergbahn", "description": "up"}]
    labels.write_text("".join(json.dumps(row) + "\n" for row in rows))
    documents.write_text(json.dumps({"text": EXAMPLES[0], "labels": ["dep", "2560"]}) + "\n")
    told = depl(fused_run, "add", str(labels), "--examples", str(documents))
    assert told == f"Added 2 labels with 1 example. Undo with: depl labels {fused_run} undo\n"
    assert "described as: trains" in depl(fused_run, "describe", "Bergbahn", "trains")
    assert depl(fused_run, "rename", "wine", "vino").startswith("wine (2560) is now vino\n")
    assert "Removed customs duty (17)" in depl(fused_run, "remove", "17")
    assert "customs duty" not in depl(fused_run, "list")
    assert depl(fused_run, "undo") == "Undone: removed 'customs duty' (17)\n"
    history = depl(fused_run, "history").splitlines()
    assert len(history) == 5
    assert history[0].endswith("added 'depot' (dep), 'Bergbahn' (9) with 1 example")
    assert history[3].endswith("removed 'customs duty' (17)  (undone)")
    assert history[4].endswith("undid entry 4")
    facts = [json.loads(line) for line in depl(fused_run, "history", "--json").splitlines()]
    assert [fact["undone"] for fact in facts] == [False, False, False, True, False]
    shown = json.loads(depl(fused_run, "show", "9", "--json"))
    assert (shown["name"], shown["description"]) == ("Bergbahn", "trains")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"id": "a", "name": "x"}\n{"id": \n', r"labels\.jsonl:2"),
        ('{"id": "a", "name": "x"}\n[1]\n', r"labels\.jsonl:2"),
        ('{"id": "a", "name": "x"}\n{"id": "a", "name": "y"}\n', r"labels\.jsonl:2  'a'"),
        ('{"id": "a", "name": ""}\n', r"labels\.jsonl:1  'a'"),
        ('{"id": ["a"], "name": "x"}\n', r"labels\.jsonl:1  id is"),
        ("", "no label to add"),
    ],
)
def test_a_bad_file_of_labels_is_refused_with_its_line(fused_run, tmp_path, text, message):
    (tmp_path / "labels.jsonl").write_text(text)
    with pytest.raises(CorpusError, match=message):
        depl(fused_run, "add", str(tmp_path / "labels.jsonl"))
    assert not (fused_run / "labels" / "journal.jsonl").exists()


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"text": "x", "labels": ["nobody"]}, r"docs\.jsonl:1  'nobody'"),
        ({"text": "x", "labels": ["17"]}, r"docs\.jsonl:1  none of those to be added"),
        ({"text": " ", "labels": ["a"]}, r"docs\.jsonl:1"),
    ],
)
def test_bad_examples_are_refused_with_their_line(fused_run, tmp_path, document, message):
    (tmp_path / "labels.jsonl").write_text('{"id": "a", "name": "x"}\n')
    (tmp_path / "docs.jsonl").write_text(json.dumps(document))
    arguments = (str(tmp_path / "labels.jsonl"), "--examples", str(tmp_path / "docs.jsonl"))
    with pytest.raises(CorpusError, match=message):
        depl(fused_run, "add", *arguments)
    assert not (fused_run / "labels" / "journal.jsonl").exists()


def test_a_missing_file_is_named(fused_run, tmp_path):
    with pytest.raises(CorpusError, match=r"absent\.jsonl"):
        depl(fused_run, "add", str(tmp_path / "absent.jsonl"))
