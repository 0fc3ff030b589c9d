"""Arrays, sparse matrices and rankings as safetensors, mapped into memory where they are read."""

from __future__ import annotations

import json
import math
import mmap
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from scipy.sparse import csr_array

from depl.core.errors import RunError
from depl.core.ranking import Ranking
from depl.core.storage import whole_file

_DTYPES = {
    **{f"F{8 * size}": np.dtype(f"<f{size}") for size in (2, 4, 8)},
    **{f"I{8 * size}": np.dtype(f"<i{size}") for size in (1, 2, 4, 8)},
    **{f"U{8 * size}": np.dtype(f"<u{size}") for size in (1, 2, 4, 8)},
    "BOOL": np.dtype(bool),
}


def write_tensors(path: Path, tensors: Mapping[str, NDArray[Any] | csr_array]) -> None:
    """Write arrays and sparse matrices as safetensors, whole or not at all."""
    flat: dict[str, NDArray[Any]] = {}
    for name, value in tensors.items():
        if isinstance(value, csr_array):
            flat[f"{name}.data"] = value.data
            flat[f"{name}.indices"] = value.indices.astype(np.int32)
            flat[f"{name}.indptr"] = value.indptr.astype(np.int64)
            flat[f"{name}.shape"] = np.asarray(value.shape, dtype=np.int64)
        else:
            flat[name] = value
    with whole_file(path) as temporary:
        try:
            save_file({k: np.asarray(array, order="C") for k, array in flat.items()}, temporary)
        except SafetensorError as error:  # its own type even for a full disk
            raise OSError(str(error)) from error


def read_tensors(path: Path, *names: str) -> dict[str, Any]:
    """Read what ``write_tensors`` wrote; the named ones are required."""
    if not path.exists():
        raise RunError(f"{path} is missing. Fit the run again to make it.")
    try:
        flat = _mapped(path)
        sparse = {name.removesuffix(".indptr") for name in flat if name.endswith(".indptr")}
        tensors = {k: array for k, array in flat.items() if k.rpartition(".")[0] not in sparse}
        tensors |= {name: _sparse(flat, name) for name in sparse}
    except Exception as error:  # safetensors raises its own type from Rust, scipy several
        raise RunError(f"{path} is damaged ({error}). Delete its folder and fit again.") from error
    missing = [name for name in names if name not in tensors]
    if missing:
        raise RunError(
            f"{path} lacks the tensors {', '.join(missing)}. Delete its folder and fit again."
        )
    return tensors


def _mapped(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a file, in memory that all its readers share as long as they do not write.

    A run's files are replaced, never changed, so what is mapped stays as it is; Windows cannot
    replace a file that is mapped, and reads it.
    """
    with safe_open(path, framework="numpy") as file:  # refuses what is no such file, or cut off
        if os.name == "nt":
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    with path.open("rb") as file:
        start = 8 + int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(start - 8))
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    header.pop("__metadata__", None)
    return {name: _array(memory, start, **about) for name, about in header.items()}


def _array(
    memory: mmap.mmap, start: int, *, dtype: str, shape: list[int], data_offsets: list[int]
) -> NDArray[Any]:
    kind, place = _DTYPES[dtype], start + data_offsets[0]
    array = np.frombuffer(memory, kind, math.prod(shape), place).reshape(shape)
    return np.require(array, requirements="A")  # files of others may begin anywhere


def _sparse(flat: Mapping[str, NDArray[Any]], name: str) -> csr_array:
    """A matrix whose every index is within its shape: compiled code relies on that."""
    data, indices, indptr = (flat[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
    matrix = csr_array((data, indices, indptr), shape=tuple(flat[f"{name}.shape"].tolist()))
    matrix.check_format(full_check=True)
    return matrix


def write_ranking(path: Path, ranking: Ranking) -> None:
    """Write a ranking as two tensors."""
    write_tensors(path, {"indices": ranking.indices, "scores": ranking.scores})


def read_ranking(path: Path) -> Ranking:
    """Read what ``write_ranking`` wrote."""
    t = read_tensors(path, "indices", "scores")
    return Ranking(t["indices"], t["scores"])


def write_matrix(path: Path, matrix: csr_array) -> None:
    """Write a sparse matrix, such as Y or X."""
    write_tensors(path, {"matrix": matrix})


def read_matrix(path: Path) -> csr_array:
    """Read what ``write_matrix`` wrote."""
    matrix: csr_array = read_tensors(path, "matrix")["matrix"]
    return matrix
