"""Documents that are not trained on: set aside to measure a run, or held out to tune it."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

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


def held_out_folds(
    groups: NDArray[np.integer], size: float, n_folds: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """The fold in which each document is held out, from 0 on; -1 where it never is.

    Documents of one group are in one fold. There is at least one fold, and each leaves documents
    to train on, as long as there are two of them.

    Parameters
    ----------
    groups : array of shape (n_documents,)
        The group of each document, from 0 on.
    size : float
        How many documents a fold has; its last group may exceed that.
    n_folds : int
        How many folds there are; fewer where a group is as large as a fold.
    rng : numpy Generator
        Draws the groups.

    Examples
    --------
    >>> held_out_folds(np.array([0, 0, 1, 2, 3]), 2, 2, np.random.default_rng(0)).tolist()
    [0, 0, 1, 0, -1]
    """
    sizes = np.bincount(groups)
    if len(sizes) == 1:  # it must be divided all the same
        return held_out_folds(np.arange(len(groups)), size, n_folds, rng)
    order = rng.permutation(len(sizes))
    before = np.cumsum(sizes[order]) - sizes[order]
    fold = np.where(before < n_folds * size, before // max(1, size), -1).astype(np.int64)
    if fold.max() == 0:
        fold[-1] = -1
    fold = np.unique(np.append(fold, -1), return_inverse=True)[1][:-1] - 1
    of_document: NDArray[np.int64] = fold[np.argsort(order)][groups]
    return of_document
