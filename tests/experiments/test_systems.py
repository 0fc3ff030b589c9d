"""The other systems of the paper's tables on small data, and their parts against brute force."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from depl.core.errors import DeplError
from depl.core.indicator import indicator

pytestmark = pytest.mark.usefixtures("one_thread", "import_script")

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


@pytest.fixture(scope="module")
def corpus(two_words_a_label):
    return two_words_a_label(120, 10, slice(30, 60))


def first_is_right(ranking, Y):
    return np.mean([row[0] in Y[[i]].indices for i, row in enumerate(ranking.indices)])


def test_dismec_is_liblinear_with_small_weights_dropped():
    from liblinear.liblinearutil import parameter, problem, train
    from scipy.sparse import csr_array, csr_matrix
    from systems.dismec import dismec

    rng = np.random.default_rng(0)
    dense = rng.random((80, 30)) * (rng.random((80, 30)) < 0.3) + 1e-3
    X = csr_array((dense / np.linalg.norm(dense, axis=1, keepdims=True)).astype(np.float32))
    Y = csr_array((rng.random((80, 5)) < 0.2).astype(np.float32))
    svm = dismec(tol=1e-5).fit(X, Y)
    assert np.abs(svm.weights_.data).min() >= 0.01
    for label in range(5):
        y = np.where(Y[:, [label]].toarray().ravel() > 0, 1.0, -1.0)
        model = train(
            problem(y.tolist(), csr_matrix(X, dtype=np.float64), bias=1.0),
            parameter("-s 1 -c 1 -e 1e-8 -B 1 -q"),
        )
        weights, bias = model.get_decfun()
        sign = 1.0 if model.get_labels()[0] == 1 else -1.0
        expected = sign * np.array(weights)
        expected[np.abs(expected) < 0.01] = 0
        np.testing.assert_allclose(svm.weights_[[label]].toarray()[0], expected, atol=5e-3)
        assert svm.bias_[label] == pytest.approx(sign * bias, abs=5e-3)


def test_sides_are_those_of_the_hand_worked_example():
    """Four documents with one label each, a and b twice; all weights 1.

    Side 0 starts with documents 0 (a), 1 (a) and 2 (b), side 1 with 3 (b). On side 0 a is first
    (discount 1) and b second (1 / log2 3 = 0.63), on side 1 b is first (1). Document 2 has b, gains
    1 - 0.63 by moving, and moves; those with a would lose as much: on side 1 a comes last.
    """
    from systems.pfastrexml import best_sides

    Y = indicator([[0], [0], [1], [1]], 2)
    sides = np.array([0, 0, 0, 1])
    best_sides(Y.indptr, Y.indices, np.arange(4), np.ones(2), sides, np.full(2, -1))
    assert sides.tolist() == [0, 0, 1, 1]


def test_a_separator_is_the_optimum_of_its_objective():
    from scipy.optimize import minimize
    from scipy.sparse import csr_array
    from systems.pfastrexml import separator

    rng = np.random.default_rng(1)
    X = csr_array(rng.random((60, 3)).astype(np.float32))
    dense = X.toarray().astype(np.float64)
    sides = (dense[:, 0] > 0.5).astype(np.int64)
    # The types that a fit has, for which it is compiled anyway.
    indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int64)
    terms, weights, offset, margin = separator(
        indptr, indices, X.data, np.arange(60), sides, np.full(3, -1), 1.0
    )
    w = np.zeros(3)
    w[terms] = weights
    np.testing.assert_allclose(margin, dense @ w + offset, atol=1e-9)

    cost = np.where(sides == 1, 1 / sides.mean(), 1 / (1 - sides.mean()))

    def objective(v):
        losses = np.log1p(np.exp(-(2 * sides - 1) * (dense @ v[:3] + v[3])))
        return np.abs(v[:3]).sum() + (cost * losses).sum()

    best = minimize(objective, np.zeros(4), method="Powell", options={"maxiter": 20_000}).fun
    assert objective(np.append(w, offset)) < best * 1.03
    assert ((margin > 0) == (sides > 0)).mean() > 0.9


def test_pfastrexml_finds_rare_labels_and_scores_as_its_formula(corpus):
    from systems.pfastrexml import PfastreXML

    import depl

    X = depl.TfidfFeatures(analyzer="words", min_df=1).fit_transform(corpus.texts)
    model = PfastreXML(trees=5, n_threads=1).fit(X, corpus.Y)
    ranking = model.rank(X, 3)
    assert first_is_right(ranking, corpus.Y) > 0.9
    again = PfastreXML(trees=5, n_threads=2).fit(X, corpus.Y).rank(X, 3)
    assert (again.indices == ranking.indices).all()
    i, label = 7, int(ranking.indices[7, 0])
    x, carries = X[[i]].toarray()[0], corpus.Y[:, [label]].toarray().ravel() > 0
    far = ((x - X.toarray()[carries].mean(axis=0)) ** 2).sum()
    trees = np.exp((ranking.scores[i, 0] + 0.2 * np.logaddexp(0, 30 * far)) / 0.8)
    assert 0 < trees <= model.inverse_[label] + 1e-6


def test_a_single_leaf_holds_the_weighted_mean_of_the_labels():
    from scipy.sparse import csr_array
    from systems.pfastrexml import PfastreXML

    Y = indicator([[0, 1], [0], [0]], 3)
    model = PfastreXML(trees=1, alpha=1.0).fit(csr_array(np.eye(3)), Y)
    (labels, weights), *others = model.trees_[0].leaves
    assert not others
    shares = dict(zip(labels.tolist(), weights.tolist(), strict=True))
    assert shares == {0: pytest.approx(model.inverse_[0]), 1: pytest.approx(model.inverse_[1] / 3)}
    ranking = model.rank(csr_array(np.eye(3)), 2)
    assert ranking.indices[0].tolist() == sorted((0, 1), key=lambda j: -shares[j])
    # Re-ranked: the mean of label 0 is a third of each axis, 2/3 from document 0 (squared); that of
    # label 1 is document 0 itself.
    model.alpha = 0.8
    ranking = model.rank(csr_array(np.eye(3)), 2)
    scores = dict(zip(ranking.indices[0].tolist(), ranking.scores[0].tolist(), strict=True))
    assert scores[0] == pytest.approx(0.8 * np.log(shares[0]) - 0.2 * np.log(1 + np.exp(20)))
    assert scores[1] == pytest.approx(0.8 * np.log(shares[1]) - 0.2 * np.log(2))


def test_every_setting_has_its_row_beside_the_papers():
    from settings import PAPER, TECHNICAL, settings_table, values

    from depl.run.config import Config

    assert set(PAPER) | TECHNICAL == set(values(Config()))
    assert not set(PAPER) & TECHNICAL
    table = settings_table()
    assert "| `linear.cull` | not in the paper | 0.0 | 0.05 | small weights are noise |" in table
    assert "| `features.analyzer` | spaCy's lemmas | simplemma | simplemma | ten times" in table
    ours, paper = values(Config.load("small-gpu")), values(Config.load("paper"))
    unexplained = [x for x, (_, why) in PAPER.items() if ours[x] != paper[x] and not why]
    assert unexplained == []


def test_a_paired_bootstrap_knows_a_difference_from_noise():
    from significance import paired_bootstrap

    rng = np.random.default_rng(0)
    a = rng.normal(0, 1, 400)
    clear = paired_bootstrap(a + 0.2 + rng.normal(0, 0.1, 400), a, rng)
    assert clear.mean == pytest.approx(0.2, abs=0.02)
    # The interval of a mean is about two standard errors to each side.
    assert clear.high - clear.low == pytest.approx(4 * 0.1 / 20, rel=0.25)
    assert clear.significant
    assert not paired_bootstrap(rng.normal(0, 1, 400), a, rng).significant


def test_two_systems_are_compared_on_the_documents_that_both_ranked(
    corpus_folder, tmp_path, monkeypatch, capsys
):
    import compare
    import significance

    out, results = tmp_path / "runs", tmp_path / "results"
    shared = [str(corpus_folder), "--out", str(out)]
    quick = ["--results", str(results), "--set", "features.analyzer=words"]
    few = ["--set", "pfastrexml.trees=2"]
    command = ["compare.py", shared[0], "dismec", "pfastrexml", *shared[1:], *quick, *few]
    monkeypatch.setattr(sys, "argv", command)
    compare.main()
    compare.main()  # nothing is measured twice
    assert capsys.readouterr().out.count("--redo measures it again") == 2
    names = sorted(path.name for path in results.glob("*.json"))
    name = corpus_folder.name
    assert names == [f"{name}-systems-seed0.json", f"{name}-systems.json"]
    rows = json.loads((results / f"{name}-systems-seed0.json").read_text())["systems"]
    assert rows["PfastreXML"]["note"] == "trees=2"
    command = ["significance.py", shared[0], "DiSMEC", "DiSMEC", *shared[1:], *quick[:2]]
    monkeypatch.setattr(sys, "argv", command)
    significance.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("DiSMEC and DiSMEC, all documents: ")
    assert "+0.00 [+0.00, +0.00]  not significant" in lines[1]
    kept = json.loads((results / f"{name}-significance.json").read_text())["significance"]
    assert kept["DiSMEC"]["DiSMEC"]["without repeated ones"]["P@1"] == [0.0, 0.0, 0.0]
    monkeypatch.setattr(sys, "argv", [*command[:3], "Nobody", *command[4:]])
    with pytest.raises(DeplError, match="no ranking of 'Nobody'"):
        significance.main()


def test_what_was_measured_elsewhere_is_added_to_what_is_known(tmp_path, monkeypatch, capsys):
    import collect
    from measured import add_system, keep_ranking, kept_ranking, read_systems

    from depl.core.ranking import Ranking

    there, here, runs = tmp_path / "there", tmp_path / "results", tmp_path / "runs"
    ranking = Ranking(np.array([[1, 0]], np.int32), np.array([[0.5, 0.25]], np.float32))
    facts = {"corpus": "c", "seed": 0, "versions": {"depl": "1"}}
    for folder, version in ((here, {"numpy": "2"}), (there, {"torch": "3"})):
        folder.mkdir()
        about = facts | {"versions": facts["versions"] | version}
        add_system(folder / "c-systems-seed0.json", about, "both", {"seconds": len(str(folder))})
        add_system(folder / "c-systems-seed0.json", about, folder.name, {"seconds": 1})
    keep_ranking(there / "c", "there", 0, ranking)
    command = ["collect.py", str(there), "--results", str(here), "--out", str(runs)]
    monkeypatch.setattr(sys, "argv", command)
    collect.main()
    assert capsys.readouterr().out.count("c-systems-seed0.json: ") == 2
    found = json.loads((here / "c-systems-seed0.json").read_text())
    assert found["versions"] == {"depl": "1", "numpy": "2", "torch": "3"}
    assert set(found["systems"]) == {"both", "results", "there"}
    assert found["systems"]["both"] == read_systems(there / "c-systems-seed0.json")["both"]
    assert kept_ranking(runs / "c", "there", 0).indices.tolist() == [[1, 0]]


def test_rare_labels_alone_are_scored_as_if_there_were_no_others(two_words_a_label):
    """Labels 0 and 1 are rare. Two documents carry one: the first finds it behind a common label,
    which does not count; the second finds a wrong rare label first, and its own second."""
    from measured import tail_scores

    from depl.core.ranking import Ranking
    from depl.evaluation.metrics import inverse_propensities

    documents = two_words_a_label(3, 3, slice(0, 1))
    documents = replace(documents, Y=indicator([[0, 2], [1], [2]], 3))
    ranking = Ranking(
        np.array([[2, 0, 1], [0, 2, 1], [0, 1, 2]], np.int32),
        np.tile(np.array([0.9, 0.5, 0.1], np.float32), (3, 1)),
    )
    counts = np.array([1, 9, 50])
    found = tail_scores(ranking, documents, counts, 100)
    inverse = inverse_propensities(counts, 100)
    assert found["documents"] == 2
    assert found["P@1"] == 50.0
    assert found["P@3"] == pytest.approx(100 / 3, abs=1e-3)
    assert found["PSP@1"] == pytest.approx(100 * inverse[0] / (inverse[0] + inverse[1]), abs=1e-3)
    assert found["PSP@3"] == 100.0


def test_documents_that_repeat_training_ones_are_left_out(two_words_a_label):
    """The second of three repeats one; the first has its label first, the third second."""
    from measured import scores_apart

    from depl.core.ranking import Ranking
    from depl.evaluation.metrics import inverse_propensities

    documents = replace(two_words_a_label(3, 3, slice(0, 1)), Y=indicator([[0], [1], [2]], 3))
    ranking = Ranking(
        np.array([[0, 1, 2], [0, 1, 2], [0, 2, 1]], np.int32),
        np.tile(np.array([0.9, 0.5, 0.1], np.float32), (3, 1)),
    )
    counts = np.array([1, 9, 50])
    found = scores_apart(ranking, documents, counts, 100, np.array([False, True, False]))["fresh"]
    inverse = inverse_propensities(counts, 100)
    assert found["documents"] == 2
    assert found["P@1"] == 50.0
    assert found["P@3"] == pytest.approx(100 / 3, abs=1e-3)
    assert found["PSP@1"] == pytest.approx(100 * inverse[0] / (inverse[0] + inverse[2]), abs=1e-3)
    assert found["PSP@3"] == 100.0


def test_gradients_of_labels_are_those_of_the_cross_entropy():
    """The two parts add up to what autograd says of the loss, and are the paper's formulas."""
    import torch
    from gradients import label_gradients

    torch.manual_seed(0)
    documents, targets = torch.randn(5, 3), (torch.rand(5, 4) < 0.4).float()
    labels = torch.randn(4, 3, requires_grad=True)
    logits = documents @ labels.T
    found = label_gradients(logits, targets, labels)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, targets, reduction="sum")
    whole = torch.autograd.grad(loss, labels, retain_graph=True)[0]
    torch.testing.assert_close(found.positive + found.negative, whole)
    p = torch.sigmoid(logits).detach()
    for label in range(4):
        carried = targets[:, label] > 0
        pull = -((1 - p[carried, label])[:, None] * documents[carried]).sum(dim=0)
        push = (p[~carried, label][:, None] * documents[~carried]).sum(dim=0)
        torch.testing.assert_close(found.positive[label], pull)
        torch.testing.assert_close(found.negative[label], push)
    # By a document: (p - 1) w of its labels and p w of all others, as the paper has it.
    x = documents[:1].clone().requires_grad_()
    one = torch.nn.functional.binary_cross_entropy_with_logits(
        x @ labels.detach().T, targets[:1], reduction="sum"
    )
    expected = (p[0] - targets[0]) @ labels.detach()
    torch.testing.assert_close(torch.autograd.grad(one, x)[0][0], expected)


def test_peers_write_what_they_predict_and_measure_the_programs_they_call(monkeypatch, tmp_path):
    from scipy.sparse import csr_matrix

    monkeypatch.syspath_prepend(EXPERIMENTS.parent / "benchmarks" / "peers")
    import runner_io as io

    columns = np.array([3, 5, 9])  # of labels that training documents carry
    scores = np.array([[0.1, 0.9, 0.5], [0.0, 0.0, 0.7]], np.float32)
    io.write_predictions(tmp_path / "dense", io.best_of_dense(scores, columns, 2), 2, 2)
    io.write_predictions(tmp_path / "sparse", io.csr_rows(csr_matrix(scores), columns), 2, 2)
    with np.load(tmp_path / "dense.npz") as dense, np.load(tmp_path / "sparse.npz") as sparse:
        assert dense["indices"][0].tolist() == sparse["indices"][0].tolist() == [5, 9]
        assert dense["indices"][1, 0] == sparse["indices"][1, 0] == 9
        assert sparse["indices"][1, 1] == -1
    stage = io.measured_command([sys.executable, "-S", "-c", "x = bytearray(50_000_000)"])
    assert stage.peak_rss_mb > 50
    assert stage.cpu_seconds > 0
    with pytest.raises(SystemExit, match="left with code 3"):
        io.measured_command([sys.executable, "-S", "-c", "raise SystemExit(3)"])
    del sys.modules["runner_io"]


@pytest.fixture
def encoder_script(import_script, monkeypatch):
    """Imports a script of experiments/encoders."""
    monkeypatch.syspath_prepend(EXPERIMENTS / "encoders")
    return import_script


@pytest.fixture
def checking(encoder_script):
    return encoder_script("checking")


def test_an_encoder_that_gives_other_states_is_not_saved(checking, tiny_folder, tmp_path):
    import torch

    from depl.neural.encoder_files import find_encoder, load_encoder

    bert = load_encoder(tiny_folder).bert

    def far(_, ids, states):
        with torch.inference_mode():
            own = bert(input_ids=torch.tensor([ids])).last_hidden_state[0].numpy()
        return np.abs(own - states).max()

    with pytest.raises(SystemExit, match=r"differs by .* not saved"):
        checking.save_checked(bert, tiny_folder, tmp_path / "far", lambda *_: far(*_) + 0.1)
    assert not (tmp_path / "far").exists()
    assert checking.save_checked(bert, tiny_folder, tmp_path / "near", far) == 4
    again = load_encoder(find_encoder(str(tmp_path / "near"))).bert
    assert torch.equal(
        again.embeddings.word_embeddings.weight, bert.embeddings.word_embeddings.weight
    )


def test_known_vectors_are_compared_with_the_normalised_mean(checking):
    states = np.array([[1.0, 0.0, 5.0], [5.0, 8.0, 3.0]], np.float32)  # mean 3, 4, 4; length 6.4
    far = checking.means_beginning_with([[0.0], [3 / 41**0.5, 4 / 41**0.5 + 0.01]])
    assert far(1, [], states) == pytest.approx(0.01, abs=1e-6)


def test_weights_of_gguf_are_those_of_nomic_bert(encoder_script):
    import torch
    from transformers import NomicBertConfig, NomicBertModel

    script = encoder_script("nomic_embed")
    sizes = {"vocab_size": 20, "hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 12}
    config = NomicBertConfig(**sizes, num_hidden_layers=2)
    bert, again = NomicBertModel(config), NomicBertModel(config)
    theirs = bert.state_dict()
    names = {long: short for short, long in script._TOP.items()}
    for i in range(2):
        names |= {f"layers.{i}.{long}": f"blk.{i}.{short}" for short, long in script._LAYER.items()}
    # As llama.cpp writes it: three matrices in one, and matrices in 16 bits.
    tensors = {
        f"{names[module]}.{kind}": x.numpy().astype(np.float16 if x.ndim > 1 else np.float32)
        for (module, kind), x in ((name.rsplit(".", 1), x) for name, x in theirs.items())
        if module in names
    }
    for i in range(2):
        parts = [theirs[f"layers.{i}.self_attn.{x}_proj.weight"] for x in "qkv"]
        tensors[f"blk.{i}.attn_qkv.weight"] = torch.cat(parts).numpy().astype(np.float16)
    again.load_state_dict(script.weights_of(tensors), strict=True)
    ids = torch.tensor([[3, 9, 4, 17]])
    with torch.inference_mode():
        ours, wanted = (x.eval()(input_ids=ids).last_hidden_state for x in (again, bert))
    torch.testing.assert_close(ours, wanted, atol=2e-3, rtol=0)


def test_blocks_of_four_bits_and_pieces_of_xlm_roberta(encoder_script, tmp_path):
    script = encoder_script("multilingual_e5_small")
    # A scale of 0.5, then bytes whose low halves are weights 0 to 15 and whose high halves the
    # other 16: 0x9f is 15 and 9, so 0.5 * (15 - 8) and 0.5 * (9 - 8).
    block = np.array([0.5], "<f2").tobytes() + bytes([0x9F] + [0x88] * 15)
    values = script.unpack(block * 2)
    assert values.shape == (64,)
    assert values[[0, 16, 32, 48]].tolist() == [3.5, 0.5, 3.5, 0.5]
    assert values[[1, 15, 17, 31]].tolist() == [0.0] * 4
    assert script.full_name("l3.ao.w") == "encoder.layer.3.attention.output.dense.weight"
    special = [(piece, 0.0) for piece in ("<s>", "<pad>", "</s>", "<unk>")]
    words = [("\u2581wine", -1.0), ("s", -1.0), ("\u2581", -2.0), ("A", -2.0), ("<mask>", 0.0)]
    folder = script.write_tokenizer([*special, *words], tmp_path / "tokenizer")
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    found = tokenizer.encode("wines \uff21 q").tokens  # the full-width A is an A
    assert found == ["<s>", "\u2581wine", "s", "\u2581", "A", "\u2581", "q", "</s>"]
    assert tokenizer.encode("q").ids == [0, 6, 3, 2]


def test_a_file_that_is_not_the_one_meant_is_refused(checking, tmp_path):
    (tmp_path / "file").write_bytes(b"abc")
    wanted = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    checking.check_sha256(tmp_path / "file", wanted)
    with pytest.raises(SystemExit, match="another file than was meant"):
        checking.check_sha256(tmp_path / "file", wanted[::-1])
