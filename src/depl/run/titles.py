"""Titles, which are ranked on their own beside the whole texts.

What a title names, the document is about; what a text mentions, it may only mention. The whole
text's vector mixes the two. So the words of the title alone are given to the SVM and compared with
the labels' names, and where there is an encoder, so is their meaning. A title is the first line of
a text of several.

On held-out training documents (``cpu-frozen``, of 4,100, 4,500 and 2,400 documents; a fixed order):

=========================  =====  =====  =====  =====  =====
..                           P@1    P@5  PSP@1  PSP@5   tail
=========================  =====  =====  =====  =====  =====
TIB-en, sparse parts        51.9   23.9   33.9   38.0   27.9
with titles                 55.1   25.4   35.8   40.7   31.1
all parts                   55.8   26.0   36.3   41.8   31.5
with titles                 59.1   27.0   38.9   44.1   33.4
EURLEX57K, sparse parts     92.6   69.0   50.2   66.3   31.2
with titles                 93.2   69.5   50.8   66.9   32.7
all parts                   93.0   69.5   50.5   66.8   32.0
with titles                 93.5   69.7   51.2   67.0   33.6
debtags, sparse parts       85.8   47.9   55.4   70.0   34.0
with titles                 86.4   48.3   55.5   70.1   31.4
all parts                   85.7   48.7   55.2   71.2   36.9
with titles                 87.3   48.9   56.9   71.5   33.3
=========================  =====  =====  =====  =====  =====

The tail of debtags is that of few labels, each with one or two of these documents. Other parts that
read titles, such as the classifier or the neighbours, added nothing more. ``depl fit RUN --from
fusion --set fusion.titles=no`` in a copy of a run shows what they are worth there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.ranking import Ranking
from depl.core.texts import title_of
from depl.sparse.kinds import USUAL
from depl.sparse.names import NameMatch
from depl.sparse.svm import OneVsAllSVM
from depl.sparse.tfidf import TfidfFeatures

_PART = "title "  # how the names of parts begin that read titles alone


@dataclass(frozen=True)
class Titles:
    """The titles of some documents.

    Parameters
    ----------
    texts : list of str
        Of the documents that have one.
    rows : array of int64
        Which documents these are.
    n : int
        How many documents there are.
    """

    texts: list[str]
    rows: NDArray[np.int64]
    n: int

    @classmethod
    def of(cls, texts: Iterable[str]) -> Titles:
        """The titles of texts."""
        titles = [title_of(text) for text in texts]
        rows = np.flatnonzero([bool(title) for title in titles])
        return cls([titles[i] for i in rows], rows, len(titles))

    @classmethod
    def ranked(cls, texts: Iterable[str], setting: str) -> Titles:
        """Those of training documents that are ranked on their own; ``fusion.titles`` says when."""
        titles = cls.of(texts)
        wanted = setting == "yes" or (setting == "auto" and titles.usual)
        return titles if wanted else cls([], np.empty(0, np.int64), titles.n)

    @property
    def usual(self) -> bool:
        """Whether most documents have one."""
        return self.n > 0 and len(self.texts) >= USUAL * self.n

    def vectors(self, features: TfidfFeatures) -> csr_array:
        """The tf-idf of every document's title; its row is empty where there is none."""
        X, lengths = features.transform(self.texts), np.zeros(self.n, np.int64)
        lengths[self.rows] = np.diff(X.indptr)
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        return csr_array((X.data, X.indices, indptr), shape=(self.n, X.shape[1]))

    def by_words(
        self, features: TfidfFeatures, svm: OneVsAllSVM, names: NameMatch, k: int
    ) -> dict[str, Ranking]:
        """The k best labels of each title by the parts that read words."""
        X = features.transform(self.texts)
        return {"svm": svm.rank(X, k), **names.parts(self.texts, X, features, k)}

    def parts(self, rankings: Mapping[str, Ranking]) -> dict[str, Ranking]:
        """Rankings of the titles as parts of a fusion; documents without one get no labels."""
        found = {}
        for name, ranking in rankings.items():
            whole = found[f"{_PART}{name}"] = Ranking.empty(self.n, ranking.k)
            whole.indices[self.rows], whole.scores[self.rows] = ranking.indices, ranking.scores
        return found


def read_titles(parts: Iterable[str]) -> bool:
    """Whether some of a fusion's parts read titles."""
    return any(name.startswith(_PART) for name in parts)
