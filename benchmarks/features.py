"""depl's three analyzers on the same documents: documents a second, in one run.

    python benchmarks/features.py CORPUS [--documents 12000]

spaCy lives in an environment of its own, made on first use, with depl installed beside it. Without
a trained pipeline it looks lemmas up in a table, its fastest way: no tagger runs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import depl
from peers import environment

TIMED = """
import json, sys, time
from depl.sparse.tfidf import TfidfFeatures
texts = json.load(open(sys.argv[2]))
features = TfidfFeatures(analyzer=sys.argv[1])
if sys.argv[1] == "spacy":
    from depl.sparse.words import load_spacy
    load_spacy("en")
start = time.perf_counter()
X = features.fit_transform(texts)
print(json.dumps({"seconds": time.perf_counter() - start, "terms": X.shape[1]}))
"""


def timed(python: str, analyzer: str, texts: Path) -> dict[str, float]:
    """Fit one analyzer in a process of its own."""
    command = [python, "-c", TIMED, analyzer, str(texts)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def main() -> None:
    """Print a table of the three analyzers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--documents", type=int, help="only so many, evenly spread")
    args = parser.parse_args()
    work = Path(__file__).parent / ".work"
    work.mkdir(exist_ok=True)
    texts = depl.read(args.corpus, splits=["train"]).train.texts
    texts = texts[:: max(1, len(texts) // (args.documents or len(texts)))]
    path = work / "texts.json"
    path.write_text(json.dumps(texts))
    print(f"{args.corpus.resolve().name}: {len(texts):,} training documents")
    pythons = {"words": sys.executable, "simplemma": sys.executable, "spacy": environment("spacy")}
    results = {name: timed(str(python), name, path) for name, python in pythons.items()}
    for name, result in results.items():
        seconds = result["seconds"]
        ratio = results["spacy"]["seconds"] / seconds
        speed = f"{seconds:6.1f} s {len(texts) / seconds:>8,.0f} documents/s {ratio:6.1f} x spaCy"
        print(f"  {name:<10}{speed}  {result['terms']:,} terms")


if __name__ == "__main__":
    main()
