"""The stages of a run as a table: what each needs, and which settings it depends on.

A changed setting remakes the stages that name it and those that need them, and no others. Every
stage comes after the stages it needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from depl.core.errors import ConfigError
from depl.pipeline import fusion, sparse
from depl.pipeline.work import Work
from depl.run.config import Config

Settings = dict[str, Any]


@dataclass(frozen=True)
class Stage:
    """One step of a fit.

    Parameters
    ----------
    name : str
        The name of the stage and of its folder.
    make : callable
        Makes the result in ``Work.folder``; may return a remark on it, to be shown.
    needs : tuple of str
        The stages whose results it reads.
    settings : callable
        The settings that its result depends on, as plain values.
    wanted : callable
        Whether a run with these settings has it.
    shared : bool
        Whether all processes make it together, if there are several.
    """

    name: str
    make: Callable[[Work], str | None]
    needs: tuple[str, ...]
    settings: Callable[[Config], Settings]
    wanted: Callable[[Config], bool] = lambda config: True
    shared: bool = False


def _neural(
    name: str,
    *needs: str,
    settings: Callable[[Config], Settings],
    wanted: Callable[[Config], bool] = lambda config: config.neural,
    shared: bool = False,
    module: str = "neural",
) -> Stage:
    """A stage of the neural half, which is imported only when it is needed."""

    def make(work: Work) -> None:
        getattr(import_module(f"depl.pipeline.{module}"), f"make_{name}")(work)

    return Stage(name, make, needs, settings, wanted, shared)


def _features(c: Config) -> Settings:
    section = c.section("features")
    if not section["title_weight"]:
        del section["title_weight"]  # runs from before there was this setting stay up to date
    return section


def _linear(c: Config) -> Settings:
    section = c.section("linear")
    if section["solver"] == "auto":
        del section["solver"]  # what runs were fitted with that name no solver
    # The slice matters only where C is chosen on it.
    return section | {"seed": c.seed} | ({"validation": c.validation} if c.linear.C_grid else {})


def _documents(c: Config) -> Settings:
    texts = {"name": c.encoder.name, "max_tokens": c.encoder.max_tokens}
    return texts | _frozen(c, document_pooling=c.encoder.document_pooling)


def _descriptions(config: Config) -> dict[str, Any]:
    section = config.section("descriptions")
    if not section["definitions"]:
        del section["definitions"]  # runs from before there was this setting stay up to date
    return section | {"tokens_of": config.encoder.name if config.neural else None}


def _label_texts(c: Config) -> Settings:
    texts = {"name": c.encoder.name, "label_text": c.retrieval.label_text}
    return texts | _frozen(c, label_pooling=c.encoder.label_pooling)


def _classifier(c: Config) -> Settings:
    once = {"folds": 1} if c.retrieval.last_epochs else {}
    return c.section("classifier") | c.section("encoder") | {"seed": c.seed} | once


def _encoder(c: Config) -> Settings:
    section = c.section("retrieval")
    for name in ("enough_steps", "last_epochs"):
        if not section[name]:
            del section[name]  # runs from before there was this setting stay up to date
    return section | {"seed": c.seed}


def _neighbours(c: Config) -> Settings:
    section = c.section("neighbours")
    if not section["documents"]:
        del section["documents"]  # runs from before there was this setting stay up to date
    return section


def _frozen(c: Config, **pooling: str) -> Settings:
    """What the states of a frozen encoder depend on; with a trained one there are none."""
    return {"int8": c.encoder.int8, **pooling} if c.encoder.training == "frozen" else {}


# The corpus comes before all of them: it is the input.
STAGES = (
    Stage("features", sparse.make_features, ("corpus",), _features),
    Stage("linear", sparse.make_linear, ("corpus", "features"), _linear),
    Stage(
        "slice",
        sparse.make_slice,
        ("corpus", "features"),
        lambda c: {
            "validation": c.validation,
            "folds": c.folds,
            "seed": c.seed,
            "neural": c.neural,
        },
    ),
    Stage(
        "held_out", sparse.make_held_out, ("corpus", "features", "linear", "slice"), lambda c: {}
    ),
    Stage(
        "characters",
        sparse.make_characters,
        ("corpus", "linear", "slice"),
        lambda c: c.section("characters"),
        # An encoder reads parts of words itself.
        lambda c: c.characters.documents > 0 and not c.neural,
    ),
    Stage(
        "descriptions",
        sparse.make_descriptions,
        ("corpus", "features", "linear", "held_out"),
        _descriptions,
    ),
    _neural(
        "negatives",
        "corpus",
        "features",
        "linear",
        "slice",
        "held_out",
        settings=lambda c: {"hard_negatives": c.retrieval.hard_negatives},
    ),
    _neural("documents", "corpus", settings=_documents),
    _neural("label_texts", "corpus", "descriptions", settings=_label_texts),
    _neural(
        "classifier",
        "corpus",
        "slice",
        "documents",
        settings=_classifier,
        shared=True,
    ),
    _neural(
        "attention",
        *("corpus", "slice", "negatives", "documents", "classifier"),
        settings=lambda c: c.section("attention") | {"seed": c.seed},
        wanted=lambda c: c.attends,
        shared=True,
        module="rescoring",
    ),
    _neural(
        "encoder",
        "corpus",
        "slice",
        "negatives",
        "documents",
        "label_texts",
        "classifier",
        settings=_encoder,
        shared=True,
    ),
    _neural("index", "documents", "label_texts", "encoder", settings=lambda c: {}),
    _neural(
        "reranker",
        *("corpus", "features", "slice", "descriptions", "negatives"),
        *("documents", "label_texts", "encoder"),
        settings=lambda c: c.section("reranker") | {"seed": c.seed},
        wanted=lambda c: c.reranks,
        shared=True,
        module="rescoring",
    ),
    Stage(
        "fusion",
        fusion.make_fusion,
        (
            *("corpus", "features", "slice", "held_out", "characters", "descriptions"),
            *("documents", "label_texts", "attention", "encoder", "reranker"),
        ),
        lambda c: c.section("fusion") | {"neighbours": _neighbours(c), "seed": c.seed},
    ),
)
STAGE_NAMES = ("corpus", *(stage.name for stage in STAGES))


def stage_names(config: Config) -> tuple[str, ...]:
    """The stages of a run with these settings, in their order."""
    return ("corpus", *(stage.name for stage in STAGES if stage.wanted(config)))


def refuse_unknown(*names: str | None) -> None:
    """Refuse names that no stage has."""
    for name in names:
        if name is not None and name not in STAGE_NAMES:
            raise ConfigError(
                f"There is no stage {name!r}; the stages are {', '.join(STAGE_NAMES)}."
            )


def dependents(name: str) -> set[str]:
    """A stage and all that need it, directly or not."""
    found = {name}
    for stage in STAGES:
        if found.intersection(stage.needs):
            found.add(stage.name)
    return found
