"""The training loop on a toy corpus: it learns, and it repeats itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from depl.core.errors import ConfigError
from depl.core.indicator import indicator
from depl.core.ranking import Ranking
from depl.neural import encoder_files
from depl.neural.encoder import encode, rank
from depl.neural.retriever import index_documents, retrieval_ranking
from depl.neural.sampling import LabelSampler
from depl.neural.tokens import tokenize
from depl.neural.training import Schedule, Validation, parameter_groups, train

EPOCHS = {"classifier": 25, "dual": 50, "joint": 25}
OBJECTIVES = tuple(EPOCHS)
SCHEDULE = Schedule(epochs=50, batch_size=16, encoder_lr=3e-3, pooler_lr=1e-2, head_lr=3e-2)


@pytest.fixture(scope="module")
def tokens(toy, tiny_folder):
    return tokenize(toy.texts, tiny_folder, 24), tokenize(toy.names, tiny_folder, 8)


def run(tiny_folder, toy, tokens, objective, schedule=SCHEDULE, seed=0):
    """A trained encoder and its loss epoch by epoch."""
    documents, labels = tokens
    encoder = encoder_files.load_encoder(tiny_folder, n_labels=toy.n_labels)
    hard = Ranking.from_scores(np.random.default_rng(0).random(toy.Y.shape), k=4)
    told = []
    train(
        encoder,
        documents,
        toy.Y,
        objective=objective,
        schedule=schedule,
        labels=None if objective == "classifier" else labels,
        sampler=None
        if objective == "classifier"
        else LabelSampler(toy.Y, hard, n_hard=2, size=toy.n_labels),
        seed=seed,
        observe=told.append,
    )
    return encoder, told


@pytest.fixture(scope="module")
def trained(tiny_folder, toy, tokens):
    return {
        objective: run(tiny_folder, toy, tokens, objective, replace(SCHEDULE, epochs=epochs))
        for objective, epochs in EPOCHS.items()
    }


def scores_of(encoder, tokens, branch):
    documents = encode(encoder, tokens[0], "document")
    with torch.inference_mode():
        if branch == "head":
            return encoder.head(documents)
        return encoder.similarity(documents, encode(encoder, tokens[1], "label"))


def r_precision(scores, Y):
    """Share of each document's labels among as many best-scored ones."""
    order = np.argsort(-scores.numpy(), axis=1)
    carried = [set(row.indices.tolist()) for row in Y]
    return np.mean(
        [len(y & set(o[: len(y)])) / len(y) for o, y in zip(order, carried, strict=True)]
    )


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_loss_falls_and_every_epoch_is_told(trained, objective):
    _, told = trained[objective]
    assert [p.epoch for p in told if p.epoch_ends] == list(range(1, EPOCHS[objective] + 1))
    assert told[-1].loss < 0.2 * told[0].loss
    assert all(p.documents_per_second > 0 for p in told)


@pytest.mark.parametrize(
    ("objective", "branch"),
    [("classifier", "head"), ("dual", "labels"), ("joint", "head"), ("joint", "labels")],
)
def test_a_separable_corpus_is_ranked_right(trained, toy, tokens, objective, branch):
    scores = scores_of(trained[objective][0], tokens, branch)
    assert r_precision(scores, toy.Y) > 0.95


def test_the_encoder_is_left_ready_for_use(trained):
    assert not any(encoder.training for encoder, _ in trained.values())


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_seed_decides_every_weight(tiny_folder, toy, tokens, objective):
    short = replace(SCHEDULE, epochs=1)
    torch.manual_seed(1)
    first, _ = run(tiny_folder, toy, tokens, objective, short, seed=5)
    torch.manual_seed(2)  # what went on before does not matter
    second, _ = run(tiny_folder, toy, tokens, objective, short, seed=5)
    other, _ = run(tiny_folder, toy, tokens, objective, short, seed=6)
    for name, weights in first.state_dict().items():
        assert torch.equal(weights, second.state_dict()[name]), name
    assert not torch.equal(first.document_pooler.weight, other.document_pooler.weight)


def test_branches_are_apart_for_a_share_of_the_epochs():
    schedule = Schedule(epochs=6, alive=0.25, apart=0.5)
    assert [schedule.alive_in(epoch) for epoch in range(6)] == [1, 1, 1, 0.25, 0.25, 0.25]
    assert Schedule(epochs=6, alive=0.0).alive_in(0) == 0


def test_no_epoch_of_branches_apart_is_the_best(tiny_folder, toy, tokens):
    encoder = encoder_files.load_encoder(tiny_folder, n_labels=toy.n_labels)
    scores = iter([9.0, 8.0, 1.0, 2.0])
    outcome = train(
        encoder,
        tokens[0],
        toy.Y,
        objective="joint",
        schedule=replace(SCHEDULE, epochs=4, apart=0.5, alive=0.0),
        labels=tokens[1],
        sampler=LabelSampler(toy.Y, None, n_hard=0, size=toy.n_labels),
        validate=lambda encoder: Validation(next(scores)),
    )
    assert (outcome.epochs, outcome.score) == (4, 2.0)


def test_what_an_objective_does_not_use_is_left_alone(trained, tiny_folder, toy):
    fresh = encoder_files.load_encoder(tiny_folder, n_labels=toy.n_labels)
    assert torch.equal(trained["dual"][0].head.weight, fresh.head.weight)
    assert torch.equal(trained["classifier"][0].label_pooler.weight, fresh.label_pooler.weight)
    assert trained["classifier"][0].logit_scale == fresh.logit_scale


def test_four_groups_with_a_learning_rate_each_hold_every_weight_once(encoder):
    groups = parameter_groups(encoder, SCHEDULE)
    assert [g["lr"] for g in groups] == [3e-3, 1e-2, 3e-2, SCHEDULE.scale_lr]
    held = [id(p) for g in groups for p in g["params"]]
    assert sorted(held) == sorted(id(p) for p in encoder.parameters())


def test_learning_rates_of_zero_change_nothing(tiny_folder, toy, tokens):
    still = Schedule(epochs=1, batch_size=40, encoder_lr=0, pooler_lr=0, head_lr=0, scale_lr=0)
    encoder, _ = run(tiny_folder, toy, tokens, "joint", still)
    fresh = encoder_files.load_encoder(tiny_folder, n_labels=toy.n_labels)
    for name, weights in encoder.state_dict().items():
        assert torch.equal(weights, fresh.state_dict()[name]), name


def test_a_document_without_labels_is_no_hindrance(encoder, tiny_folder, toy, tokens):
    Y = indicator([[], *[row.indices for row in toy.Y[1:]]], toy.n_labels)
    told = []
    short = replace(SCHEDULE, epochs=1)
    train(encoder, tokens[0], Y, objective="classifier", schedule=short, observe=told.append)
    assert np.isfinite(told[0].loss)


def test_saved_and_loaded_it_gives_the_same_vectors(trained, tokens, tiny_folder, tmp_path):
    encoder, _ = trained["joint"]
    encoder_files.save(encoder, tmp_path / "kept", tiny_folder, max_tokens=24)
    loaded = encoder_files.load(tmp_path / "kept")
    for branch in ("head", "labels"):
        ours, theirs = (scores_of(e, tokens, branch) for e in (encoder, loaded))
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("objective", ["classifier", "joint"])
def test_a_frozen_encoder_gives_the_same_bytes_on_any_number_of_cores(tiny_folder, objective):
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(0)
    n, n_labels = 118, 877  # so many scores that PyTorch would divide them, at an odd place
    documents, labels = (rng.normal(size=(m, 32)).astype(np.float32) for m in (n, n_labels))
    Y = indicator([rng.choice(n_labels, 3, replace=False) for _ in range(n)], n_labels)
    found = []
    for threads in (1, 2, 3):
        encoder = encoder_files.load_encoder(tiny_folder, n_labels=n_labels)
        hard = Ranking.from_scores(np.random.default_rng(1).random(Y.shape), k=60)
        sampler = LabelSampler(Y, hard, n_hard=2, size=600)
        with threadpool_limits(threads):  # all libraries; and PyTorch, which counts for itself
            torch.set_num_threads(threads)
            train(
                encoder,
                documents,
                Y,
                objective=objective,
                schedule=replace(SCHEDULE, epochs=3, batch_size=n),
                labels=labels,
                sampler=sampler,
            )
            index = index_documents(encoder, documents)
            ranked = (
                index.search(index.vectors[:50], 20),
                retrieval_ranking(
                    encoder, *(encode(encoder, x, "document") for x in (documents, labels)), 20
                ),
            )
        found.append([*encoder.state_dict().values(), *(x.scores for x in ranked)])
    torch.set_num_threads(1)
    for other in found[1:]:
        for ours, theirs in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("block", [1, 7, 100])
def test_rank_is_the_top_of_the_scores_whatever_the_block(block):
    scores = torch.from_numpy(np.random.default_rng(2).permutation(60).reshape(10, 6) / 60).float()
    found = rank(lambda rows: scores[rows], 10, 3, block=block)
    expected = Ranking.from_scores(scores.numpy(), 3)
    assert (found.indices == expected.indices).all()
    assert (found.scores == expected.scores).all()


def test_what_an_objective_needs_is_said(encoder, tiny_folder, toy, tokens):
    headless = encoder_files.load_encoder(tiny_folder)
    with pytest.raises(ConfigError, match="needs a head"):
        train(headless, tokens[0], toy.Y, objective="classifier", schedule=SCHEDULE)
    with pytest.raises(ConfigError, match="'dual' needs the labels' texts and a sampler"):
        train(encoder, tokens[0], toy.Y, objective="dual", schedule=SCHEDULE)


def test_equal_scores_are_ranked_by_label_position():
    scores = torch.tensor([[1.0, 3.0, 3.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
    ranking = rank(lambda rows: scores[rows], n=2, k=6, block=1)
    assert ranking.indices.tolist() == [[1, 2, 0, 3, -1, -1], [0, 1, 2, 3, -1, -1]]
