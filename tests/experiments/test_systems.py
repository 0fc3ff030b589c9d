"""The other systems of the paper's tables on small data, and their parts against brute force."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("one_thread")

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


@pytest.fixture(autouse=True)
def systems(monkeypatch):
    """The folder that the systems are imported from."""
    monkeypatch.syspath_prepend(EXPERIMENTS)
    yield
    for name in [x for x in sys.modules if x.split(".")[0] == "systems"]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def corpus(two_words_a_label):
    return two_words_a_label(120, 10, slice(30, 60))


@pytest.fixture
def bert(tiny_folder):
    from depl.neural.encoder_files import load_encoder

    return load_encoder(tiny_folder).bert


@pytest.fixture
def tokens(corpus, tiny_folder):
    from depl.neural.tokens import tokenize

    return tokenize(corpus.texts, tiny_folder, 24)


def first_is_right(ranking, Y):
    return np.mean([row[0] in Y[[i]].indices for i, row in enumerate(ranking.indices)])


def test_lightxml_learns_and_uses_its_averaged_weights(bert, corpus, tokens):
    from systems.lightxml import LightXML

    settings = {"epochs": 30, "lr": 3e-3, "dropout": 0.1, "swa_from": 20, "swa_every": 5}
    model = LightXML(bert, 10, **settings).fit(tokens, corpus.Y)
    ranking = model.rank(tokens, 3)
    assert ranking.indices.shape == (120, 3)
    assert first_is_right(ranking, corpus.Y) > 0.9
    assert model.head.in_features == 2 * 32  # the tiny encoder has no five layers


def test_averaged_weights_are_the_mean_of_those_that_were_added():
    import torch
    from systems.lightxml import _Average

    layer = torch.nn.Linear(2, 2)
    mean, seen = _Average(layer), []
    for value in (1.0, 5.0, 6.0):
        with torch.no_grad():
            layer.weight.fill_(value)
        mean.add(layer)
        seen.append(value)
    mean.put_into(layer)
    assert torch.allclose(layer.weight, torch.full((2, 2), 4.0))


def test_lightxml_refuses_what_it_cannot_do(bert):
    from systems.lightxml import LightXML

    from depl.core.errors import ConfigError

    with pytest.raises(ConfigError, match="groups them"):
        LightXML(bert, 100_001)


def test_aplc_learns_head_and_tail(bert, corpus, tokens):
    from systems.aplc import APLC

    counts = corpus.label_counts
    model = APLC(bert, counts, epochs=40, rates=(3e-3, 1e-2, 3e-2)).fit(tokens, corpus.Y)
    assert first_is_right(model.rank(tokens, 3), corpus.Y) > 0.9
    tail = np.argsort(-counts, kind="stable")[5:]
    found = set(model.rank(tokens, 1).indices.ravel().tolist())
    assert found & set(tail.tolist())


def test_label_clusters_are_the_formulas():
    import torch
    from systems.aplc import LabelClusters

    torch.manual_seed(0)
    counts = np.array([3, 9, 1, 7])  # from common to rare: 1, 3 | 0, 2
    clusters = LabelClusters(4, counts)
    assert [c.tolist() for c in clusters.clusters] == [[1, 3], [0, 2]]
    assert clusters.tails[0][0].out_features == 2
    documents = torch.randn(3, 4)
    targets = torch.tensor([[0.0, 1, 0, 0], [1, 0, 0, 1], [0, 0, 1, 0]])
    head = torch.sigmoid(documents @ clusters.head.weight.T + clusters.head.bias)
    low = documents @ clusters.tails[0][0].weight.T
    tail = torch.sigmoid(low @ clusters.tails[0][1].weight.T + clusters.tails[0][1].bias)
    expected = torch.stack(
        [head[:, 2] * tail[:, 0], head[:, 0], head[:, 2] * tail[:, 1], head[:, 1]], dim=1
    )
    assert torch.allclose(clusters.probabilities(documents), expected)

    def entropy(p, t):
        return -(t * p.log() + (1 - t) * (1 - p).log()).mean()

    wanted = torch.tensor([[1.0, 0, 0], [0, 1, 1], [0, 0, 1]])  # labels 1 and 3, any of 0 and 2
    loss = entropy(head, wanted) + entropy(tail[1:], targets[1:][:, [0, 2]])
    assert torch.allclose(clusters.loss(documents, targets), loss)
    only_head = clusters.loss(documents[:1], targets[:1])
    assert torch.allclose(only_head, entropy(head[:1], wanted[:1]))
