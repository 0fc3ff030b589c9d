"""Corpora of any size, made from a real one so that term and label frequencies keep their shape.

    python benchmarks/resampling.py CORPUS OUT --documents 1190000 --labels 13300 --share 0.15

A made document has the labels of a real one and a random half of its words, or another share, so
that no two are the same. For fewer labels than the corpus has, a random part of them is kept. For
more, each label gets twins, of which a document carries one, the first most often; every twin has
words of its own, as labels of a larger vocabulary have.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import depl
from depl import Corpus, Label, LabelSet

OWN_WORDS = 3  # of a twin: it is written with each of them
SKEW = 1.0  # a twin's share falls with this power of its number


class Resampler:
    """Draws documents from a corpus.

    Parameters
    ----------
    corpus : Corpus
        The real documents.
    labels : int
        How many labels the made documents have.
    seed : int
        Of everything random.
    share : float
        Of a document's words, how many are kept.
    """

    def __init__(self, corpus: Corpus, labels: int, seed: int = 0, share: float = 0.5) -> None:
        self._share = share
        self._rng = rng = np.random.default_rng(seed)
        used = np.flatnonzero(corpus.label_counts)
        twins = -(-labels // len(used))
        kept = rng.permutation(used)[: min(labels, len(used))]
        pairs = [(int(j), twin) for twin in range(twins) for j in kept][:labels]
        self._place = {pair: i for i, pair in enumerate(pairs)}
        self._twins = np.bincount([j for j, _ in pairs], minlength=len(corpus.labels))
        self._chances = [_chances(n) for n in range(twins + 1)]
        self.labels = LabelSet(
            Label(f"{corpus.labels[j].id}-{twin}", f"{corpus.labels[j].name} {own(j, twin)[0]}")
            for j, twin in pairs
        )
        carried = [[j for j in row.indices if self._twins[j]] for row in corpus.Y]
        self._sources = [i for i, row in enumerate(carried) if row]
        self._carried = carried
        self._words = [text.split() for text in corpus.texts]

    def draw(self, n: int) -> Iterator[tuple[str, list[int]]]:
        """So many texts and their labels, one after the other: none is kept."""
        rng = self._rng
        for _ in range(n):
            source = self._sources[rng.integers(len(self._sources))]
            words = self._words[source]
            taken = [words[i] for i in np.flatnonzero(rng.random(len(words)) < self._share)]
            labels = []
            for j in self._carried[source]:
                chances = self._chances[self._twins[j]]
                twin = int(chances.searchsorted(rng.random(), side="right"))
                labels.append(self._place[j, twin])
                taken += own(j, twin) if self._twins[j] > 1 else []
            yield " ".join(taken) or words[0], sorted(set(labels))

    def write(self, folder: Path, **splits: int) -> None:
        """Write a corpus folder with so many documents in each split, one after the other."""
        folder.mkdir(parents=True)
        with (folder / "labels.jsonl").open("w", encoding="utf-8") as file:
            for label in self.labels:
                file.write(json.dumps({"id": label.id, "name": label.name}) + "\n")
        for split, n in splits.items():
            with (folder / f"{split}.jsonl").open("w", encoding="utf-8") as file:
                for i, (text, labels) in enumerate(self.draw(n)):
                    ids = [self.labels[j].id for j in labels]
                    file.write(json.dumps({"id": str(i), "text": text, "labels": ids}) + "\n")


def _chances(twins: int) -> np.ndarray:
    """The chance of each twin or one before it."""
    shares = 1.0 / np.arange(1, twins + 1) ** SKEW
    cumulated = (shares / shares.sum()).cumsum()
    return cumulated / cumulated[-1:]


def own(label: int, twin: int) -> list[str]:
    """The words that only this twin of a label has."""
    return [f"{letter}q{label}x{twin}" for letter in "abc"[:OWN_WORDS]]


def main() -> None:
    """Write a corpus folder, document by document."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--documents", type=int, required=True)
    parser.add_argument("--labels", type=int, required=True)
    parser.add_argument("--dev", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=float, default=0.5, help="of a document's words")
    args = parser.parse_args()
    source = depl.read(args.corpus, splits=["train"]).train
    made = Resampler(source, args.labels, args.seed, args.share)
    made.write(args.out, train=args.documents, dev=args.dev)


if __name__ == "__main__":
    main()
