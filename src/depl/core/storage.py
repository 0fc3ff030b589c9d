"""How things lie on disk: safetensors, parquet and json, each written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file
from scipy.sparse import csr_array

from depl.core.corpus import Corpus, Label, LabelSet
from depl.core.errors import RunError
from depl.core.ranking import Ranking


@contextmanager
def explain_os_errors(path: Path) -> Iterator[None]:
    """Turn a full disk or a read-only folder into a message that says so."""
    try:
        yield
    except OSError as error:
        raise RunError(
            f"Cannot write to {path}: {error.strerror or error}. Nothing finished is lost: "
            f"free some space or fix the permissions and give the same command again."
        ) from error


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """A temporary folder that becomes ``target`` when the block ends well, and vanishes when not.

    Whatever stood at ``target`` is replaced. A kill at any moment leaves the old folder, the new
    one, or none, but never half of one.
    """
    temporary = target.with_name(f".{target.name}.tmp")
    with explain_os_errors(target):
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
    try:
        with explain_os_errors(target):
            yield temporary
            for path in temporary.rglob("*"):
                _flush(path)
            _flush(temporary)
            if target.exists():
                shutil.rmtree(target)
            temporary.rename(target)
            _flush(target.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def lock(handle: IO[Any], *, wait: bool) -> bool:
    """Take an open file for this process alone until it is closed; False if another has it.

    Parameters
    ----------
    handle : file
        Open; closing it gives it back.
    wait : bool
        Whether to wait until nobody else has it.
    """
    try:
        import fcntl
    except ImportError:  # not on Windows: there files go unguarded
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _flush(path: Path) -> None:
    """Ask the disk to keep what was written, so that a power cut cannot undo a rename's order."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    temporary = path.with_name(f".{path.name}.tmp")
    with explain_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        _flush(temporary)
        temporary.replace(path)


def write_json(path: Path, value: object) -> None:
    """Write readable JSON, whole or not at all."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:  # noqa: ANN401 - JSON is what it is
    """Read JSON; a damaged file is a ``RunError`` that names it."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"{path} is missing. Run the command that makes it again.") from None
    except ValueError as error:
        raise RunError(f"{path} is damaged ({error}). Delete it and fit again.") from error


def write_tensors(path: Path, tensors: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays as safetensors."""
    try:
        save_file({name: np.ascontiguousarray(array) for name, array in tensors.items()}, path)
    except SafetensorError as error:  # its own type even for a full disk
        raise OSError(str(error)) from error


def read_tensors(path: Path, *names: str) -> dict[str, NDArray[Any]]:
    """Read arrays from safetensors; loading runs no code."""
    if not path.exists():
        raise RunError(f"{path} is missing. Fit the run again to make it.")
    try:
        tensors = dict(load_file(path))
    except Exception as error:  # safetensors raises its own type from Rust
        raise RunError(f"{path} is damaged ({error}). Delete its folder and fit again.") from error
    missing = [name for name in names if name not in tensors]
    if missing:
        raise RunError(
            f"{path} lacks the tensors {', '.join(missing)}. Delete its folder and fit again."
        )
    return tensors


def write_sparse(path: Path, matrix: csr_array) -> None:
    """Write a csr matrix as three tensors and its shape."""
    tensors = {
        "data": matrix.data,
        "indices": matrix.indices.astype(np.int32),
        "indptr": matrix.indptr.astype(np.int64),
        "shape": np.asarray(matrix.shape, dtype=np.int64),
    }
    write_tensors(path, tensors)


def read_sparse(path: Path) -> csr_array:
    """Read what ``write_sparse`` wrote."""
    t = read_tensors(path, "data", "indices", "indptr", "shape")
    return csr_array((t["data"], t["indices"], t["indptr"]), shape=tuple(t["shape"].tolist()))


def write_table(path: Path, columns: Mapping[str, object]) -> None:
    """Write columns as parquet."""
    pq.write_table(pa.table(dict(columns)), path, compression="zstd")


def read_table(path: Path) -> dict[str, list[Any]]:
    """Read parquet columns as lists."""
    if not path.exists():
        raise RunError(f"{path} is missing. Fit the run again to make it.")
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise RunError(f"{path} is damaged ({error}). Delete its folder and fit again.") from error
    return {name: table[name].to_pylist() for name in table.column_names}


def write_labels(path: Path, labels: LabelSet) -> None:
    """Write a label set as parquet, in its order."""
    columns = {
        "id": labels.ids,
        "name": labels.names,
        "alt_names": pa.array([list(x.alt_names) for x in labels], pa.list_(pa.string())),
    }
    write_table(path, columns)


def read_labels(path: Path) -> LabelSet:
    """Read what ``write_labels`` wrote."""
    t = read_table(path)
    rows = zip(t["id"], t["name"], t["alt_names"], strict=True)
    return LabelSet(Label(i, name, tuple(alt)) for i, name, alt in rows)


def write_corpus(path: Path, corpus: Corpus) -> None:
    """Write documents as parquet: id, text, label positions."""
    offsets = pa.array(corpus.Y.indptr.astype(np.int32))
    positions = pa.array(corpus.Y.indices.astype(np.int32))
    columns = {
        "id": corpus.ids,
        "text": corpus.texts,
        "labels": pa.ListArray.from_arrays(offsets, positions),
    }
    write_table(path, columns)


def read_corpus(path: Path, labels: LabelSet) -> Corpus:
    """Read what ``write_corpus`` wrote."""
    t = read_table(path)
    return Corpus.from_rows(t["id"], t["text"], t["labels"], labels)


def write_ranking(path: Path, ranking: Ranking) -> None:
    """Write a ranking as two tensors."""
    write_tensors(path, {"indices": ranking.indices, "scores": ranking.scores})


def read_ranking(path: Path) -> Ranking:
    """Read what ``write_ranking`` wrote."""
    t = read_tensors(path, "indices", "scores")
    return Ranking(t["indices"], t["scores"])


def plain(value: object) -> Any:  # noqa: ANN401 - JSON is what it is
    """The value as it comes back from JSON: tuples as lists, and so on."""
    return json.loads(json.dumps(value))


def fingerprint(*parts: object) -> str:
    """A short, stable hash of JSON-able values and raw bytes."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part if isinstance(part, bytes) else json.dumps(part, sort_keys=True).encode()
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    return digest.hexdigest()[:32]


def corpus_fingerprint(corpus: Corpus) -> str:
    """Hash of everything a corpus holds: documents, labels and who carries which."""
    digest = hashlib.sha256()
    for strings in (corpus.ids, corpus.texts, corpus.labels.ids, corpus.labels.names):
        for string in strings:
            raw = string.encode("utf-8", "surrogatepass")
            digest.update(len(raw).to_bytes(8, "little"))
            digest.update(raw)
    digest.update(json.dumps([x.alt_names for x in corpus.labels]).encode())
    digest.update(corpus.Y.indptr.astype(np.int64).tobytes())
    digest.update(corpus.Y.indices.astype(np.int64).tobytes())
    return digest.hexdigest()[:32]
