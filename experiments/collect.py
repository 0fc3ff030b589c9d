"""Take in what was measured in another checkout: its systems and their rankings.

    python experiments/compare.py data/eurlex57k lightxml aplc --results there --out there
    python experiments/collect.py there

The first line can run on a machine from which nothing but the folder comes back. A system that is
known here is replaced by what was measured there; all others stay.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

from measured import RESULTS, add_system


def main() -> None:
    """Add every system of the folder's files of results, and copy the rankings beside ours."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="what --results and --out were")
    parser.add_argument("--out", type=Path, default=Path("runs/recipes"), help="where rankings go")
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    for path in sorted(args.folder.glob("*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        systems = found.pop("systems", {})  # none: a part that is no system
        for name, entry in systems.items():
            add_system(args.results / path.name, found, name, entry)
            print(f"{path.name}: {name}")
    for path in sorted(args.folder.glob("*/rankings/*.safetensors")):
        target = args.out / path.relative_to(args.folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


if __name__ == "__main__":
    main()
