"""From measured results to the tables and figures of the documentation."""

from __future__ import annotations

import importlib.util
import itertools
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from depl.core.errors import DeplError
from depl.evaluation.scores import evaluate, popularity

ROOT = Path(__file__).parents[2]
EXPERIMENTS = ROOT / "experiments"


@pytest.fixture(scope="module")
def tables(import_script):
    return import_script("tables")


@pytest.fixture
def keyword_table(import_script):
    return import_script("keyword_table")


def report(value, *, n_bins=3):
    """A report whose every score is the value; tail and bins, too."""
    metrics = [f"{m}@{k}" for m in ("P", "PSP", "R") for k in (1, 3, 5)] + ["R@10"]
    f1 = {f"macroF1@{k}{end}": value for k in (1, 3, 5) for end in ("", "_in_test")}
    band = {"labels": 100, "labels_in_test": 50, **f1, "R@10": value}
    return {
        "documents": 10,
        "labels": 100 * n_bins,
        **dict.fromkeys(metrics, value),
        "bands": {name: dict(band) for name in ("0", "1-9", "10-99", "100+")},
        "bins": [[100 * i + 1, 100 * i + 100, float(i), 50, value + i] for i in range(n_bins)],
    }


def write(folder, seed, systems, *, corpus="eurlex57k", n_bins=3):
    folder.mkdir(exist_ok=True)
    name = f"{corpus}-peers" if seed is None else f"{corpus}-seed{seed}"
    entries = {s: {"seconds": 1.0, "report": report(v, n_bins=n_bins)} for s, v in systems.items()}
    content = {"corpus": corpus, "split": "dev", "seed": seed, "systems": entries}
    (folder / f"{name}.json").write_text(json.dumps(content))


def page(folder, *names):
    (folder / "docs").mkdir(exist_ok=True)
    text = "\n\n".join(f"<!-- results: {n} -->\n<!-- end -->" for n in names)
    (folder / "docs" / "page.md").write_text(f"Before.\n\n{text}\n\nAfter.\n")
    return folder / "docs" / "page.md"


def make(tables, folder):
    """Write everything, as the command does."""
    stale, files = tables.render(folder, tables.read_results(folder / "results"))
    for path, text in files.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return stale


def rows(text):
    """The cells of each line of the tables, by the first cell."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {line[0]: line[1:] for line in lines}


def test_commands_that_write_into_one_file_lose_nothing_of_each_other(tables, tmp_path):
    measured = importlib.import_module("measured")
    path = tmp_path / "results" / "toy-seed0.json"
    facts = {"corpus": "toy", "split": "dev", "seed": 0}

    def add(name):
        measured.add_system(path, facts, name, {"seconds": 1.0, "report": report(40.0)})

    names = [f"system {i}" for i in range(24)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, names))
    assert set(measured.read_systems(path)) == set(names)
    assert set(tables.read_results(path.parent)["toy"].reports) == set(names)


def test_a_cell_is_the_mean_of_the_seeds_and_their_sample_standard_deviation(tables, tmp_path):
    for seed, value in enumerate((40.0, 41.0, 45.0)):
        write(tmp_path / "results", seed, {"depl": value, "svm": 30.0})
    write(tmp_path / "results", None, {"omikuji Bonsai": 20.0})
    path = page(tmp_path, "table3-eurlex57k")
    make(tables, tmp_path)
    text = path.read_text()
    # The mean of 40, 41, 45 is 42; their squared distances 4 + 1 + 9 over n - 1 = 2 are 7.
    assert rows(text)["DEPL"] == [f"**42.00 ± {7**0.5:.2f}**"] * 4
    assert rows(text)["SVM"] == ["30.00 ± 0.00"] * 4
    assert rows(text)["omikuji Bonsai"] == ["20.00"] * 4
    assert "Seeds 0, 1, 2: mean ± sample standard deviation; peers once." in text
    assert text.startswith("Before.")
    assert text.endswith("After.\n")


def test_what_is_missing_is_left_out_and_named(tables, tmp_path):
    write(tmp_path / "results", 0, {"depl": 40.0, "de-ret": 39.0})
    write(tmp_path / "results", 1, {"depl": 42.0})
    path = page(tmp_path, "table4-eurlex57k", "table4-elsewhere", "table5-eurlex57k", "figure4")
    make(tables, tmp_path)
    text = path.read_text()
    assert list(rows(text))[2:] == ["DE-ret", "DEPL"]  # below the head
    assert rows(text)["DE-ret"] == ["39.00"] * 3
    flat = " ".join(text.split())
    assert "DE-ret: seed 0 only." in flat
    assert "Not measured yet: PECOS one-vs-all, PECOS XR-Linear" in flat
    assert flat.count("DEPL+c, all parts together.") == 2  # once for each of the two tables
    assert "Not measured yet: eurlex57k." in flat  # its keywords


def test_what_was_measured_where_is_one_table(tables, tmp_path):
    write(tmp_path / "results", 0, {"svm": 1.0, "depl": 1.0})
    write(tmp_path / "results", 1, {"svm": 1.0})
    write(tmp_path / "results", None, {"PECOS one-vs-all": 1.0})
    write(tmp_path / "results", 0, {"LightXML": 1.0}, corpus="debtags")
    corpora = tables.read_results(tmp_path / "results")
    lines = tables.block("coverage", corpora, "")[0].splitlines()
    assert lines[0] == "|  | debtags | EURLEX57K | on | command |"
    rows = {line.split(" | ")[0].strip("| "): line.split(" | ")[1:] for line in lines[2:]}
    assert set(tables.SYSTEMS.values()) <= set(rows)
    assert rows["PECOS one-vs-all"][:3] == ["–", "once", "CPU"]
    assert rows["SVM"][:3] == ["–", "0, 1", "CPU"]
    assert rows["DEPL"][:3] == ["–", "0", "GPU"]
    light = rows["LightXML's algorithm on our encoder"]
    assert light == ["0", "–", "GPU", "`compare.py CORPUS lightxml` |"]
    assert rows["Table 6, all but DE-ret"][:2] == ["–", "–"]
    absent = tables.block("missing", corpora, "")[0].splitlines()[2:]
    found = {tuple(cells[:2]): cells[3] for cells in (x.strip("| ").split(" | ") for x in absent)}
    assert found["SVM", "debtags"] == "`python experiments/compare.py data/debtags svm`"
    assert found["SVM", "EURLEX57K, seed 2"].endswith(" svm --seed 2`")
    assert found["DEPL", "EURLEX57K, seeds 1, 2"].endswith(" --only depl --seed 1`")
    assert ("PECOS one-vs-all", "debtags") in found
    assert ("PECOS one-vs-all", "EURLEX57K") not in found
    assert ("LightXML's algorithm on our encoder", "debtags") not in found  # one seed is all of it


def test_nothing_is_measured_and_every_block_says_so(tables, tmp_path):
    kinds = (*tables.TABLES, *tables.KEYWORDS, "figure1")
    path = page(tmp_path, *(f"{kind}-eurlex57k" for kind in kinds), "figure3", "figure4")
    make(tables, tmp_path)
    assert path.read_text().count("Not measured yet") == len(kinds) + 2
    assert not (tmp_path / "docs" / "images").exists()


def test_ablations_are_differences_to_the_same_seed_with_the_papers_signs(tables, tmp_path):
    write(tmp_path / "results", 0, {"depl": 40.0, "de-ret": 38.5, "depl, no hard negatives": 41.0})
    write(tmp_path / "results", 1, {"depl": 50.0, "de-ret": 49.5})
    write(tmp_path / "results", 2, {"de-ret": 10.0})  # without a DEPL to compare with
    path = page(tmp_path, "table6-eurlex57k")
    make(tables, tmp_path)
    text = path.read_text()
    assert rows(text)["**names alone (DE-ret)**"] == ["−1.00"] * 7 + ["5 of 6, not PSP@5"]
    assert rows(text)["**no hard negatives**"] == ["+1.00"] * 7 + ["none of 6"]
    assert rows(text)["DEPL itself, between seeds"][0] == f"± {50**0.5:.2f}"
    assert "| the paper, EUR-Lex | −1.34 | −1.18 | −1.16 | −3.20 | −2.11 | +0.18 |" in text
    flat = " ".join(text.split())
    assert "names alone (DE-ret): 0, 1; no hard negatives: 0." in flat
    assert "Not measured yet: no classifier first, 5 hard negatives, labels by CLS." in flat


def test_seeds_stand_side_by_side(tables, tmp_path):
    write(tmp_path / "results", 0, {"depl": 40.0, "svm": 30.0})
    write(tmp_path / "results", 3, {"depl": 42.0})
    path = page(tmp_path, "seeds-eurlex57k")
    make(tables, tmp_path)
    assert rows(path.read_text())["DEPL"] == ["40.00 / 42.00"] * 3
    assert rows(path.read_text())["SVM"] == ["30.00 / –"] * 3


def test_check_names_a_block_that_was_edited_by_hand(tables, tmp_path, monkeypatch, capsys):
    write(tmp_path / "results", 0, {"depl": 40.0, "svm": 30.0})
    path = page(tmp_path, "summary-eurlex57k", "figure3")
    command = ["tables.py", "--root", str(tmp_path), "--results", str(tmp_path / "results")]
    monkeypatch.setattr(sys, "argv", command)
    tables.main()
    monkeypatch.setattr(sys, "argv", [*command, "--check"])
    tables.main()
    assert "up to date" in capsys.readouterr().out
    for edited, old, new, named in (
        (path, "40.00", "41.00", "docs/page.md: summary-eurlex57k"),
        (tmp_path / "docs/images/figure3.svg", "40.00", "41.00", "docs/images/figure3.svg"),
    ):
        right = edited.read_text(encoding="utf-8")
        edited.write_text(right.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(SystemExit) as stopped:
            tables.main()
        assert stopped.value.code not in (0, None)
        assert f"{named} is not" in capsys.readouterr().out
        assert new in edited.read_text(encoding="utf-8")  # a check mends nothing
        edited.write_text(right, encoding="utf-8")


def test_a_block_without_end_or_of_an_unknown_name_is_refused(tables, tmp_path):
    path = page(tmp_path, "summary-eurlex57k")
    path.write_text(path.read_text().replace("<!-- end -->", ""))
    with pytest.raises(DeplError, match=r"docs/page\.md.*does not end"):
        make(tables, tmp_path)
    page(tmp_path, "table9-eurlex57k")
    with pytest.raises(DeplError, match="table9-eurlex57k"):
        make(tables, tmp_path)


def test_a_file_that_is_no_result_is_named(tables, tmp_path):
    (tmp_path / "eurlex57k-seed0.json").write_text('{"systems": {}}')
    with pytest.raises(DeplError, match=r"eurlex57k-seed0\.json.*corpus"):
        tables.read_results(tmp_path)


def test_figures_are_the_same_bytes_in_every_process(tables, tmp_path):
    for seed in (0, 1):
        systems = {"svm": 30.0, "classifier": 25.0 + seed, "de-ret": 28.0, "depl": 35.0 + 2 * seed}
        write(tmp_path / "results", seed, {**systems, "fusion": 40.0, "depl, 8 tokens": 31.0})
    page(tmp_path, "figure1-eurlex57k", "figure3", "figure4")
    make(tables, tmp_path)
    command = [sys.executable, str(EXPERIMENTS / "tables.py"), "--check", "--root", str(tmp_path)]
    done = subprocess.run(
        [*command, "--results", str(tmp_path / "results")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    images = sorted(path.name for path in (tmp_path / "docs/images").iterdir())
    assert images == ["figure1-eurlex57k.svg", "figure3.svg", "figure4.svg"]


def test_many_bins_are_averaged_with_their_neighbours_and_seeds(tables, tmp_path):
    for seed in (0, 1):
        write(tmp_path / "results", seed, {"svm": 10.0 * seed}, corpus="long", n_bins=121)
    measured = tables.read_results(tmp_path / "results")["long"]
    curve = tables.drawings.mean_curve(list(measured.reports["svm"].values()), "SVM")
    assert len(curve.bins) == 41  # 121 bins, three at a time; the last stands alone
    assert curve.bins[0][:2] == (1, 300)
    assert curve.bins[0].labels_in_test == 150
    assert [b.macro_f1 for b in curve.bins[:2]] == [5.0 + 1, 5.0 + 4]
    assert curve.bins[-1].macro_f1 == 5.0 + 120
    path = page(tmp_path, "figure1-long")
    make(tables, tmp_path)
    assert "mean of 300 labels: the paper's bins of 100, 3 neighbours averaged" in " ".join(
        path.read_text().split()
    )


def test_what_was_measured_as_a_whole_is_in_the_tables_and_not_in_figure_1(tables, tmp_path):
    write(tmp_path / "results", 0, {"svm": 10.0})
    write(tmp_path / "results", 1, {"fusion": 20.0}, n_bins=0)
    path = page(tmp_path, "figure1-eurlex57k", "table4-eurlex57k")
    make(tables, tmp_path)
    text = " ".join(path.read_text().split())
    assert "from rare to common labels: SVM]" in text
    assert "Not measured yet: BERT classifier, DEPL, all parts together" in text
    assert rows(path.read_text())["all parts together"] == ["**20.00**"] * 3


def test_the_documentation_is_what_was_measured(tables):
    stale, _ = tables.render(ROOT, tables.read_results())
    assert stale == []


def test_ranks_of_documents_match_sorting_them(keyword_table):
    rng = np.random.default_rng(5)
    for _ in range(50):
        scores = rng.integers(0, 6, 40).astype(float)  # with many ties
        relevant = rng.choice(40, rng.integers(1, 6), replace=False)
        order = np.argsort(-scores, kind="stable")
        right = np.isin(order, relevant)
        precision = np.cumsum(right) / np.arange(1, 41)
        expected = (precision[right].mean(), float(right[0]), right[:10].sum() / len(relevant))
        assert keyword_table.ranked(scores, relevant) == pytest.approx(expected)


def test_only_the_words_of_a_name_that_documents_have_count(keyword_table):
    from types import SimpleNamespace

    import depl

    features = depl.TfidfFeatures(language="en", min_df=1, max_df=1.0)
    features.fit(["wine cellar", "beer"], names=["wine merchant", "brewery"])
    assert "merchant" in features.terms_
    labels = [SimpleNamespace(name="wine merchant"), SimpleNamespace(name="brewery")]
    model = SimpleNamespace(features=features, labels=labels, n_train=2)
    assert keyword_table.name_terms(model, [0, 1]) == [{"wine"}, set()]


def test_chance_is_the_mean_over_all_orders(keyword_table):
    n, support = 6, 2
    every = [
        keyword_table.ranked(-np.array(order, float), np.arange(support))
        for order in itertools.permutations(range(n))
    ]
    found = keyword_table.chance(np.array([support]), n)[0]
    assert found == pytest.approx(np.mean(every, axis=0))


def test_keywords_of_a_run_are_shown_and_measured(
    tables, keyword_table, fitted_run, corpus_folder, tmp_path, monkeypatch, capsys
):
    results = tmp_path / "results"
    results.mkdir()
    command = ["keyword_table.py", str(fitted_run), str(corpus_folder), "--results", str(results)]
    monkeypatch.setattr(sys, "argv", command)
    keyword_table.main()
    path = page(tmp_path, "table5-laws", "keywords-laws")
    make(tables, tmp_path)
    printed = rows(capsys.readouterr().out)
    assert printed == rows(path.read_text())
    groups = json.loads((results / "laws-keywords.json").read_text())["keywords"]["groups"]
    assert groups["1"]["labels"] == 0  # no label of this corpus has a single document
    found = groups["1-9"]["queries"]
    assert found["name + keywords"]["MAP"] > found["name"]["MAP"] > found["chance"]["MAP"]
    assert found["name + keywords"]["better"] > found["name + keywords"]["worse"]


@pytest.fixture
def peers(tables, monkeypatch):
    """The script under a name of its own: ``peers`` is the package it calls."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    spec = importlib.util.spec_from_file_location("peers_script", EXPERIMENTS / "peers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    for name in [x for x in sys.modules if x == "linear" or x.split(".")[0] == "peers"]:
        sys.modules.pop(name)


def test_kept_predictions_of_a_peer_are_scored_without_training(
    peers, tables, dataset, corpus_folder, tmp_path, monkeypatch, capsys
):
    train, dev = dataset.train, dataset.dev
    ranking = popularity(train.label_counts, len(dev), k=10)
    folder = tmp_path / ".work" / "laws" / "peers"
    folder.mkdir(parents=True)
    np.savez(folder / "pecos_ova.npz", indices=ranking.indices, scores=ranking.scores)
    measured = {"train_seconds": 7.25, "predict_seconds": 1.0, "peak_rss_mb": 1.0}
    more = {"train_peak_rss_mb": 1.0, "model_mb": 1.0, "train_cpu_seconds": 14.0}
    about = {"peer": "pecos_ova", "version": "1.2.8", "settings": {"C": 1.0}}
    (folder / "pecos_ova.json").write_text(json.dumps(about | measured | more))
    write(tmp_path / "results", None, {"omikuji Bonsai": 20.0}, corpus="laws")
    monkeypatch.setattr(peers, "BENCHMARKS", tmp_path)
    command = ["peers.py", str(corpus_folder), "--only", "pecos_ova", "--keep"]
    monkeypatch.setattr(sys, "argv", [*command, "--results", str(tmp_path / "results")])
    peers.main()
    found = json.loads((tmp_path / "results" / "laws-peers.json").read_text())
    assert list(found["systems"]) == ["PECOS one-vs-all", "omikuji Bonsai"]
    assert found["systems"]["PECOS one-vs-all"]["seconds"] == 7.2
    expected = evaluate(ranking, dev, train_counts=train.label_counts, n_train=len(train))
    assert found["systems"]["PECOS one-vs-all"]["report"] == expected.to_json(bins=True)
    assert found["versions"]["pecos"] == "1.2.8"
    assert "PECOS one-vs-all" in tables.read_results(tmp_path / "results")["laws"].reports


def test_rare_labels_costs_and_notes_have_their_tables(tables, tmp_path):
    scores = {f"{m}@{k}": 10.0 * k for m in ("P", "PSP") for k in (1, 3, 5)}
    entry = {
        "command": "python experiments/peers.py data/debtags --only attentionxml --set epochs=5",
        "seconds": 900.0,
        "cpu_seconds": 612.3,
        "peak_memory_mb": 2048,
        "hardware": "NVIDIA H200, 16 cores",
        "note": "5 of 30 epochs",
        "tail": {"documents": 46} | scores,
        "fresh": {"documents": 1234} | {key: x + 1 for key, x in scores.items()},
        "report": report(50.0),
    }
    folder = tmp_path / "results"
    write(folder, None, {"DiSMEC": 40.0}, corpus="debtags")
    path = folder / "debtags-peers.json"
    content = json.loads(path.read_text())
    content["systems"]["AttentionXML"] = entry
    path.write_text(json.dumps(content))
    corpora = importlib.import_module("measured").read_results(folder)

    def block(name):
        return tables.block(name, corpora, "images")[0]

    assert "with our own word vectors; 5 of 30 epochs | **50.00** |" in block("table4-debtags")
    tail = block("tail-debtags")
    assert "; 5 of 30 epochs | **10.00** | **30.00** | **50.00** |" in tail
    assert "46 dev documents carry such a label" in tail
    assert "DiSMEC" not in tail.split("Not measured yet")[0]
    fresh = block("fresh-debtags")
    assert "; 5 of 30 epochs | **11.00** | **31.00** | **51.00** |" in fresh
    assert "1,234 dev documents repeat no training document." in fresh
    command = "`peers.py data/debtags --only attentionxml --set epochs=5`"
    assert f"| 612 | 2,048 | NVIDIA H200, 16 cores | {command} |" in block("costs-debtags")
    assert block("gradients-debtags") == "Not measured yet: debtags.\n"
