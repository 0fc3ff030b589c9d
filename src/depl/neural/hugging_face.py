"""Encoders in Hugging Face's layout: from the hub to a model in memory, running none of their code.

An encoder is a folder with config.json, a tokenizer and weights as safetensors. Weights in older
formats are refused: reading a pickle can run code.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from logging import ERROR
from pathlib import Path

from depl.core.errors import ConfigError, MissingExtraError
from depl.core.storage import read_json

try:
    import torch
    from huggingface_hub import snapshot_download
    from transformers import AutoModel, PreTrainedModel
    from transformers.utils import logging
except ImportError as error:
    raise MissingExtraError(error.name or "torch", "neural", "A neural encoder") from None

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
)


def fetch(name: str, *, default: str) -> Path:
    """The folder of an encoder on the hub: from the local cache, or else downloaded into it.

    ``default`` is the encoder that an error recommends, because it needs no network.
    """
    wanted = ["config.json", "model*.safetensors*", *TOKENIZER_FILES]
    with quiet():
        try:
            folder = Path(snapshot_download(name, allow_patterns=wanted, local_files_only=True))
            if _is_complete(folder):
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
                f"or take the default {default!r}, which needs none."
            ) from error
    if not _is_complete(folder):
        raise ConfigError(
            f"The encoder {name!r} lacks config.json, tokenizer.json or weights as safetensors "
            f"(older kinds of files can run code when loaded, so they are not read). Take another "
            f"encoder, or convert it with transformers' save_pretrained() and give that folder."
        )
    return folder


def _is_complete(folder: Path) -> bool:
    """Whether config, tokenizer and weights are all there: a cache may be incomplete."""
    files = ("config.json", "tokenizer.json")
    return all((folder / f).exists() for f in files) and any(folder.glob("model*.safetensors"))


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["no reason given"])[0]


def load_bert(folder: Path) -> tuple[PreTrainedModel, list[str]]:
    """The BERT in a folder, and the names of weights in its file that it does not use.

    A missing weight is an error: transformers would initialise it at random, each time differently.
    """
    _refuse_pickles(folder)
    with quiet():
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
            f"The weights in {folder} do not fit its config.json: {first_and_more(missing)} missing"
            " or of another shape. Take another encoder, or copy this one again from where it came."
        )
    if getattr(bert, "pooler", None) is not None:
        # BERT's own layer over CLS was trained for another task; our poolers replace it.
        bert.register_module("pooler", None)
    return bert, sorted(told["unexpected_keys"])


def _refuse_pickles(folder: Path) -> None:
    """Refuse an index of weights that names anything but safetensors files beside it.

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


def first_and_more(names: list[str]) -> str:
    """The first of several names, and how many more there are, as the subject of a sentence."""
    more = f" and {len(names) - 1:,} more are" if len(names) > 1 else " is"
    return f"{names[0]!r:.200}{more}"


@contextmanager
def quiet() -> Iterator[None]:
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
