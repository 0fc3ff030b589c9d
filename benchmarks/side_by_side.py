"""Two fits at the same time against one alone: how much they wait for each other.

    python benchmarks/side_by_side.py                  depl imported first, as the command line does
    python benchmarks/side_by_side.py --torch-first    in a program that has used torch before
    python benchmarks/side_by_side.py --busy-wait      OpenMP as it is by default, for comparison

Each fit trains the frozen recipe on a part of the demo's corpus with threads for all cores. On n
cores two fits at once cannot take less than twice the time of one that keeps all cores busy; what
is above that is waiting. The seconds are of one run on one machine: compare the ratios.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time

CHILD = """
import sys
first, documents, out = sys.argv[1] == "torch", int(sys.argv[2]), sys.argv[3]
if first:
    import torch
    torch.randn(1000, 1000) @ torch.randn(1000, 1000)
from depl.pipeline.fit import fit
from depl.readers.demo_corpus import read_docstrings
from depl.run.config import Config
corpus = read_docstrings().train
config = Config.load("cpu-frozen", ["encoder.max_tokens=32", "encoder.int8=false"])
fit(corpus.subset(range(min(documents, len(corpus)))), out, config)
"""


def main() -> None:
    """Print the seconds of one fit, of two at once, and their ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--torch-first", action="store_true")
    parser.add_argument("--busy-wait", action="store_true")
    parser.add_argument("--documents", type=int, default=600)
    args = parser.parse_args()
    first = "torch" if args.torch_first else "depl"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_"))}
    if args.busy_wait:
        environment["OMP_WAIT_POLICY"] = "ACTIVE"

    def seconds(n: int) -> float:
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            children = [
                subprocess.Popen(
                    [sys.executable, "-c", CHILD, first, str(args.documents), f"{folder}/{i}"],
                    env=environment,
                )
                for i in range(n)
            ]
            codes = [child.wait() for child in children]
            if any(codes):
                sys.exit("a fit failed")
            return time.perf_counter() - start

    seconds(1)  # compiles what is compiled once
    alone, together = seconds(1), seconds(2)
    print(f"one fit {alone:.1f} s, two at once {together:.1f} s: {together / alone:.2f} times")


if __name__ == "__main__":
    main()
