"""How many decisions a review saves: the order of `depl review` against documents at random.

    python experiments/review.py CORPUS --out FOLDER [--judge N]

Fits a run of the sparse recipe on some training documents; others wait in a queue. A reviewer who
knows their true labels accepts what is right of the suggestions shown (those above the threshold
of the best F1), rejects what is wrong and adds what is missing; each is one decision. After every
``--step`` documents the run learns (`depl learn`), what is left is ordered again, and the run
labels all documents of the dev split or, to compare orders, ``--judge`` further training documents.

The same with documents at random, and by an oracle that knows the labels of what waits: it takes
the documents with the most rare labels per decision that the run does not suggest and has few
documents of. The tail is the labels that 1 to 9 of all documents, reviewed or not, carry: the same
for all orders. All of it is done for several splits into documents of the run and documents that
wait, each with a random order of its own, and with the oracle for ``--oracles`` of them; intervals
are over splits and labels (bootstrap).

Continues where it was stopped. Writes review.svg into FOLDER and prints tables.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from review_curves import Followed, Lessons, print_lessons, print_report, review_figure
from scipy.sparse import csr_array

import depl
from depl.core.corpus import Corpus, Dataset
from depl.evaluation.metrics import Hits, f1_at_k, precision_at_k
from depl.labels.decisions import Decision
from depl.labels.feedback import FeedbackStore
from depl.labels.review_queue import Waiting
from depl.model import review
from depl.pipeline.fit import fit
from depl.pipeline.learn import learn
from depl.run.folder import Run

RARE = 10  # labels of the tail are carried by fewer documents
ROUNDS = "review.json"  # what was reached, in the folder of a run
FEW = 5  # documents of a label after which the oracle looks for other labels


def main() -> None:
    """Follow all orders, and print what they reach."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--start", type=int, default=1500, help="documents of the run")
    parser.add_argument("--pool", type=int, default=7000, help="documents that wait")
    parser.add_argument("--judge", type=int, help="measure on so many training documents, not dev")
    parser.add_argument("--step", type=int, default=600, help="documents after which it learns")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--oracles", type=int, default=1, help="splits for the oracle, too")
    args = parser.parse_args()
    data = depl.read(args.corpus, splits=["train"] if args.judge else ["train", "dev"])
    orders: dict[str, Order] = {"review": by_review, "random": at_random, "oracle": by_oracle}
    found: dict[str, list[Followed]] = {name: [] for name in orders}
    lessons: list[Lessons] = []
    for split in range(args.splits):
        setting = Setting.of(args, data, split)
        for name, order in orders.items():
            if order is by_oracle and split >= args.oracles:
                continue
            track = Track(setting, name)
            while len(track.rounds) <= args.rounds:
                track.go_on(order, args.step)
            found[name].append(track.followed)
            if order is at_random:
                lessons.append(track.lessons())
    print_report(found)
    print_lessons(lessons)
    (args.out / "review.svg").write_text(review_figure(found))


class Setting(NamedTuple):
    """The same for all orders: documents that wait, those to measure on, and the tail."""

    out: Path
    pool: Corpus
    test: Corpus
    tail: NDArray[np.bool_]

    @classmethod
    def of(cls, args: argparse.Namespace, data: Dataset, split: int) -> Setting:
        """As the arguments say; the run is fitted unless it was."""
        out = args.out / f"split-{split}"
        sizes = np.cumsum([args.start, args.pool, args.judge or 0])
        rows = np.random.default_rng(split).permutation(len(data.train))[: sizes[-1]]
        known, pool, judge = (data.train.subset(x) for x in np.split(rows, sizes[:-1]))
        counts = known.label_counts + pool.label_counts
        tail = (counts > 0) & (counts < RARE)
        setting = cls(out, pool, judge if args.judge else data.dev, tail)
        if not (out / "start" / ROUNDS).exists():
            fit(known, out / "start")
            first = Round([], 0, 0, 0, *setting.measure(depl.Classifier.load(out / "start")))
            (out / "start" / ROUNDS).write_text(json.dumps([first]))
        return setting

    def measure(self, model: depl.Classifier) -> tuple[float, list[float]]:
        """P@5, and the F1@5 of each label of the tail, in percent."""
        hits = Hits.of(model.predict(self.test.texts, k=5).indices, self.test.Y)
        f1 = 100 * f1_at_k(hits, 5)[self.tail]
        return 100 * precision_at_k(hits, 5), f1.round(3).tolist()


class Moment:
    """What is known before a round: the run so far, and which documents are left."""

    def __init__(self, setting: Setting, model: depl.Classifier, done: list[int]) -> None:
        self.setting, self.model, self.done = setting, model, done
        self.left = np.setdiff1d(np.arange(len(setting.pool)), done)


class Round(NamedTuple):
    """Documents reviewed, decisions of each kind, P@5, and the F1 of each label of the tail."""

    reviewed: list[int]
    accepted: int
    added: int
    rejected: int
    precision: float
    f1: list[float]


Order = Callable[[Moment], list[int]]
"""The documents that are left, by their places in the pool; those that come next first."""


def by_review(moment: Moment) -> list[int]:
    """As `depl review` orders them."""
    done = set(moment.done)
    waiting = [
        Waiting(i, "", "", *lesson, "done" if i in done else "open", i not in done)
        for i, lesson in enumerate(review.lessons(moment.model, moment.setting.pool.texts))
    ]
    return [x.number for x in review.ordered(moment.model, waiting)]


def at_random(moment: Moment) -> list[int]:
    """As they are: the split is random."""
    return moment.left.tolist()


def by_oracle(moment: Moment) -> list[int]:
    """The most rare labels per decision that are not suggested and have few documents."""
    setting = moment.setting
    P = _probabilities(moment.model, [setting.pool.texts[i] for i in moment.left])
    Y = csr_array(setting.pool.Y[moment.left])
    counts, shown = moment.model.train_counts.copy(), P.data >= _threshold(moment.model)
    suggested = csr_array((shown, P.indices, P.indptr), shape=P.shape, dtype=np.int64)
    suggested.eliminate_zeros()
    right = csr_array(suggested.multiply(Y))
    decisions = np.diff(Y.indptr) + np.diff(suggested.indptr) - right.sum(axis=1)
    wanted = csr_array(Y - right)
    wanted.eliminate_zeros()
    rare = [own[setting.tail[own]] for own in np.split(wanted.indices, wanted.indptr[1:-1])]
    gain = np.array([np.sum(counts[x] < FEW) for x in rare]) / np.maximum(1, decisions)
    order: list[int] = []
    while len(order) < len(rare):
        best = int(np.argmax(gain))
        now = np.sum(counts[rare[best]] < FEW) / max(1, decisions[best])
        if now < gain[best]:  # gains only fall: those that were computed earlier are bounds
            gain[best] = now
            continue
        order.append(best)
        gain[best] = -1.0
        counts[Y.indices[Y.indptr[best] : Y.indptr[best + 1]]] += 1
    return moment.left[order].tolist()


class Track:
    """One order of the same documents, as far as it was followed; kept in a folder of its own."""

    def __init__(self, setting: Setting, name: str) -> None:
        self.setting = setting
        self.path = setting.out / name
        if not self.path.exists():
            shutil.copytree(setting.out / "start", self.path)
        self.kept = self.path / ROUNDS
        self.rounds = [Round(*x) for x in json.loads(self.kept.read_text())]

    @property
    def followed(self) -> Followed:
        """What it reached after every round."""
        return Followed(
            np.array([len(x.reviewed) for x in self.rounds]),
            np.array([x[1:4] for x in self.rounds]),
            np.array([x.precision for x in self.rounds]),
            np.array([x.f1 for x in self.rounds]),
        )

    def lessons(self) -> Lessons:
        """What became of every label of the tail."""
        setting, (first, *_, last) = self.setting, self.rounds
        model = depl.Classifier.load(setting.out / "start")
        P = _probabilities(model, [setting.pool.texts[i] for i in last.reviewed])
        Y = csr_array(setting.pool.Y[last.reviewed])
        expected = csr_array(P.multiply(Y)).max(axis=0).toarray().ravel()
        return Lessons(
            model.train_counts[setting.tail],
            np.bincount(Y.indices, minlength=len(setting.tail))[setting.tail],
            expected[setting.tail],
            np.array(first.f1),
            np.array(last.f1),
        )

    def go_on(self, order: Order, step: int) -> None:
        """Review some more documents, learn from them, measure."""
        last, model = self.rounds[-1], depl.Classifier.load(self.path)
        chosen = order(Moment(self.setting, model, last.reviewed))[:step]
        said = np.array(last[1:4]) + self._decide(model, chosen)
        done = [*last.reviewed, *chosen]
        learn(Run.open(self.path))
        model = depl.Classifier.load(self.path)
        self.rounds.append(Round(done, *said.tolist(), *self.setting.measure(model)))
        self.kept.write_text(json.dumps(self.rounds))

    def _decide(self, model: depl.Classifier, chosen: list[int]) -> NDArray[np.int64]:
        """What the reviewer says about some documents; returns how many of each kind that takes."""
        store, pool, total = FeedbackStore(self.path, ""), self.setting.pool, np.zeros(3, np.int64)
        P, least = _probabilities(model, [pool.texts[i] for i in chosen]), _threshold(model)
        for i, first, last in zip(chosen, P.indptr[:-1], P.indptr[1:], strict=True):
            true = {pool.labels[j].id for j in pool.Y[[i]].indices.tolist()}
            places = P.indices[first:last][P.data[first:last] >= least]
            shown = {model.labels[j].id for j in places.tolist()}
            kinds = {"accepted": true & shown, "added": true - shown, "rejected": shown - true}
            said = [Decision(x, kind) for kind, labels in kinds.items() for x in sorted(labels)]
            store.add(pool.texts[i], said, id=pool.ids[i])
            total += [len(labels) for labels in kinds.values()]
        return total


def _threshold(model: depl.Classifier) -> float:
    """The probability from which suggestions are shown."""
    return (model.thresholds.best_f1 or 0.0) if model.thresholds else 0.5


def _probabilities(model: depl.Classifier, texts: list[str]) -> csr_array:
    ranking = model.predict(texts, k=30)
    there = ranking.indices >= 0
    ends = np.append(0, np.cumsum(there.sum(axis=1)))
    pairs = ranking.scores[there], ranking.indices[there], ends
    return csr_array(pairs, shape=(len(texts), len(model.labels)))


if __name__ == "__main__":
    main()
