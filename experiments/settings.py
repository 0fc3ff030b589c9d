"""Every setting: what the paper says of it, what two recipes have, and why ours differs."""

from __future__ import annotations

import json
from dataclasses import fields

from blocks import paragraph

from depl.run.config import Config
from depl.run.sections import Section

NOT_SAID = "not said"
NOT_THERE = "not in the paper"
# Settings that change no suggestion, or only where and how fast it is made.
TECHNICAL = {
    *("seed", "threads", "device", "checkpoint_seconds", "tensorboard", "encoder.int8"),
    *("classifier.accumulate", "retrieval.accumulate", "reranker.accumulate"),
    "attention.accumulate",
}
# What the paper says, and why a recipe has something else.
PAPER: dict[str, tuple[str, str]] = {
    "model": ("DEPL+c or DEPL", "all parts together are better on every corpus measured"),
    "validation": (NOT_SAID, ""),
    "folds": (NOT_THERE, ""),
    "features.analyzer": ("spaCy's lemmas", "ten times faster, nothing more to install"),
    "features.language": ("English", ""),
    "features.pairs": ("unigrams", "better in short texts; chosen by their length"),
    "features.min_df": ("2", "a word of one document can be a rare label's only one"),
    "features.max_df": ("0.7", ""),
    "features.sublinear_tf": (NOT_SAID, ""),
    "features.title_weight": (NOT_THERE, "what a title names, the document is about"),
    "linear.loss": ("hinge", "its square is the usual choice in the field"),
    "linear.solver": ("one-vs-all", "a label tree only where that is too slow"),
    "linear.C": (NOT_SAID, "for the squared hinge"),
    "linear.C_grid": (NOT_SAID, ""),
    "linear.cull": (NOT_THERE, "small weights are noise"),
    "characters.documents": (NOT_THERE, "few documents have few forms of a word"),
    "linear.rare_bonus": (NOT_THERE, "few positives cannot pull a label's weights far"),
    "linear.tol": (NOT_SAID, ""),
    "descriptions.keywords": ("20", ""),
    "descriptions.stop_words": (NOT_SAID, "they say nothing about a label"),
    "descriptions.numbers": ("allowed: 2004 is among its keywords", "nor do they"),
    "descriptions.definitions": ("not in the paper", ""),
    "descriptions.max_tokens": ("16; up to 32 in Figure 4", "more keywords to read"),
    "encoder.training": ("all weights", ""),
    "encoder.name": ("BERT-base, 110 M weights", "22.7 M weights, and comes with the install"),
    "encoder.max_tokens": (NOT_SAID, "faster"),
    "encoder.document_pooling": ("CLS", "what a small sentence encoder was trained for"),
    "encoder.label_pooling": ("mean of the text's tokens", "as the encoder was trained"),
    "encoder.poolers": ("linear; their start not said", "keeps what a sentence encoder knows"),
    "encoder.similarity": ("dot product", "does not saturate, whatever the encoder"),
    "classifier.epochs": (NOT_SAID, ""),
    "classifier.batch_size": (NOT_SAID, "a large GPU waits if it is smaller"),
    "classifier.encoder_lr": ("5e-5; 1e-5 for Wiki10-31K", "larger batches"),
    "classifier.pooler_lr": ("1e-4", "larger batches"),
    "classifier.head_lr": ("2e-3; 1e-3 for Wiki10-31K", "larger batches"),
    "classifier.patience": (NOT_SAID, ""),
    "retrieval.objective": ("both: DEPL+c and DEPL", ""),
    "retrieval.label_text": ("both: DEPL and DE-ret", ""),
    "retrieval.epochs": (NOT_SAID, ""),
    "retrieval.batch_size": (NOT_SAID, "a large GPU waits if it is smaller"),
    "retrieval.encoder_lr": ("1e-5", "larger batches"),
    "retrieval.pooler_lr": ("1e-4", "larger batches"),
    "retrieval.head_lr": ("1e-4", "larger batches"),
    "retrieval.hard_negatives": ("10; 5 and none in Table 6", ""),
    "retrieval.labels_per_batch": ("300; 500 for Wiki10-31K", "larger batches"),
    "retrieval.alive": ("0: the joint loss alone", "under it one branch starves"),
    "retrieval.apart": (NOT_SAID, "`alive` does it"),
    "retrieval.patience": (NOT_SAID, ""),
    "retrieval.enough_steps": (NOT_SAID, ""),
    "retrieval.last_epochs": (NOT_THERE, "faster than training a second time, and no worse"),
    "neighbours.k": (NOT_THERE, ""),
    "neighbours.sharpness": (NOT_THERE, ""),
    "neighbours.documents": (NOT_THERE, "a text may be like one document in particular"),
    "attention.epochs": (NOT_THERE, ""),
    "attention.batch_size": (NOT_THERE, ""),
    "attention.encoder_lr": (NOT_THERE, ""),
    "attention.pooler_lr": (NOT_THERE, ""),
    "attention.head_lr": (NOT_THERE, ""),
    "attention.last_epochs": (NOT_THERE, ""),
    "attention.labels_per_batch": (NOT_THERE, ""),
    "attention.candidates": (NOT_THERE, ""),
    "reranker.candidates": (NOT_THERE, "slow without a GPU; `best-gpu` has 40"),
    "reranker.epochs": (NOT_THERE, ""),
    "reranker.batch_size": (NOT_THERE, ""),
    "reranker.encoder_lr": (NOT_THERE, ""),
    "reranker.head_lr": (NOT_THERE, ""),
    "reranker.negatives": (NOT_THERE, ""),
    "reranker.documents": (NOT_THERE, ""),
    "reranker.max_tokens": (NOT_THERE, ""),
    "fusion.depth": (NOT_THERE, ""),
    "fusion.candidates": (NOT_THERE, ""),
    "fusion.titles": (NOT_THERE, ""),
    "fusion.head_loss": (NOT_THERE, ""),
}


def settings_table() -> str:
    """Every setting as a row of markdown."""
    paper, ours = values(Config.load("paper")), values(Config.load("small-gpu"))
    differ = sum(paper[name] != ours[name] for name in PAPER)
    lines = [
        "| setting | the paper | `paper` | `small-gpu` | why not the paper's |",
        "|" + " --- |" * 5,
    ]
    for name, (said, why) in PAPER.items():
        cells = (f"`{name}`", said, _shown(paper[name]), _shown(ours[name]), why)
        lines.append("| " + " | ".join(cells) + " |")
    left = ", ".join(f"`{name}`" for name in sorted(TECHNICAL))
    note = paragraph(
        f"{len(PAPER)} settings, {differ} of them different in the two recipes.",
        f"Left out, as they change nothing of the method: {left}.",
    )
    return "\n".join(lines) + "\n\n" + note


def values(config: Config) -> dict[str, object]:
    """All settings of a configuration by their dotted names."""
    found: dict[str, object] = {}
    for entry in fields(config):
        value = getattr(config, entry.name)
        if isinstance(value, Section):
            found |= {f"{entry.name}.{key}": x for key, x in value.to_dict().items()}
        else:
            found[entry.name] = value
    return found


def _shown(value: object) -> str:
    return str(value) if isinstance(value, str) else json.dumps(value)
