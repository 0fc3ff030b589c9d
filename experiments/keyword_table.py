"""The paper's Table 3 for any run: keywords of labels that one training document carries.

    python experiments/keyword_table.py RUN [--labels 12]

The labels are not picked by hand: those with exactly one training document, in the order of their
ids, at even distances.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from depl import Classifier


def main() -> None:
    """Print a markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--labels", type=int, default=12)
    args = parser.parse_args()
    model = Classifier.load(args.run)
    once = sorted(np.flatnonzero(model.train_counts == 1), key=lambda i: model.labels[int(i)].id)
    picked = np.linspace(0, len(once) - 1, args.labels).astype(int)
    print("| label | training documents | top keywords |\n| --- | --- | --- |")
    for i in picked:
        card = model.card(int(once[i]))
        words = " ".join(term for term, _ in card.keywords)
        print(f"| {card.label.name} ({card.label.id}) | {card.training_documents} | {words} |")


if __name__ == "__main__":
    main()
