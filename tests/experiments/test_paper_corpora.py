"""The paper's corpora, in small: from the files that people download to the paper's metrics."""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix, save_npz
from typer.testing import CliRunner

import depl
from depl.cli.app import app
from depl.core.indicator import indicator
from depl.evaluation.scores import evaluate, popularity
from depl.run.config import Config
from depl.run.folder import Run

pytestmark = pytest.mark.usefixtures("one_thread", "without_figures")

PAGE = Path(__file__).parents[2] / "docs" / "paper-corpora.md"
WORDS_A_LABEL = 2
TEST_ONLY = 2  # labels, as in the real ones


@dataclass(frozen=True)
class Shape:
    """A corpus of a hundredth of the size, with as many labels a document."""

    recipe: str
    labels: int
    labels_a_document: int
    ks: tuple[int, ...]


EURLEX = Shape("eurlex-4k", 48, 5, (1, 3, 5))
WIKI10 = Shape("wiki10-31k", 80, 19, (1, 3, 5, 19))
AMAZONCAT = Shape("amazoncat-13k", 40, 5, (1, 3, 5))
DOCUMENTS = {"train": 150, "test": 60}


@dataclass(frozen=True)
class Drawn:
    """What is written into files: label names, and texts with the labels of each."""

    names: list[str]
    splits: dict[str, list[tuple[str, list[int]]]]

    def matrix(self, split: str) -> csr_matrix:
        return csr_matrix(indicator([row for _, row in self.splits[split]], len(self.names)))


@pytest.fixture
def draw(vocabulary) -> Callable[[Shape], Drawn]:
    """Labels from common to rare, each named by its two words; documents have one of them."""
    words = np.array(vocabulary[5:-1])

    def drawn(shape: Shape) -> Drawn:
        rng = np.random.default_rng(5)
        own = words[: shape.labels * WORDS_A_LABEL].reshape(shape.labels, WORDS_A_LABEL)
        noise = words[shape.labels * WORDS_A_LABEL :]
        splits = {}
        for split, documents in DOCUMENTS.items():
            known = shape.labels - (TEST_ONLY if split == "train" else 0)
            chances = np.exp(-6.0 * np.arange(known) / known)
            chances /= chances.sum()
            rows = []
            for _ in range(documents):
                n = shape.labels_a_document + int(rng.integers(-1, 2))
                carried = sorted(rng.choice(known, n, replace=False, p=chances).tolist())
                signs = [rng.choice(own[j]) for j in carried]
                rows.append((" ".join(rng.permutation([*signs, *rng.choice(noise, 6)])), carried))
            splits[split] = rows
        return Drawn(["_".join(pair) for pair in own], splits)

    return drawn


# The layouts. Where a line is one label, as a rule there are spaces in its name.


def write_lines(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def attentionxml(folder: Path, drawn: Drawn, *, raw: bool = False) -> None:
    for split, rows in drawn.splits.items():
        texts = [text for text, _ in rows]
        write_lines(folder / f"{split}_labels.txt", [carried(drawn, row, " ") for _, row in rows])
        write_lines(folder / f"{split}_texts.txt", ["stem"] * len(texts) if raw else texts)
        if raw:
            write_lines(folder / f"{split}_raw_texts.txt", texts)


def carried(drawn: Drawn, row: list[int], separator: str) -> str:
    return separator.join(drawn.names[j] for j in row)


def raw_attentionxml(folder: Path, drawn: Drawn) -> None:
    attentionxml(folder, drawn, raw=True)


def x_transformer(folder: Path, drawn: Drawn) -> None:
    write_lines(folder / "label_map.txt", drawn.names)
    for split, short in (("train", "trn"), ("test", "tst")):
        write_lines(folder / f"{split}_raw_texts.txt", [text for text, _ in drawn.splits[split]])
        save_npz(folder / f"Y.{short}.npz", drawn.matrix(split))


def pecos(folder: Path, drawn: Drawn) -> None:
    write_lines(folder / "output-items.txt", [name.replace("_", " ") for name in drawn.names])
    (folder / "tfidf-attnxml").mkdir()
    for split, short in (("train", "trn"), ("test", "tst")):
        write_lines(folder / f"X.{short}.txt", [text for text, _ in drawn.splits[split]])
        save_npz(folder / f"Y.{short}.npz", drawn.matrix(split))
        save_npz(folder / "tfidf-attnxml" / f"X.{short}.npz", csr_matrix((2, 2)))


def repository(folder: Path, drawn: Drawn) -> None:
    """AmazonCat-13K's raw text, whose label names are in a file of their own."""
    write_lines(folder / "Yf.txt", [name.replace("_", " ") for name in drawn.names])
    for split, short in (("train", "trn"), ("test", "tst")):
        with gzip.open(folder / f"{short}.json.gz", "wt", encoding="utf-8") as out:
            for i, (text, row) in enumerate(drawn.splits[split]):
                title, _, content = text.partition(" ")
                fields = {"uid": f"{short}{i}", "title": title, "content": content}
                out.write(json.dumps({**fields, "target_ind": row, "target_rel": [1.0] * len(row)}))
                out.write("\n")


def aplc_xlnet(folder: Path, drawn: Drawn) -> None:
    source = folder.parent / "downloads"
    source.mkdir()
    for split, name in (("train", "train.csv"), ("test", "dev.csv")):
        with (source / name).open("w", newline="", encoding="utf-8") as out:
            table = csv.writer(out)
            table.writerow(["id", "text", "labels"])
            for i, (text, row) in enumerate(drawn.splits[split]):
                table.writerow([i, text, carried(drawn, row, ",")])
    run_block("dev.csv", {"downloads/EURLex": source, "data/eurlex-4k": folder})


def run_block(about: str, folders: dict[str, Path]) -> None:
    """Run the block of the documentation that is about a file, on other folders."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    [block] = [block for block in blocks if Path(about).stem in block]
    for written, folder in folders.items():
        assert f'Path("{written}")' in block
        block = block.replace(f'"{written}"', repr(str(folder)))
    exec(compile(block, str(PAGE), "exec"), {})


def command(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == 0, (result.exception, result.output)
    return result.stdout


@pytest.mark.parametrize("shape", [EURLEX, WIKI10, AMAZONCAT], ids=lambda shape: shape.recipe)
@pytest.mark.parametrize(
    "write",
    [attentionxml, raw_attentionxml, x_transformer, pecos, repository, aplc_xlnet],
    ids=lambda write: write.__name__,
)
def test_every_layout_gives_the_same_corpus(draw, tmp_path, shape, write):
    drawn = draw(shape)
    folder = tmp_path / shape.recipe
    folder.mkdir()
    write(folder, drawn)
    data = depl.read(folder)
    assert set(data.splits) == {"train", "test"}
    for split, rows in drawn.splits.items():
        corpus = data.splits[split]
        assert [" ".join(text.split()) for text in corpus.texts] == [text for text, _ in rows]
        names = [{data.labels[j].name for j in corpus.Y[[i]].indices} for i in range(len(corpus))]
        assert names == [{drawn.names[j].replace("_", " ") for j in row} for _, row in rows]


def test_raw_json_without_its_label_names_is_refused_by_the_name_of_the_file(draw, tmp_path):
    repository(tmp_path, draw(AMAZONCAT))
    (tmp_path / "Yf.txt").unlink()
    with pytest.raises(depl.DeplError, match=r"lacks lbl\.json"):
        depl.read(tmp_path)


def test_info_tells_what_the_papers_first_table_has(draw, tmp_path):
    drawn = draw(WIKI10)
    raw_attentionxml(tmp_path, drawn)
    facts = json.loads(command("info", tmp_path, "--json"))
    counts = np.asarray(drawn.matrix("train").sum(0)).ravel()
    in_use = {j for rows in drawn.splits.values() for _, row in rows for j in row}
    assert facts["labels"] == len(in_use)
    assert facts["bands"]["1-9"] == np.count_nonzero((counts >= 1) & (counts <= 9)) > 10
    assert facts["bands"]["0"] == len(in_use) - np.count_nonzero(counts)
    for split, rows in drawn.splits.items():
        assert facts["splits"][split]["documents"] == len(rows)
        labels = sum(len(row) for _, row in rows) / len(rows)
        assert facts["splits"][split]["labels_per_document"] == pytest.approx(labels, abs=1e-4)
    assert f"{facts['bands']['1-9']}" in command("info", tmp_path)


@pytest.mark.parametrize(
    ("shape", "write", "rates", "labels_per_batch"),
    [
        (EURLEX, attentionxml, (5e-5, 1e-4, 2e-3), 300),
        (WIKI10, raw_attentionxml, (1e-5, 1e-4, 1e-3), 500),
        (AMAZONCAT, pecos, (5e-5, 1e-4, 2e-3), 300),
    ],
    ids=[shape.recipe for shape in (EURLEX, WIKI10, AMAZONCAT)],
)
def test_the_recipe_makes_a_run_that_is_scored_as_in_the_paper(
    draw, tiny_folder, tmp_path, shape, write, rates, labels_per_batch
):
    folder, run = tmp_path / "corpus", tmp_path / "run"
    folder.mkdir()
    write(folder, draw(shape))
    # A tiny encoder and one epoch in place of BERT-base and several; all else is the recipe's.
    changes = [
        f"encoder.name={json.dumps(str(tiny_folder))}",
        "classifier.epochs=1",
        "retrieval.epochs=1",
        "device=cpu",
    ]
    options = [part for change in changes for part in ("--set", change)]
    command("fit", folder, "--out", run, "--config", shape.recipe, *options)
    settings = Run(run).manifest()["config"]
    assert Config.from_dict(settings) == Config.load(shape.recipe, changes)
    classifier, retrieval = settings["classifier"], settings["retrieval"]
    assert tuple(classifier[f"{part}_lr"] for part in ("encoder", "pooler", "head")) == rates
    assert (retrieval["hard_negatives"], retrieval["labels_per_batch"]) == (10, labels_per_batch)
    ks = ",".join(map(str, shape.ks))
    page = tmp_path / "page.html"
    scored = ("evaluate", run, folder, "--split", "test", "--k", ks, "--report", page)
    parts = json.loads(command(*scored, "--parts", "--json"))
    assert {"svm", "classifier", "retrieval", "name retrieval", "depl+c", "fusion"} <= set(parts)
    model, test = depl.Classifier.load(run), depl.read(folder, splits=["test"]).test
    test = test.aligned(model.labels)
    humble = evaluate(
        popularity(model.train_counts, len(test), max(10, *shape.ks)),
        test,
        train_counts=np.pad(model.train_counts, (0, len(test.labels) - len(model.labels))),
        n_train=model.n_train,
        ks=shape.ks,
    ).to_json()
    largest = shape.ks[-1]
    for metric in ("P@5", "PSP@5", f"P@{largest}", f"macroF1@{largest}"):
        assert parts["fusion"][metric] > 1.2 * humble[metric]
        assert parts["svm"][metric] > humble[metric]
    rare = f"macroF1@{largest}_in_test"
    assert parts["fusion"]["bands"]["1-9"][rare] > humble["bands"]["1-9"][rare] + 5
    assert f"Macro-F1@{largest}" in page.read_text(encoding="utf-8")
    assert f"macro-F1@{largest}" in command(*scored)
