"""How well labels are found that a run never saw in training, added by name and by examples.

    python experiments/new_labels.py CORPUS --out FOLDER [--labels 200] [--config sparse]
        [--documents 2500] [--limits]

Labels are held out of training by a rule: drawn at random, by a seed, among those with at least
six training documents and one in the dev split. A run is fitted without them (their documents
stay, without these labels). Then they are added to it: by name alone, and with up to 1, 2, 3, 5 and
10 of the training documents that carry them; each time the dev documents are labelled again. A run
that was fitted with them shows what training would give. Only these labels are scored.

"first" is how often no label comes before the new one for its own example documents, labels that
have the same example left aside. --documents takes so many of the training documents at random, and
at most as many of the dev split.

--limits tells what is possible with five examples of each: a run that is fitted on all documents,
where only these five carry the label; and what is added, had it been told which share of the dev
documents carries each label. It then gives every label the odds that make its probabilities add up
to that. "R@5 of new" is that of the new labels alone, as if there were no others.

Writes new_labels.json into FOLDER; the runs stay there, too, so that a second call is quick.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit, logit

import depl

STEPS = (0, 1, 2, 3, 5, 10)  # example documents a label
LEAST = 6  # training documents that a label must have to be held out
LIMIT = 5  # examples whose limits are asked for
COLUMNS = ("R@5", "R@10", "macroF1@5", "first", "P@5 of all", "R@5 of new", "CPU seconds to add")


def main() -> None:
    """Print a markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--labels", type=int, default=200)
    parser.add_argument("--config", default="sparse", help="sparse, cpu-frozen or small-gpu")
    parser.add_argument("--documents", type=int, help="of the training split; all by default")
    parser.add_argument("--limits", action="store_true", help="what is possible with 5 examples")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.config != "sparse":
        encode_once()
    data = depl.read(args.corpus, splits=["train", "dev"])
    config = depl.Config.load(args.config)
    rng = np.random.default_rng(args.seed)
    train, dev = some(data.train, args.documents, rng), some(data.dev, args.documents, rng)
    usable = np.flatnonzero((train.label_counts >= LEAST) & (dev.label_counts > 0))
    held_out = np.sort(rng.choice(usable, min(args.labels, len(usable)), replace=False))
    new = [train.labels[int(j)] for j in held_out]
    by_label = train.Y.tocsc()
    carriers = [rng.permutation(by_label[:, [j]].indices)[: max(STEPS)] for j in held_out]

    # What a call that was interrupted has added.
    shutil.rmtree(args.out / "without" / "labels", ignore_errors=True)
    model = depl.fit(without(train, held_out), out=args.out / "without", config=config)
    rows = {"not added": scores(model, dev, new)}
    for n in STEPS:
        examples = {
            label.id: [train.texts[i] for i in rows_of[:n]]
            for label, rows_of in zip(new, carriers, strict=True)
        }
        start = time.process_time()
        model.add_labels(new, examples=examples if n else None)
        seconds = time.process_time() - start
        name = "by name" + (f" and {n} example{'s' * (n > 1)}" if n else "")
        rows[name] = scores(model, dev, new) | {"CPU seconds to add": round(seconds, 1)}
        if n:
            rows[name]["first"] = first_for_own(model, examples)
        if args.limits and n == LIMIT:
            rows[f"{name}, of known share"] = told(model, dev, new)
        model.undo()
    if args.limits:
        few = only(train, held_out, [rows_of[:LIMIT] for rows_of in carriers])
        trained = depl.fit(few, out=args.out / "few", config=config)
        rows[f"trained with {LIMIT} of each"] = scores(trained, dev, new)
    trained = depl.fit(train, out=args.out / "with", config=config)
    rows["trained with them"] = scores(trained, dev, new)

    facts = {"config": args.config, "labels": [x.id for x in new], "scores": rows}
    (args.out / "new_labels.json").write_text(json.dumps(facts, indent=2) + "\n")
    print(f"| {len(new)} labels | " + " | ".join(COLUMNS) + " |")
    print("|" + " --- |" * (len(COLUMNS) + 1))
    for name, row in rows.items():
        print(f"| {name} | " + " | ".join(str(row.get(x, "")) for x in COLUMNS) + " |")


def encode_once() -> None:
    """Let every encoder keep the vectors of texts that it has encoded: each step asks again."""
    import torch

    from depl.neural.retriever import TextRetriever

    encode, known = TextRetriever.encode, defaultdict(dict)

    def remembered(self, texts):
        own = known[id(self.retriever.encoder)]
        new = [text for text in dict.fromkeys(texts) if text not in own]
        if new:
            own.update(zip(new, encode(self, new), strict=True))
        return torch.stack([own[text] for text in texts]) if texts else encode(self, texts)

    TextRetriever.encode = remembered


def some(corpus: depl.Corpus, n: int | None, rng: np.random.Generator) -> depl.Corpus:
    """At most n documents, at random."""
    if n is None or n >= len(corpus):
        return corpus
    return corpus.subset(np.sort(rng.choice(len(corpus), n, replace=False)))


def without(corpus: depl.Corpus, held_out: np.ndarray) -> depl.Corpus:
    """The same documents over a label set that lacks some labels."""
    kept = np.setdiff1d(np.arange(len(corpus.labels)), held_out)
    labels = depl.LabelSet(corpus.labels[int(j)] for j in kept)
    return depl.Corpus(corpus.ids, corpus.texts, csr_array(corpus.Y[:, kept]), labels)


def only(corpus: depl.Corpus, labels: np.ndarray, carriers: list[np.ndarray]) -> depl.Corpus:
    """The same documents, of which only some carry some of the labels."""
    Y = corpus.Y.tolil()
    Y[:, labels] = 0
    for j, rows in zip(labels, carriers, strict=True):
        Y[rows, j] = 1
    return depl.Corpus(corpus.ids, corpus.texts, csr_array(Y.tocsr()), corpus.labels)


def told(model: depl.Classifier, corpus: depl.Corpus, new: list[depl.Label]) -> dict[str, float]:
    """The scores of added labels whose probabilities add up to the true numbers of documents."""
    best = model.predict(corpus.texts, k=len(new) + 10)
    columns = np.array([model.labels.index(x.id) for x in new])
    aligned = corpus.aligned(model.labels)
    share = np.asarray(aligned.Y[:, columns].mean(axis=0)).ravel()
    odds = np.full((len(corpus), len(model.labels)), -np.inf)
    np.put_along_axis(odds, best.indices, logit(np.clip(best.scores, 1e-9, 1 - 1e-9)), axis=1)
    own = odds[:, columns]
    low, high = np.full(len(new), -30.0), np.full(len(new), 30.0)
    for _ in range(60):
        middle = (low + high) / 2
        above = expit(own + middle).mean(axis=0) > share
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    odds[:, columns] = own + low
    ranking = np.argsort(-odds, axis=1, kind="stable")[:, :10]
    return scores_of(ranking, aligned, columns)


def scores(model: depl.Classifier, corpus: depl.Corpus, new: list[depl.Label]) -> dict[str, float]:
    """The scores of new labels in the suggestions of a model."""
    aligned = corpus.aligned(model.labels)
    columns = np.array([aligned.labels.index(x.id) for x in new])
    best = model.predict(corpus.texts, k=len(new) + 10).indices
    found = scores_of(best[:, :10], aligned, columns)
    among = np.isin(best, columns)
    order = np.argsort(~among, axis=1, kind="stable")[:, :5]
    alone = np.where(np.take_along_axis(among, order, 1), np.take_along_axis(best, order, 1), -1)
    return found | {"R@5 of new": scores_of(alone, aligned, columns)["R@5"]}


def scores_of(ranking: np.ndarray, aligned: depl.Corpus, columns: np.ndarray) -> dict[str, float]:
    """Recall and macro-F1 of the new labels, and P@5 of all labels, in percent."""
    carried = aligned.Y.toarray() > 0
    found = {}
    for k in (5, 10):
        listed = np.zeros_like(carried)
        rows, places = np.nonzero(ranking[:, :k] >= 0)
        listed[rows, ranking[rows, places]] = True
        right = listed & carried
        found[f"R@{k}"] = right[:, columns].sum() / carried[:, columns].sum()
        if k == 5:
            sizes = (listed.sum(axis=0) + carried.sum(axis=0))[columns]
            found["macroF1@5"] = np.mean(2 * right[:, columns].sum(axis=0) / np.maximum(sizes, 1))
            found["P@5 of all"] = right.sum() / (5 * len(aligned))
    return {name: round(100 * float(value), 2) for name, value in found.items()}


def first_for_own(model: depl.Classifier, examples: dict[str, list[str]]) -> float:
    """How often, in percent, no label but another of the same example comes before a new one."""
    owners: dict[str, set[int]] = {}
    for label_id, texts in examples.items():
        for text in texts:
            owners.setdefault(text, set()).add(model.labels.index(label_id))
    most = max(map(len, owners.values()))
    ranking = model.predict(list(owners), k=most).indices
    firsts = [
        len(own & set(best[: len(own)].tolist())) / len(own)
        for own, best in zip(owners.values(), ranking, strict=True)
    ]
    weights = [len(own) for own in owners.values()]
    return round(100 * float(np.average(firsts, weights=weights)), 1)


if __name__ == "__main__":
    main()
