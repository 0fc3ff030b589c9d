"""How much of the gain of retraining is learnt from feedback that arrives in portions.

    python experiments/learning.py CORPUS --out FOLDER [--documents 4000] [--portions 10]
        [--config sparse] [--others 3000] [--swap] [--people all]

Takes every n-th training document in the order of their ids and fits a run on the first half. The
second half arrives in portions: the suggestions for each document are accepted or rejected, and
missing labels added. After each of them, three runs
label the next portion: the first one as it was (stale), the same after ``depl learn`` (learned),
and one fitted on all documents so far (retrained). Bands and propensities are those of all
documents so far, for all three. Seconds are of the processor: what others do on the machine does
not count.

Writes learning.json into FOLDER after every portion, and prints the means of all portions. A second
call continues where the first stopped; ``--most`` stops after so many portions, and with ``--every
9`` only the first and the tenth are retrained and measured. A portion is small:
with ``--others`` the runs after the last one also label so many documents of the later half which
none of them has seen. With ``--swap`` these are labelled by the learned run with one piece of the
retrained one at a time, too: what learning lacks is in the pieces that help. ``--people judge``:
people who add nothing, and with ``accept`` none who rejects anything.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Collection
from itertools import pairwise
from pathlib import Path

import numpy as np

import depl
from depl.evaluation.scores import evaluate_known
from depl.labels.decisions import VERDICTS, Decision
from depl.pipeline.fit import fit
from depl.pipeline.learn import learn
from depl.run.folder import Run

MEASURES = ("P@5", "PSP@5", "tail", "ECE")
PEOPLE = {"all": VERDICTS, "judge": ("accepted", "rejected"), "accept": ("accepted",)}
TAIL = "1-9"  # the band whose macro-F1@5 is the tail's


def main() -> None:
    """Print a markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=4000)
    parser.add_argument("--portions", type=int, default=10)
    parser.add_argument("--most", type=int, default=1_000, help="portions to do in this call")
    parser.add_argument("--every", type=int, default=1, help="retrain after the 1st, 1+n-th, ...")
    parser.add_argument("--others", type=int, default=0, help="documents to measure the last on")
    parser.add_argument("--people", choices=PEOPLE, default="all", help="what they tell")
    parser.add_argument("--swap", action="store_true", help="with --others: which piece lacks what")
    parser.add_argument("--config", default="sparse", help="sparse, cpu-frozen or small-gpu")
    parser.add_argument("--set", nargs="*", default=[], help="settings, as SECTION.KEY=VALUE")
    args = parser.parse_args()
    config = depl.Config.load(args.config, args.set)
    train = depl.read(args.corpus, splits=["train"]).train
    order = np.argsort(np.array(train.ids))
    some = np.linspace(0, len(order) - 1, min(args.documents, len(order))).astype(int)
    corpus = train.subset(order[some])
    half, *rest = portions(len(corpus), args.portions)

    kept = args.out / "learning.json"
    rows = json.loads(kept.read_text()) if kept.exists() else []
    stale = args.out / "stale"
    if not rows:
        shutil.rmtree(args.out, ignore_errors=True)
        fit(corpus.subset(half), stale, config)
    warm_up(corpus, args.out / "warm-up", config)
    done = rows[-1]["portion"] if rows else 0
    for number, (arrived, following) in list(enumerate(pairwise(rest), 1))[done:][: args.most]:
        learned, again = args.out / f"learned-{number}", args.out / f"retrained-{number}"
        for path in (learned, again):
            shutil.rmtree(path, ignore_errors=True)
        before = args.out / f"learned-{number - 1}" if number > 1 else stale
        run = Run(shutil.copytree(before, learned))
        give(run, corpus.subset(arrived), PEOPLE[args.people])
        seen = corpus.subset(np.concatenate([half, *rest[:number]]))
        _, learning = timed(lambda run=run: learn(run))
        if (number - 1) % args.every:
            continue
        _, retraining = timed(lambda seen=seen, to=again: fit(seen, to, config))
        test = corpus.subset(following)
        for name, path, seconds in (
            ("stale", stale, 0.0),
            ("learned", learned, learning),
            ("retrained", again, retraining),
        ):
            found = scores(depl.Classifier.load(path), seen, test)
            rows.append({"portion": number, "run": name, **found, "seconds": round(seconds, 2)})
        kept.write_text(json.dumps(rows, indent=2) + "\n")
    number = rows[-1]["portion"]
    print_table(rows, f"mean of {len(rows) // 3} portions")
    if args.others:
        later = np.setdiff1d(order[len(order) // 2 :], order[some])
        drawn = np.random.default_rng(0).permutation(later)[: args.others]
        seen, test = corpus.subset(np.concatenate([half, *rest[:number]])), train.subset(drawn)
        names = {"stale": "stale", **{x: f"{x}-{number}" for x in ("learned", "retrained")}}
        models = {x: depl.Classifier.load(args.out / name) for x, name in names.items()}
        wide = [{**row, **scores(models[row["run"]], seen, test)} for row in rows[-3:]]
        print_table(wide, f"{len(test)} other documents, after {number} portions")
        if args.swap:
            print_swaps(models["learned"], models["retrained"], seen, test)


def portions(n: int, fed: int) -> list[np.ndarray]:
    """The first half, the portions that are fed, and one to measure the last of them on."""
    return [np.arange(n // 2), *np.array_split(np.arange(n // 2, n), fed + 1)]


def warm_up(corpus: depl.Corpus, path: Path, config: depl.Config) -> None:
    """Do all of it once on a little, so that nothing is compiled or loaded when it is timed."""
    shutil.rmtree(path, ignore_errors=True)
    run = fit(corpus.subset(np.arange(200)), path, config)
    give(run, corpus.subset(np.arange(200, 220)))
    learn(run)


def timed(act):
    """What a function gives, and the seconds that the processor took for it."""
    start = time.process_time()
    return act(), time.process_time() - start


def give(run: Run, corpus: depl.Corpus, verdicts: Collection[str] = VERDICTS) -> None:
    """Accept and reject the first five suggestions of every document, and add what is missing.

    Only decisions of these verdicts are given.
    """
    model = depl.Classifier.load(run.path)
    shown = model.predict(corpus.texts, k=5).rows(model.labels)
    for id, text, row, suggested in zip(corpus.ids, corpus.texts, corpus.Y, shown, strict=True):
        true = dict.fromkeys(corpus.labels[int(j)].id for j in row.indices)
        decisions = [
            Decision(label.id, "accepted" if label.id in true else "rejected", float(p))
            for label, p in suggested
        ]
        missing = [x for x in true if x not in {label.id for label, _ in suggested}]
        decisions += [Decision(x, "added") for x in missing]
        decisions = [x for x in decisions if x.verdict in verdicts]
        if decisions:
            model.feedback.keep(text, decisions, id=id)


def scores(model: depl.Classifier, seen: depl.Corpus, test: depl.Corpus) -> dict[str, float]:
    """The measures of one run on one portion, in percent."""
    return measures(model.predict(test.texts, k=10), model.labels, seen, test)


def measures(
    ranking: depl.Ranking, labels: depl.LabelSet, seen: depl.Corpus, test: depl.Corpus
) -> dict[str, float]:
    """The measures of a ranking of the test documents, in percent."""
    report = evaluate_known(
        ranking,
        test,
        labels=labels,
        train_counts=seen.label_counts,
        n_train=len(seen),
        probabilities=True,
    )
    found = {"P@5": report.scores["P@5"], "PSP@5": report.scores["PSP@5"]}
    found["tail"] = report.bands[TAIL]["macroF1@5"]
    found["ECE"] = report.scores["ECE@5"]
    return {name: round(float(value), 2) for name, value in found.items()}


def print_swaps(
    learned: depl.Classifier, retrained: depl.Classifier, seen: depl.Corpus, test: depl.Corpus
) -> None:
    """The learned run with one piece of the retrained one at a time."""
    mine, theirs = learned.parts(test.texts), retrained.parts(test.texts)
    pieces = {"": (mine, learned.fusion)}
    pieces |= {name: ({**mine, name: theirs[name]}, learned.fusion) for name in mine}
    pieces |= {"all parts": (theirs, learned.fusion), "fusion": (mine, retrained.fusion)}
    print("| learned, but from the retrained run | " + " | ".join(MEASURES) + " |")
    print("|" + " --- |" * (1 + len(MEASURES)))
    for name, (parts, fusion) in pieces.items():
        ranking = fusion.rank(parts, learned.train_counts, 10, facts=learned.state.facts)
        found = measures(ranking, learned.labels, seen, test)
        print(f"| {name or 'nothing'} | " + " | ".join(f"{found[x]:.2f}" for x in MEASURES) + " |")


def print_table(rows: list[dict], what: str) -> None:
    """The means of the rows, and the share of the gain of retraining that learning reaches."""
    columns = (*MEASURES, "seconds")
    means = {
        name: {x: float(np.mean([r[x] for r in rows if r["run"] == name])) for x in columns}
        for name in ("stale", "learned", "retrained")
    }
    print(f"| {what} | " + " | ".join(columns) + " |")
    print("|" + " --- |" * (1 + len(columns)))
    for name, row in means.items():
        print(f"| {name} | " + " | ".join(f"{row[x]:.2f}" for x in columns) + " |")
    stale, learned, retrained = means.values()
    for x in MEASURES[:3]:
        gain, whole = learned[x] - stale[x], retrained[x] - stale[x]
        print(f"{x}: learning gains {gain:.2f}, retraining {whole:.2f} ({gain / whole:.0%})")
    print(f"time: {learned['seconds'] / retrained['seconds']:.1%} of retraining")


if __name__ == "__main__":
    main()
