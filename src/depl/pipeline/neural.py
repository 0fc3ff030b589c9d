"""The stages of the neural half."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core import storage
from depl.core.ranking import Ranking
from depl.evaluation import metrics
from depl.neural import encoder_files
from depl.neural.checkpoints import Checkpoint
from depl.neural.distributed import Processes
from depl.neural.encoder import DualEncoder
from depl.neural.encoding import Side, Texts, encode, pooled_states
from depl.neural.index import LabelIndex
from depl.neural.objectives import Objective
from depl.neural.retriever import (
    Retriever,
    classifier_ranking,
    index_documents,
    index_labels,
    joint_ranking,
    retrieval_ranking,
)
from depl.neural.sampling import LabelSampler
from depl.neural.tokens import load_tokenizer, tokenize
from depl.neural.training import Outcome, Progress, Schedule, Validation, train
from depl.pipeline.sparse import HARD_DEPTH
from depl.pipeline.stages import Work
from depl.run.config import ClassifierConfig, Config, RetrievalConfig
from depl.run.folder import Fold, Rehearsal, Run, write_tokens

_FOLDS: tuple[Fold, ...] = ("rehearsal", "final")
_BEST = 5  # labels a document that decide when to stop


def token_counter(config: Config) -> Callable[[str], int]:
    """Counts the encoder's tokens of a text."""
    tokenizer = load_tokenizer(encoder_files.find_encoder(config.encoder.name))
    tokenizer.no_truncation()
    return cache(lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids))


def make_tokens(work: Work) -> None:
    """Token ids of documents and label texts, and the SVM's hard negatives."""
    run, config = work.run, work.config
    folder = encoder_files.find_encoder(config.encoder.name)
    write_tokens(
        work.folder, "documents", tokenize(run.train().texts, folder, config.encoder.max_tokens)
    )
    label_texts = {
        "names": run.labels.names,
        "descriptions": run.descriptions()[0],
        "rehearsal": storage.read_table(run.require("rehearsal") / "descriptions.parquet")[
            "description"
        ],
    }
    for name, texts in label_texts.items():
        longest = config.descriptions.max_tokens + 2  # with the two special ones
        write_tokens(work.folder, name, tokenize(texts, folder, longest))
    hard = run.linear().rank(run.train_vectors(), HARD_DEPTH)
    storage.write_ranking(work.folder / "hard.safetensors", hard)


def make_states(work: Work) -> None:
    """What a frozen encoder makes of documents and labels, computed once."""
    encoder = new_encoder(work.config, 0).to(_team(work).device)
    sides: dict[str, Side] = {"documents": "document", "names": "label"}
    sides |= {_label_tokens(work.config, fold): "label" for fold in _FOLDS}
    for name, side in sides.items():
        states = pooled_states(encoder, work.run.tokens(name), side)
        halves = states.cpu().numpy().astype(np.float16)
        storage.write_tensors(work.folder / f"{name}.safetensors", {"states": halves})


def make_classifier(work: Work) -> None:
    """Encoder and head: the first neural stage, in rehearsal and for good."""
    config, n_labels = work.config, len(work.run.labels)
    _rehearse_and_train(
        work, "classifier", lambda fold: new_encoder(config, n_labels), config.classifier
    )


def make_encoder(work: Work) -> None:
    """DE-ret, DEPL or DEPL+c: the second neural stage, in rehearsal and for good."""
    run, objective = work.run, work.config.retrieval.objective

    def start(fold: Fold) -> DualEncoder:
        return encoder_files.load(run.encoder_folder("classifier", fold))

    _rehearse_and_train(work, objective, start, work.config.retrieval)


def _rehearse_and_train(
    work: Work,
    objective: Objective,
    start: Callable[[Fold], DualEncoder],
    section: ClassifierConfig | RetrievalConfig,
) -> None:
    """Train without the validation slice until it is best there, then as long on everything."""
    outcome: Outcome | None = None
    team = _team(work)
    source = encoder_files.find_encoder(work.config.encoder.name)
    for fold in _FOLDS:
        encoder = start(fold).to(team.device)
        stop_after = outcome.epochs if outcome is not None else None
        outcome = _train(work, encoder, objective, section, fold, stop_after, team)
        if objective == "dual":
            encoder.head = None  # it belongs to the encoder as it was before
        if team.first:
            target = work.folder if fold == "final" else work.folder / "rehearsal"
            max_tokens = work.config.encoder.max_tokens
            encoder_files.save(encoder.cpu(), target, source, max_tokens=max_tokens)
            storage.write_json(target / "training.json", asdict(outcome))


def _train(
    work: Work,
    encoder: DualEncoder,
    objective: Objective,
    section: ClassifierConfig | RetrievalConfig,
    fold: Fold,
    stop_after: int | None,
    team: Processes,
) -> Outcome:
    run, config = work.run, work.config
    rehearsal = run.rehearsal()
    rows = rehearsal.rest if fold == "rehearsal" else np.arange(run.Y.shape[0])
    Y = run.Y[rows]
    labels, sampler = None, None
    if isinstance(section, RetrievalConfig):
        labels = _label_texts(run, config, fold)
        sampler = LabelSampler(
            Y,
            run.hard_negatives(fold),
            n_hard=section.hard_negatives,
            size=section.labels_per_batch,
        )
    validate = None
    if fold == "rehearsal":
        validate = _validation(run, config, rehearsal, labels)
    title = f"{work.folder.name.strip('.').removesuffix('.tmp')} ({fold})"
    with _Curves(run.path / "logs", title, config.tensorboard and team.first) as curves:
        return train(
            encoder,
            _documents(run, config, rows),
            Y,
            objective=objective,
            schedule=schedule_of(section),
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


def make_index(work: Work) -> None:
    """Vectors of all labels and of their names, and of the training documents."""
    run, config = work.run, work.config
    encoder = encoder_files.load(run.encoder_folder("encoder")).to(_team(work).device)
    labels = _label_texts(run, config, "final")
    documents = _documents(run, config, np.arange(run.Y.shape[0]))
    index_labels(encoder, labels).save(work.folder / "labels")
    names = _index_names(run, config, encoder)
    if names is not None:
        names.save(work.folder / "names")
    index_documents(encoder, documents).save(work.folder / "documents")


def rehearsed_rankings(run: Run, config: Config, rehearsal: Rehearsal) -> dict[str, Ranking]:
    """What the neural parts, trained without the validation slice, say of it."""
    encoder = encoder_files.load(run.encoder_folder("encoder", "rehearsal"))
    encoder.to(Processes.launched(config.device).device)
    retriever = Retriever(
        encoder,
        index_labels(encoder, _label_texts(run, config, "rehearsal")),
        index_documents(encoder, _documents(run, config, rehearsal.rest)),
        run.Y[rehearsal.rest],
        names=_index_names(run, config, encoder),
        neighbours=config.neighbours.k,
        sharpness=config.neighbours.sharpness,
    )
    held_out = encode(encoder, _documents(run, config, rehearsal.held_out), "document")
    return retriever.rank(held_out, config.fusion.depth)


def _index_names(run: Run, config: Config, encoder: DualEncoder) -> LabelIndex | None:
    """The labels' names; None where labels are known by them anyway: it would be a part twice."""
    if config.retrieval.label_text == "name":
        return None
    return index_labels(encoder, _texts(run, config, "names"))


def _team(work: Work) -> Processes:
    return work.processes or Processes.launched(work.config.device)


def new_encoder(config: Config, n_labels: int) -> DualEncoder:
    """The pretrained encoder that training starts from."""
    section = config.encoder
    return encoder_files.load_encoder(
        encoder_files.find_encoder(section.name),
        n_labels=n_labels,
        document_pooling=section.document_pooling,
        label_pooling=section.label_pooling,
        similarity=section.similarity,
        int8=section.int8,
        seed=config.seed,
    )


def _documents(run: Run, config: Config, rows: NDArray[np.int64]) -> Texts:
    """Training documents as the trainer takes them: tokens, or a frozen encoder's states."""
    if config.encoder.training == "frozen":
        return run.states("documents")[rows]
    return run.tokens("documents").take(rows)


def _label_texts(run: Run, config: Config, fold: Fold) -> Texts:
    """Label names or pseudo descriptions, likewise."""
    return _texts(run, config, _label_tokens(config, fold))


def _texts(run: Run, config: Config, name: str) -> Texts:
    """All that the run keeps under this name, likewise."""
    return run.states(name) if config.encoder.training == "frozen" else run.tokens(name)


def _label_tokens(config: Config, fold: Fold) -> str:
    """What the tokens of the labels' texts are called."""
    if config.retrieval.label_text == "name":
        return "names"
    return "descriptions" if fold == "final" else "rehearsal"


def schedule_of(section: ClassifierConfig | RetrievalConfig) -> Schedule:
    """How long and how fast a stage trains, by its settings."""
    names = ("epochs", "batch_size", "accumulate", "encoder_lr", "pooler_lr", "head_lr", "patience")
    settings = {name: getattr(section, name) for name in names}
    if isinstance(section, RetrievalConfig):
        settings["alive"] = section.alive
    return Schedule(**settings)


def _validation(
    run: Run, config: Config, rehearsal: Rehearsal, labels: Texts | None
) -> Callable[[DualEncoder], Validation]:
    """Scores every branch on the validation slice; the mean of P@5 and PSP@5 decides."""
    documents = _documents(run, config, rehearsal.held_out)
    truth, known = run.Y[rehearsal.held_out], csr_array(run.Y[rehearsal.rest])
    inverse = metrics.inverse_propensities(known.sum(axis=0), len(rehearsal.rest))

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


class _Curves:
    """Loss, speed and validation scores as JSON lines, and for TensorBoard where wanted."""

    def __init__(self, folder: Path, title: str, tensorboard: bool) -> None:
        self._path = folder / f"{title.replace(' ', '-').replace('(', '').replace(')', '')}.jsonl"
        self._open = False  # whether what is in the file is ours
        self._writer: Any = None
        if tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(folder / "tensorboard" / self._path.stem)
        folder.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> _Curves:
        return self

    def add(self, progress: Progress) -> None:
        """Write one reading, and drop what a killed training wrote behind its last checkpoint."""
        line = {k: v for k, v in asdict(progress).items() if v is not None}
        if not self._open:
            kept = []
            if self._path.exists():
                kept = [x for x in self._path.read_text().splitlines() if x.endswith("}")]
                while kept and json.loads(kept[-1])["step"] >= progress.step:
                    kept.pop()
            storage.write_text(self._path, "".join(f"{x}\n" for x in kept))
            self._open = True
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        if self._writer is not None:
            self._writer.add_scalar("loss", progress.loss, progress.step)
            for branch, scores in (line.get("validation") or {}).get("branches", {}).items():
                for name, value in scores.items():
                    self._writer.add_scalar(f"{branch}/{name}", value, progress.step)

    def __exit__(self, *ignored: object) -> None:
        if self._writer is not None:
            self._writer.close()
