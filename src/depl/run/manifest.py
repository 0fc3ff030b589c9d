"""The manifest of a run folder: which stages are complete, with a hash of every file they wrote.

::

    format_version   of the run folder
    depl             the version that wrote it
    config           the settings the run was last fitted with
    stages           by name: fingerprint, settings, seconds, versions, and its files
    set_aside        the same of stages that the settings do without, whose files are still there
    checksum         of all the above

It is written twice, as ``manifest.json`` and as a hidden copy from which ``depl fit`` restores it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from depl.core import storage
from depl.core.errors import RunError
from depl.core.hashes import records
from depl.core.tensors import write_tensors
from depl.core.version import __version__

FORMAT_VERSION = 4
_CONTENTS = 3  # part of every fingerprint: another number where the stages write other files

MANIFEST = "manifest.json"
SET_ASIDE = "set_aside"
_COPY = ".manifest.copy.json"
_CHECKSUM = "checksum"
_CONFIG = "config.json"  # where format 3 has the settings

_SAME_FILES = 3  # the same files in every stage, but nothing in the manifest to check them by
_SAME_CORPUS = (2,)  # its documents can be read, so that the rest can be made again


def exists(folder: Path) -> bool:
    """Whether a folder is a run."""
    return any((folder / name).is_file() for name in (MANIFEST, _COPY))


def read(folder: Path) -> dict[str, Any]:
    """The manifest of a run that can be used as it is; an empty one when there is none."""
    if not exists(folder):
        return {"format_version": FORMAT_VERSION, "config": {}, "stages": {}}
    manifest = read_any(folder)
    found = manifest["format_version"]
    if found == _SAME_FILES:
        return manifest
    if found in _SAME_CORPUS:
        raise RunError(
            f"{folder} was written in run format {found}, and this version of depl reads format "
            f"{FORMAT_VERSION}. Make it again from its own documents with: depl fit {folder}"
        )
    if isinstance(found, int) and found > FORMAT_VERSION:
        raise RunError(
            f"{folder} was written by depl {manifest.get('depl', 'of a later version')} in run "
            f"format {found}, and this is depl {__version__}, which reads formats up to "
            f"{FORMAT_VERSION}. Install a later version: pip install --upgrade depl"
        )
    if found != FORMAT_VERSION:
        raise RunError(
            f"{folder} was written in run format {found}, and this version of depl reads format "
            f"{FORMAT_VERSION}. Fit the run again from its corpus: depl fit CORPUS --out {folder} "
            f"--overwrite"
        )
    return manifest


def config(folder: Path) -> dict[str, Any]:
    """The settings of the last fit, as plain values, whatever the format."""
    manifest = read_any(folder)
    found: dict[str, Any] = manifest.get("config") or storage.read_json(folder / _CONFIG)
    return found


def read_any(folder: Path) -> dict[str, Any]:
    """The manifest of a run in whatever format it was written, if it is whole."""
    path = folder / MANIFEST
    try:
        return _whole(path)
    except RunError as error:
        if _copy_is_whole(folder):
            why = "is damaged" if path.exists() else "is missing"
            raise RunError(f"{path} {why}; restore it from its copy with: depl fit {folder}") from (
                error
            )
        raise RunError(
            f"{str(error).rstrip('.')}; fit the run again from its corpus: depl fit CORPUS --out "
            f"{folder} --overwrite"
        ) from error


def write(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Replace the manifest, whole or not at all, and then its copy."""
    body = {k: v for k, v in manifest.items() if k != _CHECKSUM}
    body |= {"format_version": FORMAT_VERSION, "depl": __version__}
    sealed = body | {_CHECKSUM: storage.fingerprint(body)}
    storage.write_json(folder / MANIFEST, sealed)
    storage.write_json(folder / _COPY, sealed)


def restore(folder: Path, *, overwrite: bool = False) -> None:
    """Put a damaged manifest back from its copy.

    A copy that is a little older than what it is a copy of does no harm: the hashes of the files
    tell which stages are as it says. With ``overwrite``, a manifest without a whole copy is given
    up, and the run is made from nothing.
    """
    if not exists(folder):
        return
    try:
        _whole(folder / MANIFEST)
    except RunError:
        if _copy_is_whole(folder):
            write(folder, _whole(folder / _COPY))
        elif overwrite:
            write(folder, {"config": {}, "stages": {}})


def upgrade(folder: Path) -> None:
    """Bring a run of an older format to this one, as far as its files are the same."""
    if not exists(folder):
        return
    manifest = read_any(folder)
    found, stages = manifest["format_version"], manifest["stages"]
    if found == _SAME_FILES:
        for name, entry in stages.items():
            entry["files"] = as_json(folder / name)
        write(folder, {"config": config(folder), "stages": stages})
        (folder / _CONFIG).unlink(missing_ok=True)
    elif found in _SAME_CORPUS and stages.get("corpus"):
        labels = storage.read_labels(folder / "corpus" / "labels.parquet")
        corpus = storage.read_corpus(folder / "corpus" / "train.parquet", labels)
        write_tensors(folder / "corpus" / "Y.safetensors", {"matrix": corpus.Y})
        entry = stages["corpus"]
        entry["fingerprint"] = fingerprint("corpus", entry["settings"], {})
        entry["files"] = as_json(folder / "corpus")
        write(folder, {"config": config(folder), "stages": {"corpus": entry}})
        (folder / _CONFIG).unlink(missing_ok=True)


def fingerprint(stage: str, settings: Mapping[str, Any], inputs: Mapping[str, str]) -> str:
    """Identifies what a stage makes: from its settings and the fingerprints of what it needs."""
    return storage.fingerprint(_CONTENTS, stage, settings, inputs)


def as_json(folder: Path) -> dict[str, dict[str, Any]]:
    """The files of a stage as the manifest keeps them."""
    return {name: record._asdict() for name, record in records(folder).items()}


def _whole(path: Path) -> dict[str, Any]:
    """A manifest that is what was written; formats before this one cannot be checked."""
    found_there = storage.read_json(path)
    if not isinstance(found_there, dict) or not isinstance(found_there.get("stages"), dict):
        raise RunError(f"{path} is damaged: it lists no stages.")
    manifest: dict[str, Any] = {"format_version": None, **found_there}
    found, checksum = manifest["format_version"], manifest.pop(_CHECKSUM, None)
    older = isinstance(found, int) and found < FORMAT_VERSION
    if checksum != storage.fingerprint(manifest) and not (older and checksum is None):
        raise RunError(f"{path} is damaged: its contents are not what was written.")
    return manifest


def _copy_is_whole(folder: Path) -> bool:
    try:
        return bool(_whole(folder / _COPY))
    except RunError:
        return False
