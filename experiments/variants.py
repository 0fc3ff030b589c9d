"""The paper's systems and ablations, each trained from the same run: what differs is one thing.

A run of ``depl fit`` has tokens, the SVM's hard negatives, and the best number of epochs of the
first neural stage. So many train the classifier on all training documents; from there every variant
is the second stage, on all of them, with the run's settings but for what its line below says.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass

from depl.core.corpus import Corpus
from depl.core.ranking import Ranking
from depl.neural import encoder_files
from depl.neural.distributed import Processes
from depl.neural.encoder import DualEncoder, Pooling, encode
from depl.neural.retriever import classifier_ranking, retrieval_ranking
from depl.neural.sampling import LabelSampler
from depl.neural.tokens import Tokens, tokenize
from depl.neural.training import train
from depl.pipeline.neural import new_encoder, schedule_of
from depl.pipeline.sparse import description_of
from depl.run.folder import Run


@dataclass(frozen=True)
class Variant:
    """A retrieval model; None is the run's own setting."""

    description: int | None = None  # tokens of a label's description; 0: its name alone
    hard_negatives: int | None = None
    classifier_first: bool = True
    label_pooling: Pooling | None = None


CLASSIFIER = "classifier"  # the first neural stage alone: the paper's BERT
VARIANTS = {
    "de-ret": Variant(description=0),
    "depl": Variant(),
    "depl, no classifier first": Variant(classifier_first=False),
    "depl, no hard negatives": Variant(hard_negatives=0),
    "depl, 5 hard negatives": Variant(hard_negatives=5),
    "depl, CLS labels": Variant(label_pooling="cls"),
    "depl, 8 tokens": Variant(description=8),
    "depl, 16 tokens": Variant(description=16),
}


def rankings(
    run: Run, documents: Corpus, names: list[str], k: int
) -> Iterator[tuple[str, Ranking]]:
    """Train the named variants one after the other; what each says of the documents."""
    config = run.config()
    device = Processes.launched(config.device).device
    folder = encoder_files.find_encoder(config.encoder.name)
    tokens = tokenize(documents.texts, folder, config.encoder.max_tokens)
    classifier = _classifier(run).to(device)
    for name in names:
        if name == CLASSIFIER:
            yield name, classifier_ranking(classifier, encode(classifier, tokens, "document"), k)
            continue
        labels = _label_tokens(run, VARIANTS[name])
        encoder = _trained(run, VARIANTS[name], classifier, labels, name)
        vectors = encode(encoder, tokens, "document")
        yield name, retrieval_ranking(encoder, vectors, encode(encoder, labels, "label"), k)


def _classifier(run: Run) -> DualEncoder:
    """The first neural stage on all training documents; kept in the run, for its settings."""
    config, made = run.config(), run.manifest()["stages"][CLASSIFIER]["fingerprint"]
    kept = run.path / "variants" / f"{CLASSIFIER}-{made[:12]}"
    if kept.exists():
        return encoder_files.load(kept)
    told = run.encoder_folder(CLASSIFIER, "held_out") / "training.json"
    encoder = new_encoder(config, len(run.labels)).to(Processes.launched(config.device).device)
    train(
        encoder,
        run.texts("documents"),
        run.Y,
        objective="classifier",
        schedule=schedule_of(config.classifier),
        seed=config.seed,
        stop_after=json.loads(told.read_text(encoding="utf-8"))["epochs"],
        title=CLASSIFIER,
    )
    source, longest = encoder_files.find_encoder(config.encoder.name), config.encoder.max_tokens
    encoder_files.save(encoder.cpu(), kept, source, max_tokens=longest)
    return encoder


def _trained(
    run: Run, variant: Variant, classifier: DualEncoder, labels: Tokens, title: str
) -> DualEncoder:
    config = run.config()
    section = config.retrieval
    encoder = copy.deepcopy(classifier) if variant.classifier_first else new_encoder(config, 0)
    encoder.head = None
    encoder.label_pooling = variant.label_pooling or encoder.label_pooling
    encoder.to(Processes.launched(config.device).device)
    n_hard = section.hard_negatives if variant.hard_negatives is None else variant.hard_negatives
    train(
        encoder,
        run.texts("documents"),
        run.Y,
        objective="dual",
        schedule=schedule_of(section),
        labels=labels,
        sampler=LabelSampler(
            run.Y, run.negatives("final"), n_hard=n_hard, size=section.labels_per_batch
        ),
        seed=config.seed,
        title=title,
    )
    return encoder


def _label_tokens(run: Run, variant: Variant) -> Tokens:
    if variant.description is None:
        return run.texts("label_texts", "descriptions")
    if variant.description == 0:
        return run.texts("label_texts", "names")
    config = run.config().changed([f"descriptions.max_tokens={variant.description}"])
    folder = encoder_files.find_encoder(config.encoder.name)
    described = description_of(run, config, run.features())(run.svm().weights_)
    return tokenize(described.texts, folder, variant.description + 2)  # with the two special ones
