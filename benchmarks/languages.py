r"""What it is worth that words are found in writing without spaces (``depl.sparse.writing``).

    python benchmarks/languages.py DATA/debtags [--languages ja,zh_CN]

needs Debian with apt. Documents are the translated descriptions of the packages of debtags, and
labels their tags; 1,000 at random, or a fifth, judge. For each language there is a row with words
as they are found, and one with every run of letters for a word: of the SVM alone, and of all parts.
The SVM on characters, a part of runs on at most 10,000 documents, reads phrases, too; the last
columns are without it, as in larger runs.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from pathlib import Path

import numpy as np

import depl
from debian_corpora import apt_list, paragraphs
from depl.evaluation.scores import evaluate
from depl.sparse import words, writing

_MOST = 1_000  # documents that judge
_PARTS = ("SVM", "all", "all but characters")
_SCORES = ("P@1", "P@5", "PSP@5", "R@10")


def main() -> None:
    """Print a markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--languages", default="ja,zh_CN")
    args = parser.parse_args()
    splits = depl.read(args.corpus, splits=["train", "dev"])
    print(f"| | | {' | '.join(f'{part}, {x}' for part in _PARTS for x in _SCORES)} |")
    print("| --- " * (2 + len(_PARTS) * len(_SCORES)) + "|")
    for language in args.languages.split(","):
        corpus = translated(splits, language)
        for name, found in (("words", writing.words), (r"`\w\w+`", runs_of_letters)):
            words.words = found  # type: ignore[attr-defined]
            cells = [f"{x:.1f}" for x in measured(corpus)]
            print(f"| {language}, {len(corpus):,} | {name} | {' | '.join(cells)} |", flush=True)


def runs_of_letters(text: str) -> list[str]:
    """What words were before."""
    return re.findall(r"\w\w+", text)


def translated(splits: depl.Dataset, language: str) -> depl.Corpus:
    """The documents of a corpus of packages that have a description in the language."""
    with tempfile.TemporaryDirectory() as work:
        of_apt = apt_list(Path(work), f"Translation-{language.replace('_', '%5f')}", language)
    field = f"Description-{language}"
    texts = {x["Package"]: x[field] for x in paragraphs(of_apt) if x.get(field)}
    ids, found, rows = [], [], []
    for split in (splits.train, splits.dev):
        for i, name in enumerate(split.ids):
            if name in texts:
                ids.append(name)
                found.append(texts[name])
                rows.append(split.Y[[i]].indices.tolist())
    return depl.Corpus.from_rows(ids, found, rows, splits.train.labels)


def measured(corpus: depl.Corpus) -> list[float]:
    """The scores of a run on most of the documents, in the order of the table."""
    order = np.random.default_rng(0).permutation(len(corpus))
    n = min(_MOST, len(corpus) // 5)
    judges, train = corpus.subset(np.sort(order[:n])), corpus.subset(np.sort(order[n:]))
    scores = []
    with tempfile.TemporaryDirectory() as folder:
        model = depl.fit(train, out=folder, config="sparse")
        alone = model.all_rankings(judges.texts, 10)
        fewer = depl.Config.load("sparse", ["characters.documents=0"])
        without = depl.fit(train, out=folder, config=fewer).predict(judges.texts, k=10)
        for ranking in (alone["svm"], alone["fusion"], without):
            report = evaluate(ranking, judges, train_counts=train.label_counts, n_train=len(train))
            scores += [report.scores[x] for x in _SCORES]
    return scores


if __name__ == "__main__":
    main()
