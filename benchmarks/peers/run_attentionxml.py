"""AttentionXML by LibMultiLabel: its network without a label tree, as its authors train EUR-Lex.

A bidirectional LSTM of 256 units each way reads word vectors; every label has its own attention
over the words, and all share the layers that score what it gathers. Published settings: 40
documents a step, 30 epochs, learning rate 1e-3, 500 words of a document. GloVe's vectors are not to
be had here: they are trained by word2vec on the training texts. LibMultiLabel's trainer is replaced
by a loop of ours, which puts documents of similar length into a step, and after an interruption
continues with the last epoch that it kept.
"""

from __future__ import annotations

import json
import time
from argparse import Namespace
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
from gensim.models import Word2Vec
from libmultilabel.nn.data_utils import PAD, UNK, tokenize
from libmultilabel.nn.nn_utils import init_model
from runner_io import (
    Stage,
    best_of_dense,
    command_line,
    load_matrix,
    load_texts,
    measured,
    seen_labels,
    settings,
    write_predictions,
    write_report,
)

EPOCHS, STEP = 30, 40
START = time.perf_counter()
KEEP_SECONDS = 60.0  # between two states that are kept: writing one takes a while, too
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
Batch = dict[str, torch.Tensor]


def main() -> None:
    """Train the word vectors and the network, and predict."""
    args = _parse()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    torch.set_float32_matmul_precision("high")  # TF32 where a GPU has it
    rng = np.random.default_rng(args.seed)
    Y, columns = seen_labels(load_matrix(args.work, "Y_train"))
    train = [tokenize(x.text)[: args.max_words] for x in load_texts(args.work, "train")]
    with measured() as vectors:
        words = Word2Vec(train, vector_size=300, sg=1, min_count=2, workers=args.threads, seed=0)
    known = {PAD: 0, UNK: 1} | {w: i + 2 for i, w in enumerate(words.wv.index_to_key)}
    embedding = np.vstack([np.zeros((2, 300), np.float32), words.wv.vectors])
    model = init_model(
        "AttentionXML_0",
        {"rnn_dim": 512, "linear_size": [256], "embed_dropout": 0.2, "post_encoder_dropout": 0.5},
        [str(x) for x in columns],
        embed_vecs=torch.from_numpy(embedding),
        learning_rate=1e-3,
        monitor_metrics=[],
        silent=True,
    )
    model.to(DEVICE)
    chosen = np.sort(rng.permutation(len(train))[: args.documents])
    ids = [_ids(train[i], known) for i in chosen]
    taught, epochs = _teach(model, ids, Y[chosen], rng, args)

    dev = [_ids(tokenize(x.text)[: args.max_words], known) for x in load_texts(args.work, "dev")]
    with measured() as predict:
        scores = _scores(model, dev, len(columns))
    write_predictions(args.out, best_of_dense(scores, columns, args.k), len(dev), args.k)
    done = Stage(
        vectors.seconds + taught.seconds,
        vectors.cpu_seconds + taught.cpu_seconds,
        max(vectors.peak_rss_mb, taught.peak_rss_mb),
    )
    write_report(
        args.out,
        peer=args.peer,
        version=version("libmultilabel"),
        settings=settings(args),
        stages={"train": done, "predict": predict},
        note=_note(len(chosen), len(train), epochs, args.batch_size),
    )


def _parse() -> Namespace:
    parser = command_line("Train and predict with AttentionXML.")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--seconds", type=float, help="of the run; no later epoch begins")
    parser.add_argument("--documents", type=int, help="train on so many; on all when not given")
    parser.add_argument("--max-words", type=int, default=500)
    parser.add_argument("--batch-size", type=int, default=STEP)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def _note(documents: int, all_documents: int, epochs: int, step: int) -> str:
    """What is not as published."""
    said = [f"{documents:,} documents"] if documents < all_documents else []
    said += [f"{epochs} of {EPOCHS} epochs"] if epochs < EPOCHS else []
    said += [f"{step} documents a step"] if step != STEP else []
    return ", ".join(said)


def _ids(words: list[str], known: dict[str, int]) -> torch.Tensor:
    found = [known.get(word, known[UNK]) for word in words]
    return torch.tensor(found or [known[UNK]])


def _teach(
    model: torch.nn.Module,
    documents: list[torch.Tensor],
    Y: sp.csr_matrix,
    rng: np.random.Generator,
    args: Namespace,
) -> tuple[Stage, int]:
    """Train in place; time and memory of all epochs, those before an interruption included."""
    kept, last_kept = args.work / "attentionxml.pt", time.perf_counter()
    asked = json.dumps(settings(args) | {"epochs": None, "seconds": None}, sort_keys=True)
    optimizer = model.configure_optimizers()
    total, first, done = Stage(), 0, 0
    if kept.exists():
        state = torch.load(kept, map_location=DEVICE, weights_only=True)
        if state["asked"] == asked and state["epoch"] <= args.epochs:
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
            total, first = Stage(*state["stage"]), state["epoch"]
            done = first
    model.train()
    for epoch in range(args.epochs):
        batches = list(_batches(documents, args.batch_size, rng))
        if epoch < first:
            continue
        needed = total.seconds / done if done else 0.0  # for one more epoch
        if args.seconds and time.perf_counter() - START + needed > args.seconds:
            break
        with measured() as stage:
            for rows in batches:
                loss, _ = model.shared_step(_batch(documents, rows, Y))
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                torch.nn.utils.clip_grad_value_(model.parameters(), 0.5)
                optimizer.step()
        total.seconds += stage.seconds
        total.cpu_seconds += stage.cpu_seconds
        total.peak_rss_mb = max(total.peak_rss_mb, stage.peak_rss_mb)
        done = epoch + 1
        print(f"epoch {done}: loss {float(loss.detach()):.4f}, {stage.seconds:.0f} s", flush=True)
        if time.perf_counter() - last_kept > KEEP_SECONDS:
            _keep(kept, asked, done, total, model, optimizer)
            last_kept = time.perf_counter()
    model.eval()
    return total, done


def _keep(
    path: Path,
    asked: str,
    epoch: int,
    stage: Stage,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
) -> None:
    state = {"asked": asked, "epoch": epoch, "model": model.state_dict()}
    state |= {
        "optimizer": optimizer.state_dict(),
        "stage": [stage.seconds, stage.cpu_seconds, stage.peak_rss_mb],
    }
    torch.save(state, path.with_suffix(".tmp"))
    path.with_suffix(".tmp").replace(path)


def _batches(
    documents: list[torch.Tensor], size: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Documents in random order, sorted by length within fifty steps; the steps in random order."""
    order = rng.permutation(len(documents))
    lengths = np.array([len(x) for x in documents])
    steps = []
    for start in range(0, len(order), 50 * size):
        part = order[start : start + 50 * size]
        part = part[np.argsort(lengths[part], kind="stable")]
        steps += [part[i : i + size] for i in range(0, len(part), size)]
    for i in rng.permutation(len(steps)):
        yield steps[i]


def _batch(documents: list[torch.Tensor], rows: np.ndarray, Y: sp.csr_matrix | None) -> Batch:
    texts = [documents[i] for i in rows]
    batch = {
        "text": torch.nn.utils.rnn.pad_sequence(texts, batch_first=True).to(DEVICE),
        "length": torch.tensor([len(x) for x in texts]),
    }
    if Y is None:
        return batch
    carried = Y[rows].tocoo()  # made dense on the device: fewer bytes to move
    labels = torch.zeros(carried.shape, device=DEVICE)
    labels[torch.from_numpy(carried.row).long(), torch.from_numpy(carried.col).long()] = 1.0
    return batch | {"label": labels}


@torch.inference_mode()
def _scores(model: torch.nn.Module, documents: list[torch.Tensor], n_labels: int) -> np.ndarray:
    out = np.empty((len(documents), n_labels), np.float32)
    order = np.argsort([len(x) for x in documents])
    for start in range(0, len(order), 64):
        rows = order[start : start + 64]
        out[rows] = model(_batch(documents, rows, None)).cpu().numpy()
    return out


if __name__ == "__main__":
    main()
