"""Documents that are set aside before training, to measure a run on."""

from __future__ import annotations

import hashlib

import numpy as np

from depl.core.corpus import Corpus

SHARE = 0.1
FEWEST = 20  # documents of which any are set aside: with fewer, each one is needed for training


def set_aside(corpus: Corpus) -> tuple[Corpus, Corpus]:
    """Documents to train on and a tenth to measure on, chosen by a hash of their texts.

    Documents with the same words are on the same side, so that none is measured that was trained
    on; and a document stays on its side when others are added to the corpus or their order changes.
    """
    places = np.array([_place(text) for text in corpus.texts])
    if len(places) < FEWEST:
        return corpus, corpus.subset([])
    # Few documents may all be above the tenth: then the lowest, with its copies, is taken.
    aside = places < max(SHARE, float(np.nextafter(places.min(), 1)))
    return corpus.subset(np.flatnonzero(~aside)), corpus.subset(np.flatnonzero(aside))


def _place(text: str) -> float:
    """A number from 0 to 1 that depends on the words of the text and on nothing else."""
    words = " ".join(text.casefold().split()).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(words, digest_size=6).digest()) / 2**48
