"""Whole recipes of depl, branch by branch: the paper's settings, ours, and what is between them.

A recipe's two neural stages are trained on all training documents, for as many epochs as its
settings say: no epoch is chosen, so no document is held out, and rows differ by settings alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import depl
from depl.core.corpus import Corpus
from depl.core.ranking import Ranking
from depl.neural import encoder_files
from depl.neural.distributed import Processes
from depl.neural.encoder import encode
from depl.neural.losses import Objective
from depl.neural.retriever import classifier_ranking, joint_ranking, retrieval_ranking
from depl.neural.sampling import LabelSampler
from depl.neural.tokens import tokenize
from depl.neural.training import train
from depl.pipeline import fit as pipeline
from depl.pipeline.neural import new_encoder, schedule_of
from depl.run.folder import Run


@dataclass(frozen=True)
class Recipe:
    """A recipe with some changes; rows of one base share what comes before the encoder."""

    base: str
    changes: tuple[str, ...] = ()
    objectives: tuple[Objective, ...] = ("joint",)


# The paper gives no number of epochs. Where none is chosen, this many of each stage are enough for
# 24,000 documents, 16 a step.
_EPOCHS = ("classifier.epochs=4", "retrieval.epochs=4")


def _paper(*changes: str) -> Recipe:
    return Recipe("paper", (*_EPOCHS, *changes))


RECIPES = {
    "paper's settings": _paper(),
    "paper's settings, retrieval alone": replace(_paper(), objectives=("dual",)),
    "our settings": Recipe("small-gpu", objectives=("joint", "dual")),
    "paper's settings, joint loss from the start": _paper("retrieval.apart=0"),
    "paper's settings, identity poolers": _paper("encoder.poolers=identity"),
    "paper's settings, identity poolers, joint loss from the start": _paper(
        "encoder.poolers=identity", "retrieval.apart=0"
    ),
    "paper's settings, branches kept alive": _paper("retrieval.apart=0", "retrieval.alive=0.7"),
    "paper's settings, special tokens in the mean": _paper("encoder.label_pooling=mean"),
    "our settings, no special tokens in the mean": Recipe(
        "small-gpu", ("encoder.label_pooling=text_mean",)
    ),
}


def prepare(documents: Corpus, folder: Path, base: str, changes: list[str]) -> Run:
    """The run of a recipe up to the texts of its labels; it is kept, and made but once."""
    config = depl.Config.load(base, changes)
    place = folder / f"{base}-seed{config.seed}"
    if place.exists() and Run.open(place).has("label_texts"):
        return Run.open(place)  # without its lock: others may be reading it
    return pipeline.fit(documents, place, config, until="label_texts")


def rankings(run: Run, recipe: Recipe, documents: Corpus, k: int) -> Iterator[tuple[str, Ranking]]:
    """Train, and give every branch's ranking of some documents as soon as it is there."""
    config = run.config().changed(recipe.changes)
    device = Processes.launched(config.device).device
    folder = encoder_files.find_encoder(config.encoder.name)
    tokens = tokenize(documents.texts, folder, config.encoder.max_tokens)
    texts, labels = run.texts("documents"), run.texts("label_texts", "descriptions")
    encoder = new_encoder(config, len(run.labels)).to(device)
    if config.classifier.epochs:
        schedule = schedule_of(config.classifier)
        train(
            encoder,
            texts,
            run.Y,
            objective="classifier",
            schedule=schedule,
            seed=config.seed,
            title="classifier",
        )
        yield "classifier", classifier_ranking(encoder, encode(encoder, tokens, "document"), k)
    start = {name: x.detach().clone() for name, x in encoder.state_dict().items()}
    section = config.retrieval
    for objective in recipe.objectives:
        encoder.load_state_dict(start)
        train(
            encoder,
            texts,
            run.Y,
            objective=objective,
            schedule=schedule_of(section),
            labels=labels,
            sampler=LabelSampler(
                run.Y,
                run.negatives("final"),
                n_hard=section.hard_negatives,
                size=section.labels_per_batch,
            ),
            seed=config.seed,
            title=objective,
        )
        vectors, phi = encode(encoder, tokens, "document"), encode(encoder, labels, "label")
        by_text = retrieval_ranking(encoder, vectors, phi, k)
        if objective == "dual":
            yield "depl", by_text
            continue
        yield "depl+c", joint_ranking(encoder, vectors, phi, k)
        yield "depl+c retrieval", by_text
        yield "depl+c classifier", classifier_ranking(encoder, vectors, k)
