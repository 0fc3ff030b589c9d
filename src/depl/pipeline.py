"""From a training corpus to a run folder: the one module that knows the order of the stages.

Every stage writes into a temporary folder that is renamed when it is whole; then the manifest gets
the stage's *fingerprint*: a hash of its settings and of the fingerprints before it. A stage whose
fingerprint stands in the manifest is skipped. Resuming after a kill, changing one setting, and
``--until``/``--from`` are all this one rule.
"""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from depl import _io
from depl.config import Config
from depl.corpus import Corpus
from depl.descriptions import describe
from depl.errors import ConfigError, RunError
from depl.features import TfidfFeatures
from depl.keywords import top_keywords
from depl.linear import OneVsAllSVM
from depl.run import (
    FORMAT_VERSION,
    Run,
    write_corpus,
    write_descriptions,
    write_features,
    write_linear,
)
from depl.tuning import choose_C


@dataclass(frozen=True)
class Event:
    """What happened to a stage; ``fit`` tells its observer."""

    stage: str
    kind: Literal["kept", "started", "done"]
    detail: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Stage:
    """One step: where its result goes, which settings it depends on, and how it is made."""

    name: str
    settings: Callable[[Config], dict[str, Any]]
    make: Callable[[Run, Config, Path], None]


def _make_features(run: Run, config: Config, folder: Path) -> None:
    features = TfidfFeatures(**config.section("features"), n_jobs=config.threads or None)
    write_features(folder, features, features.fit_transform(run.train().texts))


def _make_linear(run: Run, config: Config, folder: Path) -> None:
    section = config.section("linear")
    grid = section.pop("C_grid")
    section |= {"seed": config.seed, "n_threads": config.threads or None}
    X, Y = run.train_vectors(), run.train().Y
    if grid:
        section["C"], scores = choose_C(X, Y, grid, config.validation, **section)
        _io.write_json(folder / "choice.json", scores)
    write_linear(folder, OneVsAllSVM(**section).fit(X, Y))


def _make_descriptions(run: Run, config: Config, folder: Path) -> None:
    section = config.descriptions
    terms, weights = run.features().terms_, run.linear().weights_
    keywords = top_keywords(weights, terms, section.keywords)
    # A number such as 1408 tells the SVM much and a reader, or an encoder, nothing.
    readable = top_keywords(weights, terms, section.keywords, numbers=section.numbers)
    words = [[term for term, _ in readable.of(i)] for i in range(len(run.labels))]
    texts = describe(run.labels, words, max_tokens=section.max_tokens)
    write_descriptions(folder, run.labels, keywords, texts)


# The corpus comes first: it is the input, and its fingerprint that of its contents.
STAGES = (
    Stage("features", lambda c: c.section("features"), _make_features),
    Stage(
        "linear",
        lambda c: c.section("linear") | {"seed": c.seed, "validation": c.validation},
        _make_linear,
    ),
    Stage("descriptions", lambda c: c.section("descriptions"), _make_descriptions),
)
STAGE_NAMES = ("corpus", *(stage.name for stage in STAGES))


def fit(
    corpus: Corpus,
    out: str | Path,
    config: Config | None = None,
    *,
    until: str | None = None,
    redo_from: str | None = None,
    overwrite: bool = False,
    observe: Callable[[Event], None] = lambda event: None,
) -> Run:
    """Make, or finish, a run.

    Parameters
    ----------
    corpus : Corpus
        The training documents.
    out : path
        The run folder. Stages that are in it already and still valid are kept.
    config : Config or None
        The settings; None means the defaults.
    until : str or None
        Stop after this stage.
    redo_from : str or None
        Make this stage and those behind it again even if they are valid.
    overwrite : bool
        Replace a run on another corpus.
    observe : callable
        Is told of every stage: kept, started, done.

    Returns
    -------
    Run
        The folder, with everything up to ``until`` whole.
    """
    for name in (until, redo_from):
        if name is not None and name not in STAGE_NAMES:
            raise ConfigError(
                f"There is no stage {name!r}; the stages are {', '.join(STAGE_NAMES)}."
            )
    if len(corpus) == 0 or corpus.Y.nnz == 0:
        raise ConfigError(
            f"There is nothing to learn from: {len(corpus)} training documents with "
            f"{corpus.Y.nnz} labels in all."
        )
    config = config or Config()
    run = Run(out)
    _refuse_strangers(run)
    contents = _io.corpus_fingerprint(corpus)

    def keep_corpus(run: Run, config: Config, folder: Path) -> None:
        write_corpus(folder, corpus)

    with run.locked():
        _refuse_other_corpus(run, contents, overwrite)
        run.write_manifest(run.manifest())
        _io.write_json(run.path / "config.json", config.to_dict())
        first = Stage("corpus", lambda _: {"contents": contents}, keep_corpus)
        before, forced = "", False
        for stage in (first, *STAGES):
            forced = forced or stage.name == redo_from
            before = _bring_up_to_date(run, stage, config, before, forced, observe)
            if stage.name == until:
                break
    return Run(out)


def _bring_up_to_date(
    run: Run,
    stage: Stage,
    config: Config,
    before: str,
    forced: bool,
    observe: Callable[[Event], None],
) -> str:
    """Make a stage unless it is valid; gives its fingerprint."""
    settings = stage.settings(config)
    wanted = _io.fingerprint(FORMAT_VERSION, stage.name, settings, before)
    manifest = run.manifest()
    entry = manifest["stages"].get(stage.name)
    folder = run.path / stage.name
    if entry and entry["fingerprint"] == wanted and folder.is_dir() and not forced:
        observe(Event(stage.name, "kept"))
        return wanted
    observe(Event(stage.name, "started", _difference(entry, settings, forced)))
    # From here until the stage is whole, neither it nor what rests on it is in the manifest: a kill
    # at any moment leaves a folder that the next fit knows to be unfinished.
    for name in STAGE_NAMES[STAGE_NAMES.index(stage.name) :]:
        manifest["stages"].pop(name, None)
    run.write_manifest(manifest)
    start = time.perf_counter()
    with _io.whole_folder(folder) as temporary:
        stage.make(run, config, temporary)
    seconds = time.perf_counter() - start
    manifest["stages"][stage.name] = {
        "fingerprint": wanted,
        "settings": settings,
        "seconds": round(seconds, 2),
        "peak_memory_mb": _peak_memory_mb(),
        "versions": _versions(),
    }
    run.write_manifest(manifest)
    observe(Event(stage.name, "done", seconds=seconds))
    return wanted


def _difference(entry: dict[str, Any] | None, settings: dict[str, Any], forced: bool) -> str:
    """Why a stage that is there is made again, in words."""
    if entry is None:
        return ""
    if forced:
        return "made again, as asked"
    plain = _io.plain(settings)
    changed = [
        f"{key} {entry['settings'].get(key)!r} -> {value!r}"
        for key, value in plain.items()
        if entry["settings"].get(key) != value
    ]
    return "made again: " + (", ".join(changed) or "what it rests on has changed")


def _refuse_strangers(run: Run) -> None:
    """Never write into a folder that holds something else."""
    if run.path.is_dir() and not run.has_manifest:
        # A fit that was killed in its first instant leaves hidden files and nothing else.
        others = [p.name for p in run.path.iterdir() if not p.name.startswith(".")]
        if others:
            raise RunError(
                f"{run.path} holds other files ({', '.join(sorted(others)[:5])}) and no run. "
                f"Choose an empty or new folder with --out."
            )
    elif run.path.exists() and not run.path.is_dir():
        raise RunError(f"{run.path} is a file; --out takes a folder. Choose another name.")


def _refuse_other_corpus(run: Run, contents: str, overwrite: bool) -> None:
    entry = run.manifest()["stages"].get("corpus")
    if entry and entry["settings"]["contents"] != contents and not overwrite:
        raise RunError(
            f"{run.path} holds a run on another corpus (its documents or labels are different). "
            f"Nothing was changed. Choose another --out, or give --overwrite to replace it."
        )


def _versions() -> dict[str, str]:
    libraries = ("depl", "numpy", "scipy", "scikit-learn", "numba", "simplemma")
    return {"python": platform.python_version()} | {name: version(name) for name in libraries}


def _peak_memory_mb() -> int | None:
    """The most memory this process ever held; None where the system does not tell."""
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak // (1024 * 1024 if sys.platform == "darwin" else 1024))
