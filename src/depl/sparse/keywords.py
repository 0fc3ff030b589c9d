"""Keywords and pseudo descriptions: what a label's SVM says in words (section 3.2 of the paper)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from depl.core.corpus import LabelSet
from depl.core.storage import read_table, write_table

_FILE = "descriptions.parquet"


@dataclass(frozen=True)
class Keywords:
    """The terms with the largest weights of every label, largest first.

    Parameters
    ----------
    indices : array of shape (n_labels, n), int32
        Positions in ``terms``; -1 where a label has fewer than n positive weights.
    weights : array of shape (n_labels, n), float32
        Their SVM weights; 0 in the padding.
    terms : sequence of str
        What the positions mean.
    """

    indices: NDArray[np.int32]
    weights: NDArray[np.float32]
    terms: Sequence[str]

    def __len__(self) -> int:
        return len(self.indices)

    def of(self, label: int) -> list[tuple[str, float]]:
        """The keywords of the label at this position, with their weights."""
        pairs = zip(self.indices[label], self.weights[label], strict=True)
        return [(self.terms[t], float(w)) for t, w in pairs if t >= 0]


def top_keywords(
    weights: csr_array,
    terms: Sequence[str],
    n: int = 20,
    *,
    numbers: bool = True,
    without: Collection[str] = (),
) -> Keywords:
    """Pick the n largest positive weights of every label; ties in term order.

    Parameters
    ----------
    weights : csr_array of shape (n_labels, n_terms)
        SVM weights.
    terms : sequence of str
        The terms of the columns.
    n : int
        How many keywords a label gets at most.
    numbers : bool
        Whether a term without any letter may be a keyword.
    without : collection of str
        Terms that may not: ``TfidfFeatures.stop_terms`` says nothing about a label, although in a
        few documents an SVM finds it informative.

    Examples
    --------
    >>> weights = csr_array(np.array([[0.2, -1.0, 0.9], [0.0, 0.0, 0.0]]))
    >>> top_keywords(weights, ["grape", "steel", "wine"], n=2).of(0)
    [('wine', 0.8999999761581421), ('grape', 0.20000000298023224)]
    """
    indices = np.full((weights.shape[0], n), -1, np.int32)
    values = np.zeros((weights.shape[0], n), np.float32)
    # The two words of a pair are terms themselves: a pair would only repeat them.
    allowed, weighted = np.zeros(len(terms), bool), np.zeros(len(terms), bool)
    weighted[weights.indices] = True
    for j in np.flatnonzero(weighted).tolist():
        term = terms[j]
        allowed[j] = " " not in term and term not in without and (numbers or has_letter(term))
    for label in range(weights.shape[0]):
        row = slice(weights.indptr[label], weights.indptr[label + 1])
        columns, w = weights.indices[row], weights.data[row]
        candidates = np.flatnonzero((w > 0) & allowed[columns])
        best = candidates[np.lexsort((columns[candidates], -w[candidates]))[:n]]
        indices[label, : len(best)] = columns[best]
        values[label, : len(best)] = w[best]
    return Keywords(indices, values, terms)


def has_letter(term: str) -> bool:
    """Whether a term is more than a number.

    Examples
    --------
    >>> has_letter("10a"), has_letter("1408")
    (True, False)
    """
    return any(map(str.isalpha, term))


def count_words(text: str) -> int:
    """The number of words of a text: what the budget counts where there is no encoder."""
    return len(text.split())


def describe(
    labels: LabelSet,
    keywords: Sequence[Sequence[str]],
    *,
    defined: Collection[int] = (),
    max_tokens: int = 16,
    count_tokens: Callable[[str], int] = count_words,
) -> list[str]:
    """Write every label's pseudo description.

    The name is never cut; keywords follow in order until the budget is used up, and none is
    cut in the middle. A label without keywords, because no training document carries it, gets its
    alternative names instead.

    Parameters
    ----------
    labels : LabelSet
        What to describe.
    keywords : sequence of sequences of str
        The keywords of each label, in order; none where no training document carries the label.
    defined : collection of int
        The labels that get the names of their broader labels and the words of their definition
        before that, where they have any.
    max_tokens : int
        The budget: 16 is the paper's best, 32 its other setting.
    count_tokens : callable
        Counts the tokens of a text; an encoder's tokenizer, or words.

    Examples
    --------
    >>> from depl.core.corpus import Label
    >>> labels = LabelSet([Label("1", "wine"), Label("2", "mead", ("honey wine",))])
    >>> describe(labels, [["grape", "cellar"], []], max_tokens=2)
    ['wine grape', 'mead']
    >>> describe(labels, [["grape", "cellar"], []])
    ['wine grape cellar', 'mead honey wine']
    >>> drinks = LabelSet([Label("1", "drink"), Label("2", "mead", (), "made of honey", ("1",))])
    >>> describe(drinks, [[], ["bee"]], defined=[1])
    ['drink', 'mead drink made of honey bee']
    """
    definitions = {i: _definition(labels, i) for i in defined}
    return [
        _fill(
            label.name,
            [*definitions.get(i, ()), *(words or label.alt_names)],
            max_tokens,
            count_tokens,
        )
        for i, (label, words) in enumerate(zip(labels, keywords, strict=True))
    ]


def _definition(labels: LabelSet, i: int) -> list[str]:
    """The names of a label's broader labels, as far as they are labels, and its definition."""
    return [*labels.broader_names(i), *labels[i].description.split()]


def _fill(
    name: str, additions: Sequence[str], max_tokens: int, count_tokens: Callable[[str], int]
) -> str:
    text, used = name, count_tokens(name)
    for addition in additions:
        used += count_tokens(addition)
        if used > max_tokens:
            break
        text = f"{text} {addition}"
    return text


@dataclass(frozen=True)
class Descriptions:
    """Every label's pseudo description, and its keywords with their weights, largest first."""

    texts: list[str]
    keywords: list[list[tuple[str, float]]]

    @classmethod
    def of(
        cls,
        labels: LabelSet,
        weights: csr_array,
        terms: Sequence[str],
        *,
        keywords: int,
        numbers: bool,
        max_tokens: int,
        defined: Collection[int] = (),
        without: Collection[str] = (),
        count_tokens: Callable[[str], int] = count_words,
    ) -> Descriptions:
        """Describe labels by their SVM weights.

        Parameters
        ----------
        labels : LabelSet
            What to describe.
        weights, terms : csr_array, sequence of str
            As in ``top_keywords``.
        keywords : int
            How many keywords a label gets at most.
        numbers : bool
            Whether terms without a letter go into the descriptions, too. A number such as 1408
            is informative to the SVM, but not to a reader or an encoder.
        defined, max_tokens, count_tokens
            As in ``describe``.
        without : collection of str
            As in ``top_keywords``.
        """
        heaviest = top_keywords(weights, terms, keywords, without=without)
        readable = top_keywords(weights, terms, keywords, numbers=numbers, without=without)
        words = [[term for term, _ in readable.of(i)] for i in range(len(labels))]
        texts = describe(
            labels, words, defined=defined, max_tokens=max_tokens, count_tokens=count_tokens
        )
        return cls(texts, [heaviest.of(i) for i in range(len(labels))])

    def with_others(self, places: Sequence[int], others: Descriptions) -> Descriptions:
        """The same with those of other descriptions at some places."""
        texts, keywords = self.texts.copy(), self.keywords.copy()
        for place, text, words in zip(places, others.texts, others.keywords, strict=True):
            texts[place], keywords[place] = text, words
        return Descriptions(texts, keywords)

    def save(self, folder: Path) -> None:
        """Write texts, keywords and weights."""
        columns = {
            "description": self.texts,
            "keywords": [[term for term, _ in row] for row in self.keywords],
            "weights": [[weight for _, weight in row] for row in self.keywords],
        }
        write_table(folder / _FILE, columns)

    @classmethod
    def load(cls, folder: Path) -> Descriptions:
        """Read what ``save`` wrote."""
        t = read_table(folder / _FILE, "description", "keywords", "weights")
        pairs = zip(t["keywords"], t["weights"], strict=True)
        return cls(t["description"], [list(zip(*row, strict=True)) for row in pairs])
