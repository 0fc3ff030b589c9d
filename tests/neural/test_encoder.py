"""The dual encoder: packed batches against Hugging Face's own forward pass, poolers and scores."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from transformers import (
    BertConfig,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
    MPNetConfig,
    MPNetModel,
    NomicBertConfig,
    NomicBertModel,
)

from depl.neural.bert import token_states
from depl.neural.encoder import DualEncoder, encode, pooled_batches
from depl.neural.encoder_files import load, load_encoder, save
from depl.neural.layers import has_fast_path, int8_layers, layers_of, multiplies_bfloat16
from depl.neural.packing import TokenBank
from depl.neural.tokens import Tokens, batches, tokenize

CPU = torch.device("cpu")
SIZES = {"vocab_size": 200, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}


def random_tokens(lengths, seed=0):
    rng = np.random.default_rng(seed)
    return Tokens.from_rows([rng.integers(5, 200, n).tolist() for n in lengths])


def pack_all(tokens):
    return TokenBank(tokens, CPU).pack(np.arange(len(tokens)))


def states_by_hugging_face(bert, tokens, pad=0):
    """Last hidden states of each text, from one padded batch."""
    longest = int(tokens.lengths.max())
    ids = torch.full((len(tokens), longest), pad)
    mask = torch.zeros(len(tokens), longest, dtype=torch.long)
    for i, n in enumerate(tokens.lengths):
        ids[i, :n] = torch.from_numpy(tokens.ids[tokens.indptr[i] : tokens.indptr[i + 1]])
        mask[i, :n] = 1
    states = bert(input_ids=ids, attention_mask=mask).last_hidden_state
    return [states[i, :n] for i, n in enumerate(tokens.lengths)]


LENGTHS = {
    "mixed": [3, 17, 1, 64, 9],
    "equal": [8, 8, 8],
    "single": [12],
    "one token each": [1, 1, 1, 1],
}


def tiny_nomic(**changes):
    """Rotary positions, gated layers, no biases; weights large enough for attention to matter."""
    torch.manual_seed(0)
    sizes = {"intermediate_size": 48, "initializer_range": 0.2, **changes}
    return NomicBertModel(NomicBertConfig(**SIZES, **sizes)).eval()


@pytest.fixture(params=["BERT", "NomicBERT"])
def packed_bert(request, encoder):
    """An encoder that has the packed forward pass."""
    bert = encoder.bert if request.param == "BERT" else tiny_nomic()
    assert has_fast_path(bert)
    return bert


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
def test_a_packed_batch_gives_the_states_of_hugging_face(packed_bert, lengths):
    tokens = random_tokens(lengths)
    with torch.no_grad():
        found = token_states(packed_bert, pack_all(tokens), training=False)
        expected = torch.cat(states_by_hugging_face(packed_bert, tokens))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_a_packed_batch_gives_the_gradients_of_hugging_face(packed_bert):
    tokens = random_tokens(LENGTHS["mixed"])
    weights = list(packed_bert.parameters())
    packed = token_states(packed_bert, pack_all(tokens), training=False)
    padded = torch.cat(states_by_hugging_face(packed_bert, tokens))
    direction = torch.randn(packed.shape, generator=torch.Generator().manual_seed(1))
    ours = torch.autograd.grad((packed * direction).sum(), weights)
    theirs = torch.autograd.grad((padded * direction).sum(), weights)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=2e-4, rtol=1e-4)


def test_rotary_positions_matter_and_are_those_in_the_text_not_in_the_batch():
    bert, tokens = tiny_nomic(), random_tokens([9, 9])
    turned = Tokens.from_rows([tokens.ids[8::-1].tolist()])
    with torch.no_grad():
        both = token_states(bert, pack_all(tokens), training=False)
        alone = token_states(bert, pack_all(tokens.take(np.array([1]))), training=False)
        backwards = token_states(bert, pack_all(turned), training=False).flip(0)
    torch.testing.assert_close(both[9:], alone, atol=1e-5, rtol=0)
    assert (both[:9] - backwards).abs().max() > 0.1


def tiny_distilbert():
    return DistilBertModel(
        DistilBertConfig(vocab_size=200, dim=32, n_layers=2, n_heads=4, hidden_dim=64)
    )


def tiny_mpnet():  # its positions start behind the id of padding, which is 1 and not 0
    return MPNetModel(MPNetConfig(**SIZES, intermediate_size=64, max_position_embeddings=70))


def tiny_bert_of_another_kind():
    return BertModel(BertConfig(**SIZES, intermediate_size=64, hidden_act="relu"))


def tiny_nomic_of_another_kind():
    return tiny_nomic(rope_parameters={"rope_type": "linear", "rope_theta": 1000.0, "factor": 2.0})


OTHERS = [tiny_distilbert, tiny_mpnet, tiny_bert_of_another_kind, tiny_nomic_of_another_kind]


@pytest.mark.parametrize("build", OTHERS)
@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
def test_any_other_encoder_goes_through_its_own_forward_pass(build, lengths):
    torch.manual_seed(0)
    bert = build().eval()
    assert not has_fast_path(bert)
    tokens = random_tokens(lengths)
    with torch.no_grad():
        found = DualEncoder(bert).eval().encode_documents(pack_all(tokens))
        states = states_by_hugging_face(bert, tokens, pad=bert.config.pad_token_id)
    expected = torch.stack([s.mean(0) for s in states])
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_texts_are_pooled_as_told(tiny_folder, pooling):
    other = "cls" if pooling == "mean" else "mean"
    encoder = load_encoder(tiny_folder, document_pooling=pooling, label_pooling=other)
    tokens = random_tokens(LENGTHS["mixed"])
    with torch.no_grad():
        states = states_by_hugging_face(encoder.bert, tokens)
        pooled = {
            "mean": torch.stack([s.mean(0) for s in states]),
            "cls": torch.stack([s[0] for s in states]),
        }
        documents = encoder.encode_documents(pack_all(tokens))
        labels = encoder.encode_labels(pack_all(tokens))
    # The poolers start as the identity.
    torch.testing.assert_close(documents, pooled[pooling], atol=1e-5, rtol=0)
    torch.testing.assert_close(labels, pooled[other], atol=1e-5, rtol=0)


def test_the_mean_of_a_text_leaves_its_special_tokens_out(tiny_folder):
    encoder = load_encoder(tiny_folder, label_pooling="text_mean")
    tokens = random_tokens([9, 2, 3, 1, 5])  # texts of 2 tokens or fewer have no others
    with torch.no_grad():
        states = states_by_hugging_face(encoder.bert, tokens)
        labels = encoder.encode_labels(pack_all(tokens))
    expected = torch.stack([(s[1:-1] if len(s) > 2 else s).mean(0) for s in states])
    torch.testing.assert_close(labels, expected, atol=1e-5, rtol=0)


def test_random_poolers_follow_the_seed_and_keep_dot_products_small(tiny_folder):
    first, same, other = (load_encoder(tiny_folder, poolers="random", seed=s) for s in (1, 1, 2))
    assert torch.equal(first.label_pooler.weight, same.label_pooler.weight)
    assert not torch.equal(first.label_pooler.weight, other.label_pooler.weight)
    assert not torch.equal(first.label_pooler.weight, first.document_pooler.weight)
    assert first.label_pooler.weight.abs().max() <= 32**-0.5  # PyTorch's own range


def test_documents_and_labels_have_a_pooler_each(encoder):
    batch = pack_all(random_tokens([5, 9]))
    with torch.no_grad():
        before = encoder.encode_documents(batch)
        encoder.document_pooler.weight.mul_(2)
        encoder.document_pooler.bias.fill_(1)
        encoder.label_pooler.weight.neg_()
        torch.testing.assert_close(encoder.encode_documents(batch), 2 * before + 1)
        torch.testing.assert_close(encoder.encode_labels(batch), -before)


def test_similarity_is_the_scaled_cosine(encoder, rng):
    documents, labels = rng.normal(size=(3, 32)), rng.normal(size=(5, 32))
    with torch.no_grad():
        encoder.logit_scale.fill_(7)
        encoder.logit_bias.fill_(-2)
        found = encoder.similarity(torch.tensor(documents), torch.tensor(labels)).numpy()
    lengths = np.linalg.norm(documents, axis=1)[:, None] * np.linalg.norm(labels, axis=1)
    assert found == pytest.approx(7 * (documents @ labels.T) / lengths - 2)


def test_the_head_starts_from_no_and_is_there_only_if_asked_for(encoder, tiny_folder):
    assert load_encoder(tiny_folder).head is None
    with torch.no_grad():
        scores = encoder.head(encoder.encode_documents(pack_all(random_tokens([9] * 20))))
    assert scores.shape == (20, 8)
    assert float(torch.sigmoid(scores).mean()) < 0.1


def test_a_bank_packs_any_texts_in_any_order():
    tokens = random_tokens([4, 1, 6])
    batch = TokenBank(tokens, CPU).pack(np.array([2, 0, 2]))
    assert batch.ids.tolist() == tokens.take(np.array([2, 0, 2])).ids.tolist()
    assert batch.positions.tolist() == [*range(6), *range(4), *range(6)]
    assert batch.text.tolist() == [0] * 6 + [1] * 4 + [2] * 6
    assert batch.starts.tolist() == [0, 6, 10, 16]
    assert (batch.n_texts, batch.longest) == (3, 6)


def test_dropout_is_on_in_training_alone_and_follows_the_seed(encoder):
    batch = pack_all(random_tokens([5, 9]))

    def run(training, seed):
        torch.manual_seed(seed)
        with torch.no_grad():
            return encoder.train(training).encode_documents(batch)

    assert torch.equal(run(False, 1), run(False, 2))
    assert torch.equal(run(True, 1), run(True, 1))
    assert not torch.equal(run(True, 1), run(True, 2))


def test_scores_teach_every_part(encoder):
    batch = pack_all(random_tokens([5, 9, 3]))
    documents, labels = encoder.encode_documents(batch), encoder.encode_labels(batch)
    # The diagonal alone would not do: there both sides are equal, and a cosine of 1 is flat.
    (encoder.similarity(documents, labels)[0].sum() + encoder.head(documents).sum()).backward()
    assert [n for n, p in encoder.named_parameters() if p.grad is None] == []
    keys = ("attention.self.key.bias",)  # softmax does not see what is added to all keys
    still = [n for n, p in encoder.named_parameters() if not p.grad.abs().max() > 0]
    assert [n for n in still if not n.endswith(keys)] == []


def pool_in_batches(encoder, tokens, budget=1_000):
    """Pooled states of all texts, put together from batches of about ``budget`` tokens."""
    bank = TokenBank(tokens, CPU)
    out = torch.full((len(tokens), 32), float("nan"))
    for rows, states in pooled_batches(encoder, bank, batches(tokens.lengths, budget), "mean"):
        out[torch.from_numpy(rows)] = states
    return out


@pytest.mark.parametrize("lengths", [*LENGTHS.values(), []], ids=[*LENGTHS, "none"])
@pytest.mark.parametrize("budget", [1, 20, 1_000])
def test_pooling_in_batches_gives_the_means_of_hugging_face(encoder, lengths, budget):
    tokens = random_tokens(lengths)
    found = pool_in_batches(encoder, tokens, budget)
    with torch.no_grad():
        states = states_by_hugging_face(encoder.bert, tokens) if lengths else []
    expected = torch.stack([s.mean(0) for s in states]) if lengths else torch.empty(0, 32)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


@pytest.fixture
def set_threads():
    """Sets PyTorch's number of threads until the test ends."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("threads", [2, 5])
def test_vectors_do_not_depend_on_the_number_of_threads(encoder, set_threads, threads):
    tokens = random_tokens([int(n) for n in np.random.default_rng(3).integers(1, 64, 40)])
    set_threads(1)
    alone = pool_in_batches(encoder, tokens, 100)
    set_threads(threads)
    assert torch.equal(pool_in_batches(encoder, tokens, 100), alone)
    assert torch.get_num_threads() == threads


def test_the_threads_are_given_back_when_a_batch_fails_or_nobody_wants_the_rest(
    encoder, set_threads
):
    set_threads(3)
    tokens = random_tokens([3, 4, 5])
    bank, rows = TokenBank(tokens, CPU), [np.array([0]), np.array([1]), np.array([7])]
    with pytest.raises(IndexError):
        list(pooled_batches(encoder, bank, rows, "mean"))
    assert threads_of_a_new_thread() == 3
    some = pooled_batches(encoder, bank, rows[:2], "mean")
    next(some)
    some.close()
    assert threads_of_a_new_thread() == 3


def threads_of_a_new_thread():
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(torch.get_num_threads).result()


def test_without_onednn_the_states_are_the_same(encoder, monkeypatch):
    batch = pack_all(random_tokens(LENGTHS["mixed"]))
    with torch.no_grad():
        expected = token_states(encoder.bert, batch, training=False)
        monkeypatch.setattr("depl.neural.bert._ONEDNN", False)
        found = token_states(encoder.bert, batch, training=False)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_encoding_keeps_the_order_of_the_texts(encoder, tiny_folder, toy):
    texts = [*toy.texts[:10], *toy.names, ""]
    tokens = tokenize(texts, tiny_folder, 16)
    found = encode(encoder, tokens, "document")
    with torch.no_grad():
        one_by_one = [
            states_by_hugging_face(encoder.bert, tokens.take(np.array([i])))[0].mean(0)
            for i in range(len(tokens))
        ]
    torch.testing.assert_close(found, torch.stack(one_by_one), atol=1e-5, rtol=0)


@pytest.fixture(params=["bfloat16", "float32"])
def with_int8(monkeypatch, request):
    """As on processors with instructions for it; without them it is slow, but the same."""
    if request.param == "bfloat16" and not multiplies_bfloat16():
        pytest.skip("This processor does not multiply bfloat16 numbers, or not safely.")
    monkeypatch.setattr("depl.neural.encoder.multiplies_int8", lambda: True)
    monkeypatch.setattr("depl.neural.int8.multiplies_bfloat16", lambda: request.param == "bfloat16")


def test_int8_is_left_alone_where_the_processor_would_emulate_it(tiny_folder, toy, monkeypatch):
    monkeypatch.setattr("depl.neural.encoder.multiplies_int8", lambda: False)
    plain, small = (load_encoder(tiny_folder, int8=int8) for int8 in (False, True))
    tokens = tokenize(toy.texts[:4], tiny_folder, 24)
    assert torch.equal(encode(plain, tokens, "document"), encode(small, tokens, "document"))


def test_int8_vectors_are_nearly_the_same_and_independent_of_the_batch(tiny_folder, toy, with_int8):
    plain, small = (load_encoder(tiny_folder, int8=int8) for int8 in (False, True))
    tokens = tokenize(toy.texts, tiny_folder, 24)
    expected, found = (encode(e, tokens, "document") for e in (plain, small))
    cosines = torch.nn.functional.cosine_similarity(expected, found)
    assert cosines.min() > 0.99
    assert not torch.equal(expected, found)
    for i in (0, 5):
        alone = encode(small, tokens.take(np.array([i])), "document")[0]
        torch.testing.assert_close(alone, found[i], rtol=0, atol=1e-5)


def test_int8_states_of_a_rotary_encoder_are_nearly_the_same():
    bert, batch = tiny_nomic(), pack_all(random_tokens(LENGTHS["mixed"]))
    with torch.no_grad():
        expected = token_states(bert, batch, training=False)
        found = token_states(bert, batch, training=False, layers=int8_layers(bert))
    cosines = torch.nn.functional.cosine_similarity(expected, found)
    assert cosines.min() > 0.99
    assert not torch.equal(expected, found)


def test_int8_follows_weights_that_change(tiny_folder, toy, with_int8):
    encoder = load_encoder(tiny_folder, int8=True)
    tokens = tokenize(toy.texts[:4], tiny_folder, 24)
    before = encode(encoder, tokens, "document")
    layers = encoder._int8_layers
    assert torch.equal(encode(encoder, tokens, "document"), before)
    assert encoder._int8_layers is layers  # making them takes as long as encoding a text
    encoder.train()
    with torch.no_grad():
        for layer in encoder.bert.encoder.layer:
            layer.output.dense.weight.mul_(-1.0)
    after = encode(encoder, tokens, "document")
    assert (before - after).abs().max() > 1e-2


def test_weights_cast_together_are_the_weights_and_hand_their_gradients_on(encoder):
    layers = layers_of(encoder.bert, torch.float64)
    first = encoder.bert.encoder.layer[0]
    attention = first.attention.self
    joined = torch.cat([attention.query.weight, attention.key.weight, attention.value.weight])
    assert layers[0].qkv.dtype == torch.float64
    assert torch.equal(layers[0].qkv, joined.double())
    assert torch.equal(
        layers[1].norm_2_bias.float(), encoder.bert.encoder.layer[1].output.LayerNorm.bias
    )
    weights = [i + 1.0 for i in range(len(layers) * len(layers[0]))]
    fields = [field for layer in layers for field in layer]
    sum(w * field.sum() for w, field in zip(weights, fields, strict=True)).backward()
    # Query, key and value are the first field; the bias of the last norm is the twelfth.
    for part in (attention.query, attention.key, attention.value):
        assert (part.weight.grad == 1).all()
        assert (part.bias.grad == 2).all()
    assert (first.intermediate.dense.weight.grad == 7).all()
    assert first.intermediate.dense.weight.grad.dtype == torch.float32
    assert (first.output.LayerNorm.bias.grad == 12).all()


def test_an_encoder_from_before_there_was_compiled_code_gives_the_same_vectors(
    tiny_folder, toy, tmp_path, with_int8
):
    old = load_encoder(tiny_folder, int8=True)
    old.compiled = False
    save(old, tmp_path, tiny_folder, max_tokens=24)
    path = tmp_path / "depl.json"
    settings = json.loads(path.read_text())
    del settings["compiled"]
    path.write_text(json.dumps(settings))
    tokens = tokenize(toy.texts, tiny_folder, 24)
    found, expected, new = (
        encode(e, tokens, "document")
        for e in (load(tmp_path), old, load_encoder(tiny_folder, int8=True))
    )
    assert torch.equal(found, expected)
    assert not torch.equal(found, new)
