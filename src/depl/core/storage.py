"""Writes and reads a run's bytes, as no other module does but ``core.tensors``: parquet and json.

Every file and folder is written whole or not at all, and loading runs no code.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from depl.core.corpus import Corpus, Label, LabelSet
from depl.core.errors import RunError, explain_os_errors
from depl.core.texts import FEW, TextsOnDisk

_PORTION = 8_192  # rows of a table that can be read on their own
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)  # Windows has no such flag


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """A temporary folder, renamed to ``target`` if the block succeeds and deleted if it fails.

    An existing ``target`` is replaced. A kill at any moment leaves the old folder, the new
    one, or none, but never part of one.
    """
    temporary = target.with_name(f".{target.name}.tmp")
    with explain_os_errors(target):
        _remove(temporary)
        temporary.mkdir(parents=True)
    try:
        with explain_os_errors(target):
            yield temporary
            for path in temporary.rglob("*"):
                flush(path)
            flush(temporary)
            _remove(target)
            temporary.rename(target)
            flush(target.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _remove(path: Path) -> None:
    """Delete a file, a folder, or a link but not what it leads to; nothing if there is none."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary file, empty at first, that replaces ``path`` if the block succeeds.

    It is made anew and has the permissions that the user's umask gives: a link of its name, which
    somebody may have put there, is never followed.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    with explain_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove(temporary)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        mode = os.fstat(descriptor).st_mode
        os.close(descriptor)
        try:
            yield temporary
            temporary.chmod(mode & 0o777)  # safetensors makes a file that only its owner can read
            flush(temporary)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def flush(written: Path | IO[Any]) -> None:
    """Flush to disk what was written, so that it survives a power cut.

    A folder is flushed after a file in it was created or renamed. Windows cannot open folders for
    that and preserves the order of renames itself.
    """
    if not isinstance(written, Path):
        written.flush()
        os.fsync(written.fileno())
        return
    if os.name == "nt" and written.is_dir():
        return
    # Windows flushes only files that are open for writing.
    descriptor = os.open(written, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def append(path: Path, raw: bytes, *, after: int, durable: bool = True) -> None:
    """Write behind the first ``after`` bytes of a file, dropping what was there.

    A write that fails leaves the file as long as it was. One that is ``durable`` is on the disk
    when this returns.
    """
    with explain_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINKS, 0o666)
        try:
            os.ftruncate(descriptor, after)
            os.lseek(descriptor, after, os.SEEK_SET)
            try:
                view = memoryview(raw)
                while view:
                    view = view[os.write(descriptor, view) :]
                if durable:
                    os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, after)
                raise
        finally:
            os.close(descriptor)


def write_json(path: Path, value: object) -> None:
    """Write readable JSON, whole or not at all."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:  # noqa: ANN401 - JSON is what it is
    """Read JSON; a damaged file is a ``RunError`` that names it."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"{path} is missing. Run the command that makes it again.") from None
    except OSError as error:
        raise RunError(
            f"{path} cannot be read ({error.strerror or error}). Check permissions and the disk."
        ) from error
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path} is damaged ({error}). Delete it and fit again.") from error


def read_settings(path: Path, names: Collection[str], **before: Any) -> dict[str, Any]:  # noqa: ANN401
    """Read a JSON object with just these names: the settings of something fitted.

    ``before`` has the values of settings that did not exist when older runs were written.
    """
    settings = read_json(path)
    if isinstance(settings, dict):
        settings = before | settings
    if not isinstance(settings, dict) or set(settings) != set(names):
        raise RunError(
            f"{path} is damaged: it should hold the settings {', '.join(names)}. Delete its folder "
            f"and fit again."
        )
    return settings


def write_table(path: Path, columns: Mapping[str, object]) -> None:
    """Write columns as parquet."""
    with whole_file(path) as temporary:
        pq.write_table(
            pa.table(dict(columns)), temporary, compression="zstd", row_group_size=_PORTION
        )


def read_table(path: Path, *names: str, optional: Collection[str] = ()) -> dict[str, list[Any]]:
    """Read parquet columns as lists; the named ones are required, unless they are optional."""
    if not path.exists():
        raise RunError(f"{path} is missing. Fit the run again to make it.")
    # Not ``pq.read_table``: it imports pandas, for half a second.
    with _explain_arrow_errors(path), pq.ParquetFile(path) as file:
        there = file.schema_arrow.names
        missing = [name for name in names if name not in there]
        if not missing:
            wanted = [*names, *(name for name in optional if name in there)] or there
            table = file.read(wanted)
            return {name: table[name].to_pylist() for name in wanted}
    raise RunError(
        f"{path} lacks the columns {', '.join(missing)}. Delete its folder and fit again."
    )


@contextmanager
def _explain_arrow_errors(path: Path) -> Iterator[None]:
    """Name the file in whatever goes wrong while parquet is read and made into strings."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        why = f"{error!s:.300}"
        raise RunError(f"{path} is damaged ({why}). Delete its folder and fit again.") from error


def write_labels(path: Path, labels: LabelSet) -> None:
    """Write a label set as parquet, in its order."""
    columns = {
        "id": labels.ids,
        "name": labels.names,
        "alt_names": pa.array([list(x.alt_names) for x in labels], pa.list_(pa.string())),
        "description": [x.description for x in labels],
        "broader": pa.array([list(x.broader) for x in labels], pa.list_(pa.string())),
    }
    write_table(path, columns)


def read_labels(path: Path) -> LabelSet:
    """Read what ``write_labels`` wrote."""
    t = read_table(path, "id", "name", "alt_names", optional=("description", "broader"))
    n = len(t["id"])
    # Runs that were made before labels had these are still read.
    descriptions, broader = t.get("description", [""] * n), t.get("broader", [()] * n)
    rows = zip(t["id"], t["name"], t["alt_names"], descriptions, broader, strict=True)
    return LabelSet(Label(i, name, tuple(alt), d, tuple(b)) for i, name, alt, d, b in rows)


def write_corpus(path: Path, corpus: Corpus) -> None:
    """Write documents as parquet: id, text, label positions.

    Portion by portion, so that there is no second copy of all texts.
    """
    kinds = {"id": pa.string(), "text": pa.string(), "labels": pa.list_(pa.int32())}
    schema = pa.schema(list(kinds.items()))
    with (
        whole_file(path) as temporary,
        pq.ParquetWriter(temporary, schema, compression="zstd") as w,
    ):
        for first in range(0, max(1, len(corpus)), _PORTION):
            some = slice(first, first + _PORTION)
            ends = corpus.Y.indptr[first : first + _PORTION + 1].astype(np.int64)
            positions = pa.array(corpus.Y.indices[ends[0] : ends[-1]].astype(np.int32))
            rows = pa.ListArray.from_arrays(pa.array((ends - ends[0]).astype(np.int32)), positions)
            portion = {"id": corpus.ids[some], "text": corpus.texts[some], "labels": rows}
            w.write_table(pa.table(portion, schema=schema))


def read_corpus(path: Path, labels: LabelSet) -> Corpus:
    """Read what ``write_corpus`` wrote."""
    t = read_table(path, "id", "labels")
    with _explain_arrow_errors(path), pq.ParquetFile(path) as file:
        groups = (file.metadata.row_group(i) for i in range(file.num_row_groups))
        many = sum(group.total_byte_size for group in groups) > FEW
    texts = read_texts(path)
    return Corpus.from_rows(t["id"], texts if many else list(texts), t["labels"], labels)


def read_texts(path: Path) -> TextsOnDisk:
    """The texts of a corpus, which stay on the disk until they are asked for."""
    with _explain_arrow_errors(path), pq.ParquetFile(path) as file:
        groups = file.num_row_groups
        sizes = [file.metadata.row_group(i).num_rows for i in range(groups)]

    def read(group: int) -> list[str]:
        with _explain_arrow_errors(path), pq.ParquetFile(path) as file:
            texts: list[str] = file.read_row_group(group, ["text"])["text"].to_pylist()
            return texts

    return TextsOnDisk(sizes, read)


def read_openings(path: Path, length: int) -> tuple[Any, Any]:
    """Ids of a corpus and the first characters of its texts, as arrow columns.

    Whole texts would take seconds and memory.
    """
    with _explain_arrow_errors(path), pq.ParquetFile(path) as file:
        table = file.read(["id", "text"])
        return table["id"], pc.utf8_slice_codeunits(table["text"], 0, length)


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
    """Hash of the contents of a corpus: documents, labels and which document carries which."""
    digest = hashlib.sha256()
    for strings in (corpus.ids, corpus.texts, corpus.labels.ids, corpus.labels.names):
        for string in strings:
            raw = string.encode("utf-8", "surrogatepass")
            digest.update(len(raw).to_bytes(8, "little"))
            digest.update(raw)
    digest.update(json.dumps([x.alt_names for x in corpus.labels]).encode())
    if any(x.description or x.broader for x in corpus.labels):
        # Otherwise the hash is that of runs made before labels had these.
        digest.update(json.dumps([(x.description, x.broader) for x in corpus.labels]).encode())
    digest.update(corpus.Y.indptr.astype(np.int64).tobytes())
    digest.update(corpus.Y.indices.astype(np.int64).tobytes())
    return digest.hexdigest()[:32]
