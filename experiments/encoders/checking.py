"""What every converted encoder goes through: its hash is checked, its states are compared."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import PreTrainedModel

TEXTS = (
    "Council Regulation (EC) No 1291/2000 laying down common detailed rules for licences",
    "wine",
    "A library for reading and writing PNG images. It is small, portable and thread-safe. " * 12,
    "Die Wechselwirkung zwischen Licht und Materie",
)
_TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")


def check_sha256(path: Path, wanted: str, kind: str = "sha256") -> None:
    """Leave where a file is not the one that was meant."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, kind).hexdigest()
    if found != wanted:
        sys.exit(f"{path} is another file than was meant: its {kind} is {found}, not {wanted}.")


def save_checked(
    encoder: PreTrainedModel,
    tokenizer_folder: Path,
    folder: Path,
    states: Callable[[list[int]], np.ndarray],
    *,
    tolerance: float = 1e-4,
) -> int:
    """Save the encoder if it gives the wanted states of every text; how many texts there were.

    Parameters
    ----------
    encoder : PreTrainedModel
        What was converted.
    tokenizer_folder, folder : Path
        Where its tokenizer is, and where both go.
    states : callable
        The states of one text by the file that was converted, from its token ids.
    tolerance : float
        By how much a state may differ.
    """
    tokenizer = Tokenizer.from_file(str(tokenizer_folder / "tokenizer.json"))
    tokenizer.no_padding()
    encoder.eval()
    for text in TEXTS:
        ids = tokenizer.encode(text).ids
        with torch.inference_mode():
            ours = encoder(input_ids=torch.tensor([ids])).last_hidden_state[0].numpy()
        far = float(np.abs(ours - states(ids)).max())
        if not far < tolerance:
            sys.exit(f"The converted encoder differs by {far:g} for {text[:40]!r}: not saved.")
    encoder.save_pretrained(folder)
    for name in _TOKENIZER:
        if (tokenizer_folder / name).exists():
            shutil.copyfile(tokenizer_folder / name, folder / name)
    return len(TEXTS)
