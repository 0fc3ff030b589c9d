"""XR-Transformer of PECOS, the successor of X-Transformer by its authors, on an encoder of ours.

A tree of labels is made from tf-idf; the encoder is fine-tuned on its levels from coarse to fine;
a linear model of the encoder's vectors and tf-idf together ranks the labels. Published is a BERT or
larger, and an ensemble of three for the best figures: here it is one small encoder. Settings are
PECOS's own, with 32 documents a step as its authors have for EUR-Lex.
"""

from __future__ import annotations

import logging
from argparse import Namespace
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from pecos.xmc.xtransformer import matcher as fine_tuning
from pecos.xmc.xtransformer.model import XTransformer
from pecos.xmc.xtransformer.module import MLProblemWithText
from runner_io import (
    command_line,
    csr_rows,
    load_matrix,
    load_texts,
    measured,
    seen_labels,
    settings,
    write_predictions,
    write_report,
)

EPOCHS = 5  # of each level
TOKENS = 128
STEP = 32


def main() -> None:
    """Train and predict."""
    args = _parse()
    logging.basicConfig(level=logging.INFO)  # PECOS says how far it is
    torch.manual_seed(args.seed)
    torch.set_float32_matmul_precision("high")  # TF32 where a GPU has it
    # PyTorch's AdamW instead of the one of transformers, which takes the weights one by one.
    fused = torch.cuda.is_available()
    fine_tuning.AdamW = partial(torch.optim.AdamW, weight_decay=0.0, fused=fused)
    np.random.seed(args.seed)  # noqa: NPY002 - what its clustering draws from
    texts = [x.text for x in load_texts(args.work, "train")]
    chosen = np.sort(np.random.default_rng(args.seed).permutation(len(texts))[: args.documents])
    Y, columns = seen_labels(load_matrix(args.work, "Y_train")[chosen])
    X = load_matrix(args.work, "X_train")[chosen]
    problem = MLProblemWithText([texts[i] for i in chosen], Y, X_feat=X)
    with measured() as train:
        model = XTransformer.train(
            problem,
            train_params=_training(args),
            pred_params=_prediction(args),
            threads=args.threads,
        )
    dev = [x.text for x in load_texts(args.work, "dev")]
    X_dev = load_matrix(args.work, "X_dev")
    with measured() as predict:
        scores = model.predict(
            dev,
            X_feat=X_dev,
            use_gpu=torch.cuda.is_available(),
            only_topk=args.k,
            batch_gen_workers=1,
        )
    write_predictions(args.out, csr_rows(scores.tocsr(), columns), len(dev), args.k)
    write_report(
        args.out,
        peer=args.peer,
        version=version("libpecos"),
        settings=settings(args),
        stages={"train": train, "predict": predict},
        note=_note(len(chosen), len(texts), args),
    )


def _parse() -> Namespace:
    parser = command_line("Train and predict with XR-Transformer.")
    parser.add_argument("--encoder", type=Path, required=True, help="folder of a BERT")
    parser.add_argument("--documents", type=int, help="train on so many; on all when not given")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="of each level")
    parser.add_argument("--max-tokens", type=int, default=TOKENS)
    parser.add_argument("--batch-size", type=int, default=STEP)
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def _note(documents: int, all_documents: int, args: Namespace) -> str:
    """What is not as in PECOS's own settings."""
    said = [f"{documents:,} documents"] if documents < all_documents else []
    said += [f"{args.epochs} of {EPOCHS} epochs a level"] if args.epochs < EPOCHS else []
    said += [f"{args.max_tokens} of {TOKENS} tokens"] if args.max_tokens < TOKENS else []
    said += [f"{args.batch_size} documents a step"] if args.batch_size != STEP else []
    return ", ".join(said)


def _training(args: Namespace) -> XTransformer.TrainParams:
    params = XTransformer.TrainParams.from_dict({}, recursive=True)
    matcher = params.matcher_params_chain
    matcher.model_shortcut = str(args.encoder)
    matcher.batch_size = args.batch_size
    matcher.num_train_epochs = args.epochs
    matcher.learning_rate = args.learning_rate
    matcher.use_gpu = torch.cuda.is_available()
    matcher.batch_gen_workers = 1  # also the threads of a product in C++, which must not be none
    matcher.save_steps = 10**9  # without a validation set no step is better than the last
    params.ranker_params.threads = args.threads
    return params


def _prediction(args: Namespace) -> XTransformer.PredParams:
    params = XTransformer.PredParams.from_dict({}, recursive=True)
    params.matcher_params_chain.truncate_length = args.max_tokens
    return params


if __name__ == "__main__":
    main()
