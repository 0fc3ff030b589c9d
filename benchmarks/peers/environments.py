"""A virtual environment for each peer that cannot share depl's own.

Peers pin old versions of numpy and scipy, so each lives in ``benchmarks/.venvs/<name>``, made on
first use and kept. A file ``complete.json`` inside lists what was installed: an environment without
it was interrupted, one with another list is out of date, and both are made again.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
FOLDER = PROJECT / "benchmarks" / ".venvs"

OWN = "depl"

# Each tuple is one call of pip. libpecos asks for torch, transformers and more: gigabytes that only
# its neural half imports. Its linear half needs three libraries, so it comes without the rest.
# torch is the version of constraints.txt, so that no second one is downloaded.
_TORCH = "torch==2.13.0"
PINNED: dict[str, tuple[tuple[str, ...], ...]] = {
    "pecos": (
        ("numpy==1.26.4", "scipy==1.13.1", "scikit-learn==1.6.1"),
        ("--no-deps", "libpecos==1.2.8"),
    ),
    "pecos_neural": (
        ("numpy==1.26.4", "scipy==1.13.1", "scikit-learn==1.6.1", _TORCH),
        ("transformers==4.49.0", "sentencepiece==0.2.0", "peft==0.14.0", _TORCH, "numpy==1.26.4"),
        ("--no-deps", "libpecos==1.2.8"),
    ),
    "omikuji": (("numpy==1.26.4", "scipy==1.13.1", "omikuji==0.5.2"),),
    # setuptools: its torchmetrics imports pkg_resources. gensim trains the word vectors.
    "libmultilabel": (
        ("libmultilabel==0.10.0", "setuptools<80"),
        ("libmultilabel[nn]==0.10.0", "setuptools<80", "gensim==4.4.0", _TORCH),
    ),
    # Annif downloads NLTK's sentence splitter when it is first used; llama-index-core carries it.
    "annif": (("annif[omikuji]==1.4.3",), ("--no-deps", "llama-index-core==0.14.2")),
    "spacy": (("spacy==3.8.18", "spacy-lookups-data==1.0.5"), ("--editable", str(PROJECT))),
}


class PeerError(RuntimeError):
    """A peer could not be installed, failed, or took too long."""


def environment(name: str) -> Path:
    """The Python of an environment, which is made if it is not there yet.

    Parameters
    ----------
    name : str
        ``"depl"`` for the environment that runs now, or one of those in ``PINNED``.

    Returns
    -------
    Path
        The interpreter to start a runner with.

    Raises
    ------
    PeerError
        A package could not be installed.
    """
    if name == OWN:
        return Path(sys.executable)
    if name not in PINNED:
        raise ValueError(f"There is no environment {name!r}; use one of {[OWN, *PINNED]}.")
    folder = FOLDER / name
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    complete = folder / "complete.json"
    wanted = [list(packages) for packages in PINNED[name]]
    if complete.exists() and json.loads(complete.read_text(encoding="utf-8")) == wanted:
        return python
    print(f"Making the environment {folder} (only once) ...", file=sys.stderr)
    shutil.rmtree(folder, ignore_errors=True)
    _call(name, sys.executable, "-m", "venv", str(folder))
    for packages in wanted:
        _call(name, str(python), "-m", "pip", "install", "--quiet", *packages)
    complete.write_text(json.dumps(wanted), encoding="utf-8")
    return python


def _call(name: str, *command: str) -> None:
    """Run one step; on failure say which one, with the end of what it printed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise PeerError(
            f"Cannot make the environment of {name!r}: `{' '.join(command)}` left with code "
            f"{done.returncode}.\n{tail}\nCheck the network and the pins in {__file__} (a peer "
            f"may have no wheel for Python {sys.version.split()[0]}), then run again."
        )
