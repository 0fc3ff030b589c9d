"""The paper's Table 5 for any run, and what its keywords are worth.

    python experiments/keyword_table.py RUN CORPUS [--labels 12]

The labels of the table are not picked by hand: those with exactly one training document, in the
order of their ids, at even distances.

The measure: take what a label is described by as a query, a tf-idf vector in the run's own feature
space, and rank all dev documents by their cosine with it. An informative description puts the
documents that carry the label first. Labels with one training document, and with 1 to 9, are asked
about if a dev document carries them. Both go into experiments/results/<corpus>-keywords.json; the
run needs no more than ``depl fit CORPUS --out RUN --until descriptions``.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from measured import RESULTS, origin
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

import depl
from depl.core.corpus import Corpus
from depl.core.storage import write_json
from depl.sparse.weighting import idf

GROUPS = {"1": (1, 1), "1-9": (1, 9)}  # training documents of a label, from and to
TOP = 10
BLOCK = 256  # labels whose scores are in memory together
NAME = "name"


def main() -> None:
    """Print two markdown tables and keep what is in them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("corpus", type=Path, help="a folder with a dev split")
    parser.add_argument("--labels", type=int, default=12, help="rows of the table")
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    model = depl.Classifier.load(args.run)
    corpus = args.corpus.resolve().name
    dev = depl.read(args.corpus, splits=["dev"]).dev.aligned(model.labels)
    found = {"examples": examples(model, args.labels), "groups": measure(model, dev)}
    facts = origin(corpus)
    facts["command"] = f"python experiments/keyword_table.py runs/{corpus} data/{corpus}"
    write_json(args.results / f"{corpus}-keywords.json", facts | {"keywords": found})
    # The tables of the documentation are made from the file; these are the same.
    from keyword_blocks import example_table, measure_table

    print(example_table(found) + "\n\n" + measure_table(found))


def examples(model: depl.Classifier, n: int) -> list[dict[str, Any]]:
    """Labels that one training document carries, evenly spaced in the order of their ids."""
    once = sorted(np.flatnonzero(model.train_counts == 1), key=lambda i: model.labels[int(i)].id)
    picked = [int(once[i]) for i in np.linspace(0, len(once) - 1, min(n, len(once))).astype(int)]
    return [
        {
            "id": model.labels[j].id,
            "name": model.labels[j].name,
            "keywords": [term for term, _ in model.keywords[j]],
            "in_name": [term for term, _ in model.keywords[j] if term in name],
        }
        for j, name in zip(picked, name_terms(model, picked), strict=True)
    ]


def measure(model: depl.Classifier, dev: Corpus) -> dict[str, dict[str, Any]]:
    """For each group of labels, how well each kind of query finds their documents."""
    # Where cosines are equal, and mostly 0, the order must not be the corpus's own.
    dev = dev.subset(np.random.default_rng(0).permutation(len(dev)))
    X = model.features.transform(dev.texts)
    carriers = csc_array(dev.Y)
    asked = (model.train_counts >= 1) & (model.train_counts <= 9)
    asked &= dev.label_counts[: len(asked)] > 0
    labels = np.flatnonzero(asked)
    support = dev.label_counts[labels]
    scores = {"chance": chance(support, len(dev))}
    for kind, Q in queries(model, labels.tolist()).items():
        scores[kind] = np.array(list(_scores(Q, X, carriers, labels)))
    counts = model.train_counts[labels]
    groups = {}
    for group, (first, last) in GROUPS.items():
        inside = np.flatnonzero((counts >= first) & (counts <= last))
        groups[group] = {
            "labels": len(inside),
            "documents": len(dev),
            "relevant": round(float(support[inside].sum()) / max(1, len(inside)), 2),
            "queries": _summary({kind: table[inside] for kind, table in scores.items()}),
            "keywords": shares(model, labels[inside].tolist()),
        }
    return groups


def queries(model: depl.Classifier, labels: Sequence[int]) -> dict[str, csr_array]:
    """What each label is described by, in several ways; last, all that the SVM knows of it."""
    names = [model.labels[j].name for j in labels]
    keywords = [[term for term, _ in model.keywords[j]] for j in labels]
    words = [[term for term in terms if _has_letter(term)] for terms in keywords]
    texts = {
        NAME: names,
        "keywords": [" ".join(terms) for terms in keywords],
        "keywords, no numbers": [" ".join(terms) for terms in words],
        "name + keywords": _behind(names, keywords),
        "name + keywords, no numbers": _behind(names, words),
    }
    found = {kind: model.features.transform(listed) for kind, listed in texts.items()}
    return found | {"SVM, all weights": csr_array(model.svm.weights_[np.array(labels, np.intp)])}


def _behind(names: Sequence[str], additions: Sequence[Sequence[str]]) -> list[str]:
    return [" ".join([name, *terms]) for name, terms in zip(names, additions, strict=True)]


def _scores(
    Q: csr_array, X: csr_array, carriers: csc_array, labels: NDArray[np.integer]
) -> Iterator[tuple[float, ...]]:
    """Average precision, P@1 and R@10 of each query."""
    documents = csr_array(X.T)
    for start in range(0, len(labels), BLOCK):
        cosines = (Q[start : start + BLOCK] @ documents).toarray()
        for row, j in zip(cosines, labels[start : start + BLOCK], strict=True):
            relevant = carriers.indices[carriers.indptr[j] : carriers.indptr[j + 1]]
            yield ranked(row, relevant)


def ranked(scores: NDArray[np.floating], relevant: NDArray[np.integer]) -> tuple[float, ...]:
    """Average precision, P@1 and R@10 of documents ranked by score, ties by position.

    Examples
    --------
    >>> ranked(np.array([0.1, 0.9, 0.5]), np.array([1, 2]))
    (1.0, 1.0, 1.0)
    >>> ranked(np.array([0.1, 0.9, 0.5]), np.array([0]))
    (0.3333333333333333, 0.0, 1.0)
    """
    mine = scores[relevant]
    # The place of a document: those above it, and its equals that stand before it.
    above = [np.count_nonzero(scores > s) for s in mine]
    equals = [np.count_nonzero(scores[:i] == s) for i, s in zip(relevant, mine, strict=True)]
    places = np.sort(np.add(above, equals)) + 1
    precision = np.arange(1, len(places) + 1) / places
    return float(precision.mean()), float(places[0] == 1), float((places <= TOP).mean())


def chance(support: NDArray[np.integer], n: int) -> NDArray[np.float64]:
    """Expected average precision, P@1 and R@10 of a random order of n documents.

    The relevant document at a place has (r - 1)/(n - 1) others before it, for each place before.

    Examples
    --------
    >>> chance(np.array([1, 3]), 3).round(3).tolist()
    [[0.611, 0.333, 1.0], [1.0, 1.0, 1.0]]
    """
    harmonic = math.fsum(1 / i for i in range(1, n + 1))
    others = (support - 1) / max(n - 1, 1)
    precision = (harmonic + others * (n - harmonic)) / n
    return np.column_stack([precision, support / n, np.full(len(support), min(1, TOP / n))])


def _summary(scores: dict[str, NDArray[np.float64]]) -> dict[str, dict[str, float]]:
    """Means in percent; and how a query's average precision differs from that of the name."""
    found = {}
    for kind, table in scores.items():
        means = 100 * table.mean(axis=0) if len(table) else np.zeros(3)
        found[kind] = {
            f: round(float(v), 2) for f, v in zip(("MAP", "P@1", f"R@{TOP}"), means, strict=True)
        }
        if kind not in ("chance", NAME) and len(table):
            gain = table[:, 0] - scores[NAME][:, 0]
            found[kind] |= {
                "gain": round(100 * float(gain.mean()), 2),
                "gain_error": round(100 * float(gain.std() / math.sqrt(len(gain))), 2),
                "better": round(100 * float((gain > 0).mean()), 1),
                "worse": round(100 * float((gain < 0).mean()), 1),
            }
    return found


def shares(model: depl.Classifier, labels: Sequence[int]) -> dict[str, float]:
    """What the labels' keywords are like, in percent of keywords and of labels."""
    names = name_terms(model, labels)
    keywords = [[term for term, _ in model.keywords[j]] for j in labels]
    each = list(zip(keywords, names, strict=True))
    return {
        "in_name": _percent(t in name for terms, name in each for t in terms),
        "numbers": _percent(not _has_letter(t) for terms in keywords for t in terms),
        "labels_with_one_in_name": _percent(not name.isdisjoint(terms) for terms, name in each),
        "labels_with_unknown_name": _percent(not name for name in names),
    }


def name_terms(model: depl.Classifier, labels: Sequence[int]) -> list[set[str]]:
    """The words of each label's name that a training document has.

    The words of names are terms of a run even where no document has them.
    """
    features = model.features
    rows = features.transform([model.labels[j].name for j in labels])
    found = features.idf_ < idf(model.n_train, np.zeros(1))
    ends = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    return [{features.terms_[t] for t in rows.indices[a:b] if found[t]} for a, b in ends]


def _has_letter(term: str) -> bool:
    return any(map(str.isalpha, term))


def _percent(facts: Iterable[bool]) -> float:
    listed = list(facts)
    return round(100 * sum(listed) / max(1, len(listed)), 2)


if __name__ == "__main__":
    main()
