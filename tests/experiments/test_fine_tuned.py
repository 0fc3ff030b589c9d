"""Fine-tuned systems of the paper's tables on small data, and their parts against brute force."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

from depl.core.indicator import indicator

pytestmark = pytest.mark.usefixtures("one_thread", "import_script")


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


@pytest.mark.parametrize("training", [False, True])
def test_padded_states_and_their_gradients_are_those_of_transformers(bert, training):
    import torch
    from systems.states import states_of

    bert.config.hidden_dropout_prob = bert.config.attention_probs_dropout_prob = 0.0
    for module in bert.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    for layer in bert.encoder.layer:
        layer.attention.self.dropout_prob = 0.0
    bert.train(training)
    ids = torch.tensor([[7, 8, 9, 10, 0, 0], [11, 12, 13, 14, 15, 16]])
    mask = torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]]).bool()
    whole = bert(input_ids=ids, attention_mask=mask.long(), output_hidden_states=True)
    found = states_of(bert, ids, mask)
    assert len(found) == len(whole.hidden_states) == 3
    parameters = [p for name, p in bert.named_parameters() if "pooler" not in name]
    weights = torch.randn_like(found[-1])
    gradients = []
    for states in (found, whole.hidden_states):
        loss = sum((x[mask] * weights[mask]).sum() for x in states)
        gradients.append(torch.autograd.grad(loss, parameters))
    for own, expected in zip(found, whole.hidden_states, strict=True):
        torch.testing.assert_close(own[mask], expected[mask])
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-4)


def test_dropout_is_that_of_training_alone(bert):
    import torch
    from systems.states import states_of

    ids, mask = torch.tensor([[7, 8, 9]]), torch.ones(1, 3).bool()
    calm = [states_of(bert.eval(), ids, mask)[-1] for _ in range(2)]
    shaken = [states_of(bert.train(), ids, mask)[-1] for _ in range(2)]
    assert torch.equal(*calm)
    assert not torch.equal(*shaken)
    bert.config.hidden_dropout_prob = 0.0  # what is left is that of attention
    assert not torch.equal(*(states_of(bert, ids, mask)[-1] for _ in range(2)))


def test_a_batch_is_some_rows_of_the_tables():
    import torch
    from systems.tables import Documents

    from depl.neural.tokens import Tokens

    tokens = Tokens.from_rows([[5], [6, 7, 8], [9, 10]])
    Y = indicator([[1, 3], [], [0]], 4)
    documents = Documents(tokens, torch.device("cpu"), Y)
    rows = torch.tensor([2, 0])
    ids, mask = documents.texts(rows)
    assert ids.tolist() == [[9, 10, 0], [5, 0, 0]]
    assert mask.tolist() == [[True, True, False], [True, False, False]]
    assert documents.texts(rows, 2)[0].tolist() == [[9, 10], [5, 0]]
    assert documents.targets(torch.tensor([0, 1, 2])).tolist() == Y.toarray().tolist()


@pytest.mark.parametrize("name", ["LightXML", "LWAN", "APLC"])
def test_a_step_does_not_depend_on_what_it_computes(name, tokens, corpus):
    """Without values nothing that a GPU would have to be waited for can be computed."""
    import torch
    from systems.aplc import APLC
    from systems.lightxml import LightXML
    from systems.lwan import LWAN
    from systems.tables import Documents
    from torch._subclasses.fake_tensor import DynamicOutputShapeException, FakeTensorMode
    from transformers import BertConfig, BertModel

    with FakeTensorMode(allow_non_fake_inputs=True):
        config = BertConfig(vocab_size=200, hidden_size=8, num_hidden_layers=2, intermediate_size=8)
        config.num_attention_heads = 2
        bert = BertModel(config, add_pooling_layer=False)
        system = {"LightXML": LightXML, "LWAN": LWAN, "APLC": APLC}[name]
        model = system(bert, corpus.label_counts if system is APLC else 10).train()
        documents = Documents(tokens, torch.device("cpu"), corpus.Y)
        rows = torch.zeros(6, dtype=torch.int64)
        model.loss(*documents.texts(rows), documents.targets(rows)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        with pytest.raises(DynamicOutputShapeException):
            documents.targets(rows)[rows > 0]


def test_a_step_is_recorded_and_replayed(monkeypatch):
    """With a recorder that runs what was recorded again: each batch counts once, in its turn."""
    import torch
    from systems.recorded import Recorded

    seen, recorded = [], []

    def work(rows):
        seen.append(rows.tolist())
        return rows.sum()

    class Stream:
        def wait_stream(self, other):
            pass

    class Graph:
        def replay(self):
            recorded.append(len(seen))
            step._found.copy_(work(step._rows))

    @contextmanager
    def record(graph, stream):
        yield
        seen.pop()  # while it is recorded nothing is computed

    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", contextmanager(lambda stream: (yield)))
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", record)
    step = Recorded(work)
    batches = [[2 * i, 2 * i + 1] for i in range(6)]
    batches.insert(4, [99])  # the last of an epoch
    found = [int(step(torch.tensor(rows))) for rows in batches]
    assert seen == batches
    assert found == [sum(rows) for rows in batches]
    assert recorded == [3, 5, 6]


@pytest.mark.filterwarnings("ignore:This instance was constructed with capturable")
@pytest.mark.skipif("not __import__('torch').cuda.is_available()", reason="there is no GPU")
@pytest.mark.parametrize("eager", [False, True])
def test_a_recorded_training_learns_as_one_that_is_not(bert, corpus, tokens, eager):
    from systems.lightxml import LightXML

    settings = {"epochs": 20, "lr": 3e-3, "dropout": 0.1, "swa_from": 10, "swa_every": 5}
    model = LightXML(bert, 10, **settings).to("cuda").fit(tokens, corpus.Y, eager=eager)
    assert first_is_right(model.rank(tokens, 3), corpus.Y) > 0.9


def test_lightxml_learns_and_uses_its_averaged_weights(bert, corpus, tokens):
    from systems.lightxml import LightXML

    settings = {"epochs": 20, "lr": 3e-3, "dropout": 0.1, "swa_from": 10, "swa_every": 5}
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
    model = APLC(bert, counts, epochs=30, rates=(3e-3, 1e-2, 3e-2)).fit(tokens, corpus.Y)
    assert first_is_right(model.rank(tokens, 3), corpus.Y) > 0.7  # by chance 0.15
    tail = np.argsort(-counts, kind="stable")[5:]
    found = set(model.rank(tokens, 1).indices.ravel().tolist())
    assert found & set(tail.tolist())


def test_every_label_attends_to_the_tokens_of_the_text_alone(bert, monkeypatch):
    """Against label by label, document by document, without padding; in several parts."""
    import torch
    from systems import lwan
    from systems.states import states_of

    from depl.neural.tokens import Tokens

    model = lwan.LWAN(bert, 6).eval()
    with torch.no_grad():
        model.attention.weight.mul_(20)  # or every label would see the mean of all tokens
    texts = [[7, 8, 9, 10], [11, 12], [13, 14, 15, 16, 17, 18, 19]]
    expected = []
    with torch.no_grad():
        for text in texts:
            ids = torch.tensor([text])
            states = states_of(bert, ids, torch.ones_like(ids).bool())[-1][0]
            row = []
            for u, w, b in zip(
                model.attention.weight, model.head.weight, model.head.bias, strict=True
            ):
                gathered = torch.softmax(states @ u, 0) @ states
                row.append(float(gathered @ w + b))
            expected.append(row)
    for cells in (1, 2**20):
        monkeypatch.setattr(lwan, "_CELLS", cells)
        ranking = model.rank(Tokens.from_rows(texts), 6)
        for i, row in enumerate(expected):
            assert ranking.scores[i] == pytest.approx(sorted(row, reverse=True), abs=1e-5)
            assert ranking.indices[i].tolist() == np.argsort(row)[::-1].tolist()


def test_label_wise_attention_learns(bert, corpus, tokens):
    from systems.lwan import LWAN

    model = LWAN(bert, 10, epochs=20, lr=3e-3, head_lr=3e-2, dropout=0.0).fit(tokens, corpus.Y)
    assert first_is_right(model.rank(tokens, 3), corpus.Y) > 0.9


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
    into, norm, _, out = clusters.tails[0]
    assert into.bias is out.bias is clusters.head.bias is None
    head = torch.sigmoid(documents @ clusters.head.weight.T)
    low = documents @ into.weight.T
    low = (low - low.mean(1, keepdim=True)) / (
        low.var(1, correction=0, keepdim=True) + norm.eps
    ).sqrt()
    tail = head[:, 2:] * torch.sigmoid(low.clamp(min=0) @ out.weight.T)
    expected = torch.stack([tail[:, 0], head[:, 0], tail[:, 1], head[:, 1]], dim=1)
    assert torch.allclose(clusters.probabilities(documents), expected)

    def entropy(p, t):
        return -(t * p.log() + (1 - t) * (1 - p).log()).sum()

    # The first document has no label of the tail, so that its cluster counts as one term.
    first = (entropy(head[0, :2], targets[0, [1, 3]]) - (1 - head[0, 2]).log()) / 3
    both = [entropy(expected[i], targets[i]) / 4 for i in (1, 2)]
    loss = clusters.loss(documents, targets)
    assert torch.allclose(loss, (first + both[0] + both[1]) / 3)
    assert torch.allclose(clusters.loss(documents[:1], targets[:1]), first)
    sure = clusters.loss(1e4 * documents, targets)
    assert torch.isfinite(torch.stack(torch.autograd.grad(sure, clusters.head.weight))).all()


def test_learning_rates_and_decay_are_the_published_ones(bert, corpus, tokens, monkeypatch):
    """Of the first and the last of many steps: APLC's fall from the start, LightXML's stay."""
    import torch
    from systems.aplc import APLC
    from systems.lightxml import LightXML

    rates, decays = [], []
    step = torch.optim.AdamW.step

    def told(self, *args):
        rates.append([round(float(g["lr"]), 9) for g in self.param_groups])
        decays.append([g["weight_decay"] for g in self.param_groups])
        return step(self, *args)

    monkeypatch.setattr(torch.optim.AdamW, "step", told)
    APLC(bert, corpus.label_counts, epochs=1).fit(tokens, corpus.Y)
    assert rates[0] == [5e-5, 1e-4, 2e-3]
    assert rates[-1] == pytest.approx([5e-5 / 9, 1e-4 / 9, 2e-3 / 9], rel=1e-3)  # of ten steps
    assert decays[0] == [0.0, 0.0, 0.0]
    rates.clear(), decays.clear()
    LightXML(bert, 10, epochs=1).fit(tokens, corpus.Y)
    assert rates[0] == rates[-1] == [1e-4, 1e-4]
    assert decays[0] == [0.01, 0.0]
