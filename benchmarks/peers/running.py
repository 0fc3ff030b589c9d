"""Run a peer in a child process, in its own environment, and read what it measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peers.environments import PeerError, environment


@dataclass(frozen=True)
class Peer:
    """Where a peer runs: its environment, its script, and the settings that make it this peer."""

    environment: str
    script: str
    settings: dict[str, Any]


PEERS = {
    "depl": Peer("depl", "run_depl.py", {}),
    "depl_tree": Peer("depl", "run_depl.py", {"solver": "tree"}),
    "depl_sample": Peer("depl", "run_depl.py", {}),
    "pecos_ova": Peer("pecos", "run_pecos.py", {"tree": "none"}),
    "pecos_xrlinear": Peer("pecos", "run_pecos.py", {"tree": "pifa"}),
    "omikuji_parabel": Peer("omikuji", "run_omikuji.py", {"preset": "parabel"}),
    "omikuji_bonsai": Peer("omikuji", "run_omikuji.py", {"preset": "bonsai"}),
    "libmultilabel_ova": Peer("libmultilabel", "run_libmultilabel.py", {"method": "1vsrest"}),
    "libmultilabel_tree": Peer("libmultilabel", "run_libmultilabel.py", {"method": "tree"}),
    "attentionxml": Peer("libmultilabel", "run_attentionxml.py", {}),
    "xrtransformer": Peer("pecos_neural", "run_xrtransformer.py", {}),
    "annif_omikuji": Peer("annif", "run_annif.py", {"project": "omikuji"}),
    "annif_mllm": Peer("annif", "run_annif.py", {"project": "mllm"}),
    "annif_ensemble": Peer("annif", "run_annif.py", {"project": "ensemble"}),
    "sklearn_sample": Peer("depl", "run_sklearn.py", {}),
    "liblinear_sample": Peer("depl", "run_liblinear.py", {}),
}


@dataclass(frozen=True)
class PeerResult:
    """What a peer measured.

    Parameters
    ----------
    peer, version : str
        The name in ``PEERS``, and the installed version of its package.
    settings : dict
        Everything it was run with, its own defaults included.
    train_seconds, predict_seconds : float
        Wall-clock time; None for a stage that the peer does not have.
    peak_rss_mb, train_peak_rss_mb : float
        Peak resident memory in MiB: of all stages, and of training alone.
    model_mb : float
        Size in MiB of the model as the peer saves it; None where it saves none.
    predictions : Path
        The file that ``read_predictions`` reads; None where the peer predicts nothing.
    more : dict
        Whatever else the peer reported: CPU seconds, load_seconds, objectives, ...
    """

    peer: str
    version: str
    settings: dict[str, Any]
    train_seconds: float
    predict_seconds: float | None
    peak_rss_mb: float
    train_peak_rss_mb: float
    model_mb: float | None
    predictions: Path | None
    more: dict[str, Any]

    def read_predictions(self) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Label positions (-1 in the padding) and scores, each of shape (n_documents, k)."""
        if self.predictions is None:
            raise ValueError(f"{self.peer} makes no predictions; it only measures training.")
        with np.load(self.predictions) as arrays:
            return arrays["indices"], arrays["scores"]


def run_peer(
    name: str,
    work_folder: str | Path,
    *,
    k: int = 100,
    threads: int = 2,
    timeout: float = 7200.0,
    **settings: str | float | Path,
) -> PeerResult:
    """Train and predict with one peer, and wait for it.

    Parameters
    ----------
    name : str
        One of ``PEERS``.
    work_folder : path
        Holds ``X_train.npz``, ``Y_train.npz`` and ``X_dev.npz``; results go to its ``peers/``.
    k : int
        How many labels to predict for a document.
    threads : int
        How many threads the peer may use.
    timeout : float
        Seconds after which the peer is stopped. Making its environment does not count.
    **settings
        Options of the peer's runner: ``C=4`` becomes ``--C 4``.

    Returns
    -------
    PeerResult

    Raises
    ------
    PeerError
        The peer failed or took too long; its own messages are on standard error.
    """
    if name not in PEERS:
        raise ValueError(f"There is no peer {name!r}; use one of {list(PEERS)}.")
    peer = PEERS[name]
    python = environment(peer.environment)
    folder = Path(work_folder).resolve()
    out = _prefix(name, folder)
    out.parent.mkdir(exist_ok=True)
    report, predictions = out.with_suffix(".json"), out.with_suffix(".npz")
    report.unlink(missing_ok=True)  # what an earlier run left must not pass for this one's
    predictions.unlink(missing_ok=True)
    options = {"peer": name, "out": out, "k": k, "threads": threads, **peer.settings, **settings}
    command = [str(python), str(Path(__file__).with_name(peer.script)), str(folder)]
    for key, value in options.items():
        command += [f"--{key.replace('_', '-')}", str(value)]
    try:
        # Some peers log to standard output; everything they say belongs on standard error.
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            env=_child_environment(threads),
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise PeerError(
            f"{name} was stopped after {timeout:g} s. Give it a longer timeout or a smaller corpus."
        ) from None
    if done.returncode != 0 or not report.exists():
        raise PeerError(
            f"{name} left with code {done.returncode} and its messages are above. To see it alone, "
            f"run: {' '.join(command)}"
        )
    return kept_result(name, folder)


def kept_result(name: str, work_folder: str | Path) -> PeerResult:
    """What an earlier run of a peer left in the folder; ``PeerError`` where that is nothing."""
    out = _prefix(name, Path(work_folder).resolve())
    report, predictions = out.with_suffix(".json"), out.with_suffix(".npz")
    if not report.exists():
        raise PeerError(f"There is no {report}: {name} was not run there, or failed. Run it.")
    found = json.loads(report.read_text(encoding="utf-8"))
    reported = [x.name for x in fields(PeerResult) if x.name not in ("predictions", "more")]
    return PeerResult(
        **{key: found.pop(key) for key in reported},
        predictions=predictions if predictions.exists() else None,
        more=found,
    )


def _prefix(name: str, folder: Path) -> Path:
    """What the names of a peer's two files begin with."""
    return folder / "peers" / name


def _child_environment(threads: int) -> dict[str, str]:
    """The variables of this process, with every thread pool held to ``threads``."""
    variables = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    pools = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
    return variables | dict.fromkeys(pools, str(threads))
