"""depl's three analyzers on the same documents: documents a second, in one run.

    python benchmarks/features.py CORPUS [--documents 3000]

The default analyzer takes the whole training split as well, which is what its bar is about. spaCy
lives in an environment of its own, made on first use, with depl installed beside it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import depl
from peers import environment

TIMED = """
import json, sys, time
from depl.features import TfidfFeatures
texts = json.load(open(sys.argv[2]))
features = TfidfFeatures(analyzer=sys.argv[1])
if sys.argv[1] == "spacy":
    from depl.features import load_spacy
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
    """Print a table of the three analyzers, and the time of the whole split."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--documents", type=int, default=3000)
    args = parser.parse_args()
    work = Path(__file__).parent / ".work"
    work.mkdir(exist_ok=True)
    texts = depl.read(args.corpus, splits=["train"]).train.texts
    sample = work / "texts.json"
    step = max(1, len(texts) // args.documents)
    sample.write_text(json.dumps(texts[::step][: args.documents]))
    n = len(json.loads(sample.read_text()))
    print(f"{args.corpus.resolve().name}: {n:,} of {len(texts):,} training documents")
    pythons = {"words": sys.executable, "simplemma": sys.executable, "spacy": environment("spacy")}
    results = {name: timed(str(python), name, sample) for name, python in pythons.items()}
    for name, result in results.items():
        rate = n / result["seconds"]
        ratio = results["spacy"]["seconds"] / result["seconds"]
        speed = f"{rate:>9,.0f} documents/s  {ratio:6.1f} x spaCy"
        print(f"  {name:<10}{speed}  {result['terms']:,} terms")
    start = time.perf_counter()
    X = depl.TfidfFeatures().fit_transform(texts)
    seconds = time.perf_counter() - start
    print(f"  simplemma, all {len(texts):,}: {seconds:.1f} s, {X.shape[1]:,} terms")


if __name__ == "__main__":
    main()
