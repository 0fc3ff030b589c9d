"""What the feedback on a run says now, and other than the last time that the run learnt."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from depl.core.corpus import Corpus
from depl.labels.feedback_corpus import Taught
from depl.run.learned import Documents, Verdicts


class Texts(NamedTuple):
    """Texts that are other than in training.

    Parameters
    ----------
    seen : list of int
        Rows of those that were studied before, among the documents that were.
    unread : list of int
        Positions of the others in the corpus.
    order : array
        Brings what is made of the first and of the second, in this order, into that of the corpus.
    """

    seen: list[int]
    unread: list[int]
    order: NDArray[np.int64]

    def together(self, seen: csr_array, fresh: csr_array) -> csr_array:
        """Vectors of the texts that were seen and of those that were not, as one matrix."""
        return csr_array(csr_array(vstack([seen, fresh], format="csr"))[self.order])


class News(NamedTuple):
    """What has changed since the last time.

    Parameters
    ----------
    verdicts : dict of str to Verdicts
        All documents that are other than in training, by id.
    places : array
        Their positions in the corpus.
    reworded : array
        The positions of those whose text is other than in training, or new.
    appended : array
        The positions of documents that were not there the last time.
    labels : array
        The labels that a document is another example of, or against, than the last time.
    altered : array
        Those of them that training documents carry, or do not carry, otherwise than in the fit.
    """

    verdicts: dict[str, Verdicts]
    places: NDArray[np.int64]
    reworded: NDArray[np.int64]
    appended: NDArray[np.int64]
    labels: NDArray[np.int64]
    altered: NDArray[np.int64]

    def texts(self, corpus: Corpus, studied: Documents) -> Texts:
        """The texts of ``reworded``: which were studied before, and which must be read."""
        known = {x.digest: row for row, x in enumerate(studied.verdicts.values())}
        places = self.reworded.tolist()
        rows = [known.get(self.verdicts[corpus.ids[i]].digest) for i in places]
        seen = [i for i, row in enumerate(rows) if row is not None]
        unread = [i for i, row in enumerate(rows) if row is None]
        return Texts(
            [row for row in rows if row is not None],
            [places[i] for i in unread],
            np.argsort(np.array([*seen, *unread], np.int64)),
        )


def news_since(base: Corpus, found: Taught, studied: dict[str, Verdicts]) -> News:
    """What the feedback says now, and other than the last time."""
    corpus, n = found.corpus, len(base)
    relabelled = csr_array(base.Y - corpus.Y[:n])
    relabelled.eliminate_zeros()
    other = [i for i in range(n) if base.texts[i] != corpus.texts[i]]
    reworded = np.array([*other, *range(n, len(corpus))], np.int64)
    places = np.union1d(reworded, np.flatnonzero(np.diff(relabelled.indptr)))
    in_training = {id: i for i, id in enumerate(base.ids)}

    def fitted(id: str) -> Verdicts | None:
        i = in_training.get(id)
        return None if i is None else _verdicts(base, i)

    now = {corpus.ids[i]: _verdicts(corpus, i, found.rejected.get(i)) for i in places.tolist()}
    appended, labels = [], set[int]()
    for place, (id, said) in zip(places.tolist(), now.items(), strict=True):
        had = studied.get(id) or fitted(id)
        if had is None:
            appended.append(place)
            labels |= {*said.carried, *said.rejected}
        else:
            labels |= _differing(had, said)
    for id, had in studied.items():
        if id not in now:  # it was undone
            labels |= _differing(had, fitted(id) or Verdicts("", (), ()))
    altered = set(relabelled.indices.tolist())
    for i in other:
        altered |= {*_verdicts(base, i).carried, *_verdicts(corpus, i).carried}
    return News(
        now,
        places,
        reworded,
        np.array(appended, np.int64),
        np.array(sorted(labels), np.int64),
        np.array(sorted(labels & altered), np.int64),
    )


def _verdicts(corpus: Corpus, i: int, rejected: set[int] | None = None) -> Verdicts:
    carried = corpus.Y.indices[corpus.Y.indptr[i] : corpus.Y.indptr[i + 1]]
    digest = hashlib.sha256(corpus.texts[i].encode()).hexdigest()
    return Verdicts(digest, tuple(sorted(carried.tolist())), tuple(sorted(rejected or ())))


def _differing(had: Verdicts, said: Verdicts) -> set[int]:
    """The labels that a document is another example of, or against, than before."""
    if had.digest != said.digest:
        return {*had.carried, *had.rejected, *said.carried, *said.rejected}
    return (set(had.carried) ^ set(said.carried)) | (set(had.rejected) ^ set(said.rejected))
