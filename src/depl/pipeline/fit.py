"""From a training corpus to a run folder, making only what is missing or outdated.

Every stage writes into a temporary folder that is renamed when it is complete; then the manifest
gets the stage's *fingerprint*: a hash of its settings and of the fingerprints of the stages it
needs. A stage whose fingerprint is in the manifest is skipped. Resuming after a kill, changing one
setting, and ``--until``/``--from`` all follow from this rule.
"""

from __future__ import annotations

import functools
import logging
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from depl.core import storage
from depl.core.corpus import Corpus
from depl.core.errors import ConfigError, RunError
from depl.core.executor import Executor
from depl.pipeline import beside
from depl.pipeline.stages import STAGES, Stage, dependents, refuse_unknown
from depl.pipeline.together import NOTHING, follow, launched, make_on_cluster
from depl.pipeline.work import Work
from depl.run import manifest as manifests
from depl.run.config import Config
from depl.run.corpus_folder import write_corpus
from depl.run.folder import Run

if TYPE_CHECKING:
    from depl.neural.distributed import Processes

_logger = logging.getLogger("depl.pipeline")


@dataclass(frozen=True)
class Event:
    """What happened to a stage; passed to the observer of ``fit``.

    ``detail`` says why a stage is made again, or what is worth knowing about what was made.
    """

    stage: str
    kind: Literal["kept", "started", "done"]
    detail: str = ""
    seconds: float = 0.0


def fit(
    corpus: Corpus | None,
    out: str | Path,
    config: Config | None = None,
    *,
    aside: Corpus | None = None,
    columns: Mapping[str, Any] | None = None,
    until: str | None = None,
    redo_from: str | None = None,
    overwrite: bool = False,
    executor: Executor | None = None,
    observe: Callable[[Event], None] = lambda event: None,
) -> Run:
    """Make, or finish, a run.

    Parameters
    ----------
    corpus : Corpus or None
        The training documents; None continues a run with its own, on any machine.
    out : path
        The run folder. Stages that are in it already and still valid are kept.
    config : Config or None
        The settings; None means the defaults.
    aside : Corpus or None
        Documents over the same labels that are not trained on, to be kept in the run.
    columns : mapping or None
        Which columns of a table the documents were taken from, to be kept in the run.
    until : str or None
        Stop after this stage.
    redo_from : str or None
        Make this stage and those that need it again even if they are valid.
    overwrite : bool
        Replace a run on another corpus.
    executor : Executor or None
        What does the parallel work, such as a cluster; None: this machine. The result does not
        depend on it, but for the rounding where several processes train an encoder together.
    observe : callable
        Called with an ``Event`` for every stage: kept, started, done.

    Returns
    -------
    Run
        The folder, with everything up to ``until`` complete.
    """
    refuse_unknown(until, redo_from)
    if corpus is not None and (len(corpus) < 2 or corpus.Y.nnz == 0):
        raise ConfigError(
            f"There is nothing to learn from: a fit needs at least 2 training documents and 1 "
            f"label; got {len(corpus)} and {np.count_nonzero(corpus.label_counts)}."
        )
    run = Run(out)
    _refuse_strangers(run)
    manifests.restore(run.path, overwrite=overwrite)
    config = config or (Run.open(out).config() if corpus is None else Config())
    team = launched(config)
    if team is not None and not team.first:
        follow(run, config, team, until)
        return Run(out)

    def keep_corpus(work: Work) -> None:
        # Without the corpus, its folder is made again from what is whole in it.
        if corpus is None:
            kept = work.run
            write_corpus(work.folder, kept.train(), kept.aside(), kept.columns())
        else:
            write_corpus(work.folder, corpus, aside, columns)

    if config.neural and not (run.path / "documents").is_dir():
        from depl.neural.encoder_files import find_encoder

        find_encoder(config.encoder.name)  # a missing encoder is reported before the work begins
    with run.locked():
        manifests.upgrade(run.path)
        contents = _contents(run) if corpus is None else _fingerprint(corpus, aside)
        _refuse_other_corpus(run, contents, overwrite)
        run.write_manifest(run.manifest() | {"config": config.to_dict()})
        if executor is not None and config.neural:
            executor.refuse_unfit(run.path, gpus=config.device != "cpu")
        first = Stage("corpus", keep_corpus, (), lambda _: {"contents": contents})
        making = _Making(
            run=run,
            config=config,
            before=run.manifest()["stages"],
            redone=dependents(redo_from) if redo_from is not None else set(),
            team=team,
            executor=executor,
            observe=observe,
        )
        alone = team is None and executor is None
        side_by_side = alone and beside.pays(config, until)
        stages = beside.needs_first(STAGES) if side_by_side else STAGES
        try:
            for stage in (first, *stages):
                if stage.wanted(config):
                    making.bring_up_to_date(stage)
                else:
                    making.set_aside(stage)
                if stage.name == until:
                    break
                if side_by_side:
                    making.start_beside()
        finally:
            making.end()
    return Run(out)


@dataclass
class _Making:
    """One fit: what its stages share, and the fingerprints of those that are up to date."""

    run: Run
    config: Config
    before: dict[str, Any]  # the manifest's stages, to say what has changed
    redone: set[str]
    team: Processes | None
    executor: Executor | None
    observe: Callable[[Event], None]
    made: dict[str, str] = field(default_factory=dict)
    helper: beside.Beside | None = None

    def bring_up_to_date(self, stage: Stage) -> None:
        """Make a stage unless it is valid."""
        self._bring_back(stage)
        settings, wanted = stage.settings(self.config), self._fingerprint(stage)
        run, observe = self.run, self.observe
        forced, current = stage.name in self.redone, self._is_current(stage)
        damage = run.damage(stage.name) if current else None
        shared = self.team if stage.shared else None
        self.made[stage.name] = wanted
        if current and damage is None:
            if shared is not None:
                shared.agree(NOTHING)
                shared.wait()
            observe(Event(stage.name, "kept"))
            return
        manifest = run.manifest()
        why = _difference(self.before.get(stage.name), settings, forced)
        observe(Event(stage.name, "started", f"made again: {damage}" if damage else why))
        if damage is None:
            # Until the stage is complete, neither it nor what needs it is in the manifest: a kill
            # at any moment leaves a folder that the next fit recognises as unfinished. A damaged
            # stage is recognised by its files.
            _forget(manifest, dependents(stage.name))
            run.write_manifest(manifest)
        start, cpu = time.perf_counter(), _cpu_seconds()
        scratch = self._scratch(stage)
        with storage.whole_folder(run.path / stage.name) as temporary:
            if shared is not None:
                shared.agree(str(scratch))
            work = Work(Run(run.path), self.config, temporary, scratch, shared, self.executor)
            remark = self._make(stage, work)
            if shared is not None:
                shared.wait()
            files = manifests.as_json(temporary)
        seconds = time.perf_counter() - start
        if damage is not None and files != manifest["stages"][stage.name]["files"]:
            _forget(manifest, dependents(stage.name))  # they were made from other bytes
        manifest["stages"][stage.name] = {
            "fingerprint": wanted,
            "settings": settings,
            "seconds": round(seconds, 2),
            "cpu_seconds": round(_cpu_seconds() - cpu, 2),
            "peak_memory_mb": _peak_memory_mb(),
            "versions": _versions(),
            "files": files,
        }
        run.write_manifest(manifest)
        shutil.rmtree(scratch, ignore_errors=True)
        _logger.info("%s: done in %.1f s%s", stage.name, seconds, remark and f"; {remark}")
        observe(Event(stage.name, "done", remark, seconds))

    def set_aside(self, stage: Stage) -> None:
        """Take what these settings do without out of the run.

        Its files stay: it is not made again when the settings want it again. What needs it and is
        wanted has to be made without it.
        """
        manifest = self.run.manifest()
        entry = manifest["stages"].pop(stage.name, None)
        if entry is not None:
            manifest.setdefault(manifests.SET_ASIDE, {})[stage.name] = entry
            wanted = {x.name for x in STAGES if x.wanted(self.config)}
            _forget(manifest, wanted & dependents(stage.name))
            self.run.write_manifest(manifest)

    def _bring_back(self, stage: Stage) -> None:
        """Put a stage that was set aside into the run again, if it is what these settings want."""
        manifest = self.run.manifest()
        entry = manifest.get(manifests.SET_ASIDE, {}).pop(stage.name, None)
        if entry is not None:
            if entry["fingerprint"] == self._fingerprint(stage):
                manifest["stages"][stage.name] = entry
            self.run.write_manifest(manifest)

    def _make(self, stage: Stage, work: Work) -> str:
        """Make a stage here, on a cluster, or by taking it from who made it; a remark on it."""
        if make_on_cluster(stage, work):
            return ""
        if self.helper is not None and stage is beside.STAGE:
            remark = self.helper.take_over(work)
            if remark is not None:
                return remark
        return stage.make(work) or ""

    def start_beside(self) -> None:
        """Let another process make the stage that can be made beside others, when it can begin."""
        stage = beside.STAGE
        begun = self.helper is not None or stage.name in self.made
        if begun or not set(stage.needs) <= set(self.made):
            return
        self._bring_back(stage)
        if self._is_current(stage):
            return
        self.helper = beside.Beside(self.run, self._scratch(stage))

    def end(self) -> None:
        """Leave nobody at work."""
        if self.helper is not None:
            self.helper.end()

    def _fingerprint(self, stage: Stage) -> str:
        inputs = {name: self.made[name] for name in stage.needs if name in self.made}
        return manifests.fingerprint(stage.name, stage.settings(self.config), inputs)

    def _is_current(self, stage: Stage) -> bool:
        """Whether the stage was made with these settings, from what is there now."""
        entry = self.run.manifest()["stages"].get(stage.name)
        same = entry is not None and entry["fingerprint"] == self._fingerprint(stage)
        return same and stage.name not in self.redone

    def _scratch(self, stage: Stage) -> Path:
        return self.run.path / ".scratch" / f"{stage.name}-{self._fingerprint(stage)[:12]}"


def _forget(manifest: dict[str, Any], stages: set[str]) -> None:
    for name in stages:
        manifest["stages"].pop(name, None)


def _difference(entry: dict[str, Any] | None, settings: dict[str, Any], forced: bool) -> str:
    """Why an existing stage is made again, in words."""
    if entry is None:
        return ""
    if forced:
        return "made again, as asked"
    plain = storage.plain(settings)
    changed = [
        f"{key} {entry['settings'].get(key)!r} -> {value!r}"
        for key, value in plain.items()
        if entry["settings"].get(key) != value
    ]
    return "made again: " + (", ".join(changed) or "a stage that it needs has changed")


def _refuse_strangers(run: Run) -> None:
    """Never write into a folder with other contents."""
    if run.path.is_dir() and not run.has_manifest:
        # A fit that was killed at its very start leaves only hidden files.
        others = [p.name for p in run.path.iterdir() if not p.name.startswith(".")]
        if others:
            raise RunError(
                f"{run.path} holds other files ({', '.join(sorted(others)[:5])}) and no run. "
                f"Choose an empty or new folder with --out."
            )
    elif run.path.exists() and not run.path.is_dir():
        raise RunError(f"{run.path} is a file; --out takes a folder. Choose another name.")


def _fingerprint(corpus: Corpus, aside: Corpus | None) -> str:
    """Identifies the documents that are trained on, and those that are not."""
    trained = storage.corpus_fingerprint(corpus)
    if aside is None:
        return trained
    return storage.fingerprint(trained, storage.corpus_fingerprint(aside))


def _contents(run: Run) -> str:
    entry = run.manifest()["stages"].get("corpus")
    if entry is None:
        raise RunError(
            f"{run.path} has no training documents yet, so it cannot be continued without its "
            f"corpus: depl fit CORPUS --out {run.path}"
        )
    contents: str = entry["settings"]["contents"]
    return contents


def _refuse_other_corpus(run: Run, contents: str, overwrite: bool) -> None:
    entry = run.manifest()["stages"].get("corpus")
    if entry and entry["settings"]["contents"] != contents and not overwrite:
        raise RunError(
            f"{run.path} holds a run on another corpus (its documents or labels are different, or "
            f"other documents are set aside). Nothing was changed. Choose another --out, or give "
            f"--overwrite to replace it."
        )


@functools.cache
def _versions() -> dict[str, str]:
    libraries = ("depl", "numpy", "scipy", "scikit-learn", "numba", "simplemma", "torch")
    found = {"python": platform.python_version()}
    for name in libraries:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _cpu_seconds() -> float:
    """What this process, and those it has started and waited for, have computed so far."""
    now = os.times()
    return now.user + now.system + now.children_user + now.children_system


def _peak_memory_mb() -> int | None:
    """The peak memory of this process; None where the system does not report it."""
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak // (1024 * 1024 if sys.platform == "darwin" else 1024))
