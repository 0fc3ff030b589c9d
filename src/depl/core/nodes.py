"""Whether the nodes of a Ray cluster can do the work, before it begins."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from depl.core.errors import DeplError

_logger = logging.getLogger("depl.core")

_SECONDS = 120  # for all nodes to start a worker that answers
_MANIFEST = "manifest.json"

# What the bytes of a result depend on.
_LIBRARIES = ("depl", "numpy", "scipy", "scikit-learn", "numba", "simplemma")

# What a service on Ray needs.
_SERVING = ("fastapi", "prometheus_client", "uvicorn", "grpc_reflection")


def refuse_unfit(ray: ModuleType, *, run: Path | None, torch: bool, serve: bool = False) -> None:
    """Refuse a cluster with a node that lacks something, or would compute something else.

    Parameters
    ----------
    ray : module
        Ray, connected.
    run : Path or None
        A run folder that every node must see.
    torch : bool
        Whether every node needs torch.
    serve : bool
        Whether every node needs the libraries of a service.
    """
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    nodes = [x for x in ray.nodes() if x["Alive"] and x["Resources"].get("CPU", 0) >= 1]
    if not nodes:
        raise DeplError(
            "The Ray cluster has no node with a core to work with. Start its nodes with "
            "`ray start --num-cpus N`, N being at least 1."
        )
    look = _looker(run)
    asked = [
        ray.remote(look)
        .options(
            num_cpus=0,
            max_retries=2,
            scheduling_strategy=NodeAffinitySchedulingStrategy(x["NodeID"], soft=False),
        )
        .remote()
        for x in nodes
    ]
    here = look_around(run)
    seen = []
    for node, answer in zip(nodes, asked, strict=True):
        try:
            there = ray.get(answer, timeout=_SECONDS)
        except (ray.exceptions.NodeDiedError, ray.exceptions.TaskUnschedulableError):
            continue  # it died a moment ago, and will get no task
        except ray.exceptions.RayError as error:
            raise DeplError(
                f"The node {node['NodeManagerAddress']} of the Ray cluster does not answer: "
                f"{type(error).__name__}. `ray status` tells which nodes there are."
            ) from None
        name = f"The node {node['NodeManagerAddress']}"
        refuse_differing(name, here, there, run=run, torch=torch, serve=serve)
        seen.append(there)
    if len({x["processor"] for x in (here, *seen)}) > 1:
        _logger.warning(
            "The nodes have different processors: results may differ in their last digits from "
            "those of one machine."
        )


def look_around(run: Path | None) -> dict[str, Any]:
    """What there is on this machine, as far as it matters."""
    return _looker(run)()


def refuse_differing(
    node: str,
    here: dict[str, Any],
    there: dict[str, Any],
    *,
    run: Path | None,
    torch: bool,
    serve: bool = False,
) -> None:
    """Refuse a node where something is missing, or not as it is here."""
    if there["versions"]["depl"] is None:
        raise DeplError(
            f"{node} has no depl. Install depl {here['versions']['depl']} there, in the Python "
            f"environment that `ray start` was called from."
        )
    others = [
        f"{name} {there['versions'][name]} (here {version})"
        for name, version in here["versions"].items()
        if there["versions"][name] != version
    ]
    if others:
        raise DeplError(
            f"{node} has other versions than this machine: {', '.join(others)}. Install the same "
            f"on all nodes, so that all compute the same, and start Ray there again."
        )
    if there["code"] != here["code"]:
        raise DeplError(
            f"{node} has depl {here['versions']['depl']} as this machine has, but with other code "
            f"in it. Install the same there, and start Ray there again."
        )
    if run is not None and there["manifest"] != here["manifest"]:
        what = "does not see the" if there["manifest"] is None else "sees another"
        raise DeplError(
            f"{node} {what} run folder {run.resolve()}. Put the run on storage that all nodes have "
            f"at the same path."
        )
    if torch and not there["torch"]:
        raise DeplError(
            f"{node} has no torch, which the neural parts of this run need. Install it there with: "
            f"pip install 'depl[neural]'"
        )
    if serve and there["lacks"]:
        raise DeplError(
            f"{node} has no {', '.join(there['lacks'])}, which a service needs. Install it there "
            f"with: pip install 'depl[ray-serve]'"
        )


def _looker(run: Path | None) -> Callable[[], dict[str, Any]]:
    """A function that looks at the machine it is called on.

    A function of a function travels by value, so that it runs where there is no depl, too.
    """
    libraries, serving = _LIBRARIES, _SERVING
    manifest = None if run is None else str((run / _MANIFEST).resolve())

    def look() -> dict[str, Any]:
        import hashlib
        import importlib.metadata
        import importlib.util
        import platform
        from pathlib import Path

        versions: dict[str, str | None] = {"Python": platform.python_version()}
        for name in libraries:
            try:
                versions[name] = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                versions[name] = None
        code = hashlib.sha256()
        spec = importlib.util.find_spec("depl")
        for root in (spec.submodule_search_locations if spec is not None else None) or ():
            for path in sorted(Path(root).rglob("*.py")):
                code.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
        seen = None
        if manifest is not None and Path(manifest).is_file():
            seen = hashlib.sha256(Path(manifest).read_bytes()).hexdigest()
        try:
            from llvmlite.binding import get_host_cpu_name

            processor = get_host_cpu_name()
        except ImportError:
            processor = platform.machine()
        return {
            "versions": versions,
            "code": code.hexdigest(),
            "manifest": seen,
            "torch": importlib.util.find_spec("torch") is not None,
            "lacks": [x for x in serving if importlib.util.find_spec(x) is None],
            "processor": processor,
        }

    return look
