"""The stages of parts that score what others suggest: label-wise attention, and the re-ranker."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.ranking import agreed
from depl.neural import encoder_files
from depl.neural.checkpoints import Checkpoint
from depl.neural.curves import Curves
from depl.neural.encoder import encode
from depl.neural.reranker import pair_tokens, tokenize_labels, training_pairs
from depl.neural.retriever import retrieval_ranking
from depl.neural.sampling import LabelSampler
from depl.neural.tokens import Tokens
from depl.neural.training import Schedule, train
from depl.pipeline.neural import (
    documents_of,
    label_texts_of,
    save_encoder,
    schedule_of,
    shown_again,
    team_of,
)
from depl.pipeline.work import Work


def make_attention(work: Work) -> None:
    """The classifier of the held-out fit goes on with label-wise attention; then with everything.

    So its scores of the slice are like those of new documents, as an encoder's are.
    """
    run, section, team = work.run, work.config.attention, team_of(work)
    encoder = encoder_files.load(run.encoder_folder("classifier", "held_out")).to(team.device)
    encoder.add_attention()
    schedule = schedule_of(section)
    for fold in ("held_out", "final"):
        rows, negatives = run.rows(fold), run.negatives(fold)
        if fold == "final":
            rows = shown_again(run)
            negatives, schedule = negatives.take(rows), schedule.going_on(section.last_epochs)
        sampler = LabelSampler(
            run.Y[rows],
            negatives,
            n_hard=work.config.retrieval.hard_negatives,
            size=section.labels_per_batch,
        )
        title = f"attention ({fold})"
        with Curves(run.path / "logs", title, work.config.tensorboard and team.first) as curves:
            outcome = train(
                encoder.to(team.device),
                documents_of(run, rows),
                run.Y[rows],
                objective="attention",
                schedule=schedule,
                sampler=sampler,
                seed=work.config.seed,
                checkpoint=Checkpoint(work.scratch / fold, work.config.checkpoint_seconds),
                processes=team,
                observe=curves.add,
                title=title,
            )
        save_encoder(work, encoder, fold, outcome, team)


def make_reranker(work: Work) -> None:
    """A cross-encoder of documents and labels, trained without the validation slice.

    Its negatives are labels that parts agree on which may look at a document they were trained on:
    the classifier and the neighbours know those by heart.
    """
    run, section, team = work.run, work.config.reranker, team_of(work)
    rng = np.random.default_rng([work.config.seed, 2])
    rows = run.slice.rest()
    if len(rows) > section.documents:
        rows = np.sort(rng.choice(rows, section.documents, replace=False))
    start = run.encoder_folder("encoder", "held_out")
    pairs, true = _reranker_pairs(work, rows, start, rng)
    encoder = encoder_files.load_encoder(
        start,
        n_labels=1,
        int8=work.config.encoder.int8,
        seed=work.config.seed,
    )
    schedule = Schedule(
        epochs=section.epochs,
        batch_size=section.batch_size,
        accumulate=section.accumulate,
        encoder_lr=section.encoder_lr,
        pooler_lr=section.head_lr,
        head_lr=section.head_lr,
    )
    with Curves(run.path / "logs", "reranker", work.config.tensorboard and team.first) as curves:
        train(
            encoder.to(team.device),
            pairs,
            csr_array(true[:, None].astype(np.float32)),
            objective="classifier",
            schedule=schedule,
            seed=work.config.seed,
            checkpoint=Checkpoint(work.scratch, work.config.checkpoint_seconds),
            processes=team,
            observe=curves.add,
            title="reranker",
        )
    if team.first:
        encoder_files.save(encoder.cpu(), work.folder, start, max_tokens=section.max_tokens)


def _reranker_pairs(
    work: Work, rows: NDArray[np.int64], folder: Path, rng: np.random.Generator
) -> tuple[Tokens, NDArray[np.bool_]]:
    """Pairs of training documents and labels, and which of them go together."""
    run, config, section = work.run, work.config, work.config.reranker
    depth = section.candidates
    X, of_rest = run.train_vectors()[rows], np.searchsorted(run.slice.rest(), rows)
    names = run.names()
    found = [run.negatives("held_out").take(of_rest), names.rank(X, depth)]
    found.append(names.rank_covered(X, depth))
    encoder = encoder_files.load(folder).to(team_of(work).device)
    documents = documents_of(run, rows)
    labels = encode(encoder, label_texts_of(run, config, "held_out"), "label")
    vectors = encode(encoder, documents, "document")
    found.append(retrieval_ranking(encoder, vectors, labels, depth))
    texts = tokenize_labels(run.descriptions("held_out").texts, folder, section.max_tokens)
    at, label, true = training_pairs(run.Y[rows], agreed(found, depth), section.negatives, rng)
    assert isinstance(documents, Tokens)  # of an encoder that is trained
    return pair_tokens(documents, texts, at, label, section.max_tokens), true
