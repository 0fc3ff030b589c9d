"""The stages of the neural half."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from depl.core import storage
from depl.core.ranking import Ranking
from depl.core.tensors import write_ranking, write_tensors
from depl.evaluation import metrics
from depl.neural import encoder_files
from depl.neural.checkpoints import Checkpoint
from depl.neural.curves import Curves
from depl.neural.distributed import Processes
from depl.neural.encoder import DualEncoder, Side, encode, pooled_states
from depl.neural.index import LabelIndex
from depl.neural.losses import Objective
from depl.neural.retriever import (
    Retriever,
    TextRetriever,
    classifier_ranking,
    index_documents,
    index_labels,
    joint_ranking,
    retrieval_ranking,
)
from depl.neural.sampling import LabelSampler
from depl.neural.tokens import Texts, Tokens, some_of, tokenize
from depl.neural.training import Outcome, Schedule, Validation, train
from depl.pipeline.work import Work
from depl.run.config import AttentionConfig, ClassifierConfig, Config, RetrievalConfig
from depl.run.folder import FOLDS, STATES, Fold, Run
from depl.sparse.languages import NONE, find_language

_logger = logging.getLogger("depl.neural")

_TEXTS_OF: dict[Fold, str] = {"final": "descriptions", "held_out": "held_out"}
_BEST = 5  # labels per document that decide when to stop
_TIMES = 2  # that what was held out is shown in each epoch of an encoder that goes on training


def make_negatives(work: Work) -> None:
    """Each fold's SVM ranks the documents it was fitted on: the best wrong labels are hard."""
    run = work.run
    X, most = run.train_vectors(), int(np.diff(run.Y.indptr).max(initial=0))
    for fold in FOLDS:
        # A document's own labels are skipped, so there must be room for them.
        depth = work.config.retrieval.hard_negatives + most
        ranking = run.svm(fold).rank(X[run.rows(fold)], min(depth, len(run.labels)), work.executor)
        write_ranking(work.folder / f"{fold}.safetensors", ranking)


def make_documents(work: Work) -> None:
    """Token ids of the training documents; with a frozen encoder, its states of them."""
    texts = work.run.train().texts
    _warn_of_language(work.config.encoder.name, texts)
    _keep_texts(work, {work.folder: texts}, work.config.encoder.max_tokens, "document")


def _warn_of_language(encoder: str, texts: Sequence[str]) -> None:
    """The encoder that comes with depl knows one language."""
    if encoder != encoder_files.DEFAULT_ENCODER:
        return
    language = find_language(texts)
    if language not in ("en", NONE):
        _logger.warning(
            "The texts seem to be in the language %r, but the encoder %s has read English only. "
            "A multilingual one finds more; encoder.name takes any of the Hugging Face hub, or a "
            "folder.",
            language,
            encoder,
        )


def make_label_texts(work: Work) -> None:
    """The same for names and, where labels are described by them, pseudo descriptions."""
    run, config = work.run, work.config
    texts = {work.folder / "names": run.labels.names}
    if config.retrieval.label_text == "description":
        for fold in FOLDS:
            texts[work.folder / _TEXTS_OF[fold]] = run.descriptions(fold).texts
    longest = config.descriptions.max_tokens + 2  # with the two special tokens
    _keep_texts(work, texts, longest, "label")


def _keep_texts(work: Work, texts: Mapping[Path, Sequence[str]], longest: int, side: Side) -> None:
    """Token ids of the texts of each folder, and their states by a frozen encoder."""
    source = encoder_files.find_encoder(work.config.encoder.name)
    tokens = {folder: tokenize(some, source, longest) for folder, some in texts.items()}
    for folder, some in tokens.items():
        some.save(folder)
    if work.config.encoder.training != "frozen":
        return
    encoder = new_encoder(work.config, 0).to(team_of(work).device)
    # Many labels have the same description in both folds: each text is encoded once.
    everything, place = Tokens.concatenate(list(tokens.values())).distinct()
    states = pooled_states(encoder, everything, side, executor=work.executor)
    kept = states.cpu().numpy().astype(np.float16)[place]
    ends = np.cumsum([len(some) for some in tokens.values()])
    for folder, part in zip(tokens, np.split(kept, ends[:-1]), strict=True):
        write_tensors(folder / STATES, {"states": part})


def make_classifier(work: Work) -> None:
    """Encoder and head: the first neural stage, held-out and, if it is trained again, final."""
    config, team, stop_after = work.config, team_of(work), None
    for fold in ("held_out",) if config.retrieval.last_epochs else FOLDS:
        encoder = new_encoder(config, len(work.run.labels)).to(team.device)
        outcome = _train(work, encoder, config.classifier, fold, team, stop_after)
        save_encoder(work, encoder, fold, outcome, team)
        stop_after = outcome.epochs


def make_encoder(work: Work) -> None:
    """DE-ret, DEPL or DEPL+c: the second neural stage, held-out and final.

    The final encoder is trained on everything for as long as was best without the held-out
    documents; or the held-out one goes on for a few epochs with them.
    """
    run, section, team = work.run, work.config.retrieval, team_of(work)
    encoder = encoder_files.load(run.encoder_folder("classifier", "held_out")).to(team.device)
    outcome = _train(work, encoder, section, "held_out", team)
    save_encoder(work, encoder, "held_out", outcome, team)
    stop_after = None
    if not section.last_epochs:
        encoder, stop_after = encoder_files.load(run.encoder_folder("classifier")), outcome.epochs
    outcome = _train(work, encoder.to(team.device), section, "final", team, stop_after)
    save_encoder(work, encoder, "final", outcome, team)


def save_encoder(
    work: Work, encoder: DualEncoder, fold: Fold, outcome: Outcome, team: Processes
) -> None:
    """Keep the encoder of a fold, and how its training went."""
    if not team.first:
        return
    target = work.folder if fold == "final" else work.folder / fold
    source = encoder_files.find_encoder(work.config.encoder.name)
    max_tokens = work.config.encoder.max_tokens
    encoder_files.save(encoder.cpu(), target, source, max_tokens=max_tokens)
    storage.write_json(target / "training.json", asdict(outcome))


def _train(
    work: Work,
    encoder: DualEncoder,
    section: ClassifierConfig | RetrievalConfig,
    fold: Fold,
    team: Processes,
    stop_after: int | None = None,
) -> Outcome:
    """Train on a fold; without the validation slice, that finds the best epoch."""
    run, config = work.run, work.config
    rows, schedule = run.rows(fold), schedule_of(section)
    objective: Objective = "classifier"
    labels, sampler = None, None
    if isinstance(section, RetrievalConfig):
        objective = section.objective
        if section.enough_steps:
            schedule = schedule.within(section.enough_steps, len(run.slice.rest()))
        labels, negatives = label_texts_of(run, config, fold), run.negatives(fold)
        if fold == "final" and section.last_epochs:
            rows = shown_again(run)
            negatives, schedule = negatives.take(rows), schedule.going_on(section.last_epochs)
        sampler = LabelSampler(
            run.Y[rows],
            negatives,
            n_hard=section.hard_negatives,
            size=section.labels_per_batch,
        )
    validate = _validation(run, config, labels) if fold == "held_out" else None
    title = f"{work.folder.name.strip('.').removesuffix('.tmp')} ({fold})"
    with Curves(run.path / "logs", title, config.tensorboard and team.first) as curves:
        outcome = train(
            encoder,
            documents_of(run, rows),
            run.Y[rows],
            objective=objective,
            schedule=schedule,
            labels=labels,
            sampler=sampler,
            seed=config.seed,
            stop_after=stop_after,
            validate=validate,
            checkpoint=Checkpoint(work.scratch / fold, config.checkpoint_seconds),
            processes=team,
            observe=curves.add,
            title=title,
        )
    if objective == "dual":
        encoder.head = None  # it belongs to the encoder before this stage
    return outcome


def shown_again(run: Run) -> NDArray[np.int64]:
    """What the encoder of the held-out fit reads in an epoch when it goes on with all documents.

    To it the held-out ones are new, and the others are not.
    """
    return np.concatenate([run.slice.rest(), *[run.slice.held_out] * _TIMES])


def make_index(work: Work) -> None:
    """Vectors of all labels and of their names, and of the training documents."""
    run, config = work.run, work.config
    encoder = encoder_files.load(run.encoder_folder("encoder")).to(team_of(work).device)
    labels = label_texts_of(run, config, "final")
    index_labels(encoder, labels, work.executor).save(work.folder / "labels")
    names = _index_names(work, encoder)
    if names is not None:
        names.save(work.folder / "names")
    documents = index_documents(encoder, run.texts("documents"), work.executor)
    documents.save(work.folder / "documents")


def held_out_retriever(work: Work) -> TextRetriever:
    """The neural parts of the held-out fit."""
    run, config, executor = work.run, work.config, work.executor
    folder = run.encoder_folder("encoder", "held_out")
    encoder = encoder_files.load(folder).to(Processes.launched(config.device).device)
    rest = run.slice.rest()
    retriever = Retriever(
        encoder,
        index_labels(encoder, label_texts_of(run, config, "held_out"), executor),
        index_documents(encoder, documents_of(run, rest), executor),
        run.Y[rest],
        names=_index_names(work, encoder),
        neighbours=config.neighbours.k,
        sharpness=config.neighbours.sharpness,
    )
    return TextRetriever(retriever, folder, config.encoder.max_tokens)


def held_out_rankings(work: Work, retriever: Retriever) -> dict[str, Ranking]:
    """Rankings of the validation slice by the neural parts of the held-out fit."""
    texts = documents_of(work.run, work.run.slice.held_out)
    vectors = encode(retriever.encoder, texts, "document", work.executor)
    return retriever.rank(vectors, work.config.fusion.depth, work.executor)


def _index_names(work: Work, encoder: DualEncoder) -> LabelIndex | None:
    """The labels' names; None where the label texts are the names: it would duplicate a part."""
    if work.config.retrieval.label_text == "name":
        return None
    return index_labels(encoder, work.run.texts("label_texts", "names"), work.executor)


def team_of(work: Work) -> Processes:
    """The processes that make a stage together."""
    return work.processes or Processes.launched(work.config.device)


def new_encoder(config: Config, n_labels: int) -> DualEncoder:
    """The pretrained encoder that training starts from."""
    section = config.encoder
    return encoder_files.load_encoder(
        encoder_files.find_encoder(section.name),
        n_labels=n_labels,
        document_pooling=section.document_pooling,
        label_pooling=section.label_pooling,
        poolers=section.poolers,
        similarity=section.similarity,
        int8=section.int8,
        seed=config.seed,
    )


def documents_of(run: Run, rows: NDArray[np.int64]) -> Texts:
    """Training documents as the trainer takes them: tokens, or a frozen encoder's states."""
    return some_of(run.texts("documents"), rows)


def label_texts_of(run: Run, config: Config, fold: Fold) -> Texts:
    """Label names or pseudo descriptions, likewise."""
    by_name = config.retrieval.label_text == "name"
    return run.texts("label_texts", "names" if by_name else _TEXTS_OF[fold])


def schedule_of(section: ClassifierConfig | RetrievalConfig | AttentionConfig) -> Schedule:
    """The training schedule of a stage, by its settings."""
    given = asdict(section)
    return Schedule(**{f.name: given[f.name] for f in fields(Schedule) if f.name in given})


def _validation(
    run: Run, config: Config, labels: Texts | None
) -> Callable[[DualEncoder], Validation]:
    """Scores every branch on the validation slice; the mean of P@5 and PSP@5 decides."""
    held_out, rest = run.slice.held_out, run.slice.rest()
    documents, truth = documents_of(run, held_out), run.Y[held_out]
    counts = np.bincount(run.Y[rest].indices, minlength=run.Y.shape[1])
    inverse = metrics.inverse_propensities(counts, len(rest))

    def validate(encoder: DualEncoder) -> Validation:
        vectors = encode(encoder, documents, "document")
        found = {}
        if labels is not None:
            phi = encode(encoder, labels, "label")
            found["retrieval"] = retrieval_ranking(encoder, vectors, phi, _BEST)
            if config.retrieval.objective == "joint":
                found["classifier"] = classifier_ranking(encoder, vectors, _BEST)
                found["joint"] = joint_ranking(encoder, vectors, phi, _BEST)
        else:
            found["classifier"] = classifier_ranking(encoder, vectors, _BEST)
        branches = {
            name: metrics.precision_and_psp(ranking.indices, truth, inverse, (1, _BEST))
            for name, ranking in found.items()
        }
        decisive = branches[list(branches)[-1]]
        return Validation((decisive["P@5"] + decisive["PSP@5"]) / 2, branches)

    return validate
