"""How many decisions a review saves: the order of `depl review` against documents at random.

    python experiments/review.py CORPUS --out FOLDER [--start 800] [--pool 1200] [--test 1000]

Fits a run of the sparse recipe on some training documents; others wait in a queue. A reviewer who
knows their true labels accepts what is right of the suggestions shown (those above the threshold
of the best F1), rejects what is wrong and adds what is missing. After every ``--step`` documents
the run learns (`depl learn`), what is left is ordered again, and the run labels documents of the
dev split. The same with documents at random, several times. The tail is the labels that 1 to 9 of
all documents, reviewed or not, carry: the same for all orders.

Every call does one round of every order and continues where the last one stopped; with ``--all`` it
does all rounds. Writes review.json into FOLDER and prints a markdown table.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import numpy as np

import depl
from depl.evaluation.scores import evaluate_known
from depl.labels.feedback import Decision, FeedbackStore
from depl.labels.review_queue import Waiting
from depl.model.review import lessons, ordered
from depl.pipeline.fit import fit
from depl.pipeline.learn import learn
from depl.run.folder import Run

TAIL = "1-9"
REVIEW = "review"


def main() -> None:
    """Do one round, or all, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--start", type=int, default=800)
    parser.add_argument("--pool", type=int, default=1200)
    parser.add_argument("--test", type=int, default=1000)
    parser.add_argument("--step", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=3, help="orders at random")
    parser.add_argument("--all", action="store_true", help="all rounds, not one")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    data = depl.read(args.corpus, splits=["train", "dev"])
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(data.train))[: args.start + args.pool]
    known, pool = data.train.subset(rows[: args.start]), data.train.subset(rows[args.start :])
    test = data.dev.subset(rng.permutation(len(data.dev))[: args.test])
    counts = known.label_counts + pool.label_counts
    if not (args.out / "start").exists():
        fit(known, args.out / "start")
    names = [REVIEW, *(f"random {seed}" for seed in range(args.seeds))]
    tracks = [Track(args.out, name, pool, test, counts, len(known)) for name in names]
    for track in tracks:
        while len(track.rounds) <= args.rounds:
            track.go_on(args.step)
            if not args.all:
                break
    print_table(tracks)


class Track:
    """One order of the same documents, as far as it was followed; kept in a folder of its own."""

    def __init__(self, out, name, pool, test, counts, n_known) -> None:
        self.name, self.pool, self.test, self.counts = name, pool, test, counts
        self.n_documents = n_known + len(pool)
        self.path = out / name.replace(" ", "-")
        if not self.path.exists():
            shutil.copytree(out / "start", self.path)
        self.kept = self.path / "review.json"
        self.rounds = json.loads(self.kept.read_text()) if self.kept.exists() else []

    def go_on(self, step: int) -> None:
        """Review some more documents, learn from them, measure; the first round only measures."""
        done = self.rounds[-1]["reviewed"] if self.rounds else []
        decisions = self.rounds[-1]["decisions"] if self.rounds else 0
        if self.rounds:
            model = depl.Classifier.load(self.path)
            chosen = self._next(model, done, step)
            decisions += self._decide(model, chosen)
            done = [*done, *chosen]
            learn(Run.open(self.path))
        model = depl.Classifier.load(self.path)
        report = evaluate_known(
            model.predict(self.test.texts, k=5),
            self.test,
            labels=model.labels,
            train_counts=self.counts,
            n_train=self.n_documents,
        )
        found = {"tail": report.bands[TAIL]["macroF1@5"], "P@5": report.scores["P@5"]}
        scores = {name: round(float(x), 3) for name, x in found.items()}
        self.rounds.append({"reviewed": done, "decisions": decisions} | scores)
        self.kept.write_text(json.dumps(self.rounds))

    def _next(self, model: depl.Classifier, done: list[int], step: int) -> list[int]:
        left = [i for i in range(len(self.pool)) if i not in set(done)]
        if self.name != REVIEW:
            seed = int(self.name.rpartition(" ")[2])
            order = np.random.default_rng(seed + 1).permutation(len(self.pool)).tolist()
            return [i for i in order if i not in set(done)][:step]
        # The labels and words of what was decided are in the run's counts by now.
        found = lessons(model, [self.pool.texts[i] for i in left])
        pairs = zip(left, found, strict=True)
        waiting = [Waiting(i, "", "", *lesson, "open", True) for i, lesson in pairs]
        return [x.number for x in ordered(model, waiting)[:step]]

    def _decide(self, model: depl.Classifier, chosen: list[int]) -> int:
        """What the reviewer says about some documents; returns how many decisions that takes."""
        store = FeedbackStore(self.path, "")
        ranking = model.predict([self.pool.texts[i] for i in chosen], k=30)
        least = model.thresholds.best_f1 if model.thresholds else 0.5
        total = 0
        for i, places, scores in zip(chosen, ranking.indices, ranking.scores, strict=True):
            labels = self.pool.labels
            true = {labels[int(j)].id for j in self.pool.Y[[i]].indices}
            shown = {model.labels[int(j)].id for j in places[scores >= (least or 0.0)] if j >= 0}
            said = [Decision(x, "accepted" if x in shown else "added") for x in sorted(true)]
            said += [Decision(x, "rejected") for x in sorted(shown - true)]
            store.add(self.pool.texts[i], said, id=self.pool.ids[i])
            total += len(said)
        return total


def print_table(tracks: list[Track]) -> None:
    """Scores by documents reviewed, and which share of the documents the review needs."""
    review, *others = tracks
    n = min(len(track.rounds) for track in tracks)
    print("| documents | decisions | tail | P@5 | decisions at random | tail | P@5 |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    at_random = []
    for i in range(n):
        own = review.rounds[i]
        mean = {
            x: float(np.mean([track.rounds[i][x] for track in others]))
            for x in ("decisions", "tail", "P@5")
        }
        at_random.append({"documents": len(own["reviewed"])} | mean)
        print(
            f"| {len(own['reviewed'])} | {own['decisions']} | {own['tail']:.2f} | {own['P@5']:.2f} "
            f"| {mean['decisions']:.0f} | {mean['tail']:.2f} | {mean['P@5']:.2f} |"
        )
    tails = [x["tail"] for x in review.rounds[:n]]
    for unit in ("documents", "decisions"):
        spent = [
            len(x["reviewed"]) if unit == "documents" else x["decisions"] for x in review.rounds[:n]
        ]
        for row in at_random[1:]:
            if row["tail"] <= max(tails):
                needed = np.interp(row["tail"], np.maximum.accumulate(tails), spent)
                share = needed / row[unit]
                print(f"tail {row['tail']:.2f}: {needed:.0f} {unit}, {share:.0%} of random order")


if __name__ == "__main__":
    main()
