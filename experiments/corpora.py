"""What the corpora are: the paper's Table 1 for ours, and dev documents that repeat training ones.

    python experiments/corpora.py data/eurlex57k data/tib-en data/debtags

The results go into experiments/results/<corpus>-corpus.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from measured import RESULTS
from numpy.typing import NDArray

import depl
from depl.core.storage import write_text

ENDING = 600  # characters; laws often differ in their titles alone
# The paper's Table 1.
PRINTED = {
    "EURLex-4K": (15_539, 3_809, 5.30, 3_956, 2_413),
    "Wiki10-31K": (14_146, 6_616, 18.64, 30_938, 26_545),
    "AmazonCat-13K": (1_186_239, 306_782, 5.04, 13_330, 3_936),
}


def main() -> None:
    """Count, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", nargs="+", type=Path, help="folders with train and dev")
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    for folder in args.corpora:
        data = depl.read(folder, splits=["train", "dev"])
        found = {"corpus": folder.resolve().name, "seed": None, "statistics": statistics(data)}
        print(json.dumps(found))
        path = args.results / f"{found['corpus']}-corpus.json"
        write_text(path, json.dumps(found, indent=1) + "\n")


def statistics(data: depl.Dataset) -> dict[str, float]:
    """The columns of Table 1, and how many dev documents repeat a training document."""
    counts = data.train.label_counts
    whole, ending = repeated(data.train.texts, data.dev.texts)
    return {
        "train": len(data.train),
        "dev": len(data.dev),
        "labels_per_document": round(data.train.Y.nnz / len(data.train), 2),
        "labels": len(data.labels),
        "tail": int(np.count_nonzero((counts > 0) & (counts < 10))),
        "same_text": int(whole.sum()),
        "same_ending": int(ending.sum()),
    }


def repeated(train: list[str], dev: list[str]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which dev texts are training texts; which end in the same 600 characters as one.

    White space does not count. A text that is shorter than that has to be the same as a whole.

    Examples
    --------
    >>> whole, ending = repeated(["one  text", "b" + 600 * "x"], ["one text", "c" + 600 * "x", "d"])
    >>> whole.tolist(), ending.tolist()
    ([True, False, False], [True, True, False])
    """
    plain, asked = ([" ".join(text.split()) for text in texts] for texts in (train, dev))
    known, endings = set(plain), {text[-ENDING:] for text in plain if len(text) >= ENDING}
    whole = np.array([text in known for text in asked])
    same = [len(text) >= ENDING and text[-ENDING:] in endings for text in asked]
    return whole, whole | np.array(same)


def corpora_table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Table 1 as markdown: the paper's corpora, then ours by title."""
    head = ("", "train", "test or dev", "labels per document", "labels", "tail labels", "repeated")
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for name, (train, test, per, labels, tail) in PRINTED.items():
        lines.append(f"| {name} | {train:,} | {test:,} | {per:.2f} | {labels:,} | {tail:,} |  |")
    for title, x in found.items():
        sizes = f"{x['train']:,} | {x['dev']:,} | {x['labels_per_document']:.2f}"
        again = f"{x['same_ending']:,} ({x['same_text']:,} as a whole)"
        lines.append(f"| {title} | {sizes} | {x['labels']:,} | {x['tail']:,} | {again} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
