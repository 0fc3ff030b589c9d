"""The peers beside the paper's systems: their rows of Tables 3 and 4.

    python experiments/peers.py CORPUS [--only pecos_ova,annif_mllm] [--set epochs=5] [--keep]

Each runs in an environment of its own (see benchmarks/README.md) and is scored on the dev split
like every other system. Linear ones get the tf-idf features that depl's SVM gets; Annif,
AttentionXML and XR-Transformer get the texts. Without --only all but the last two are run, which
need hours on a CPU. --set changes settings of a peer; documents or epochs that are fewer than its
own are said in its row. With --keep, a peer that was run before on this corpus, here or by
benchmarks/linear.py, is only scored again. The results go into
experiments/results/<corpus>-peers.json; peers that are not asked for stay there as they are.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from corpora import repeated
from measured import RESULTS, in_a_line, keep_ranking, origin, scores_apart, write_result
from paper import PEERS as NAMES

import depl
from depl.core.ranking import Ranking

# Before this folder, whose peers.py would stand for the package of that name.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
from linear import HERE as BENCHMARKS
from linear import prepare, score
from peers import PEERS, PeerError, PeerResult, kept_result, run_peer

SLOW = ("attentionxml", "xrtransformer")


def main() -> None:
    """Run what was asked for, and write each result as soon as it is there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path, help="a folder with a train and a dev split")
    parser.add_argument(
        "--only",
        default=",".join(x for x in NAMES if x not in SLOW),
        help="peers, separated by commas",
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--keep", action="store_true", help="do not train again what was trained")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/recipes"), help="where rankings go")
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    wanted = args.only.split(",")
    unknown = [name for name in wanted if name not in NAMES]
    if unknown:
        parser.error(f"there is no peer {unknown[0]!r}; use some of {', '.join(NAMES)}")
    corpus = args.corpus.resolve().name
    work = BENCHMARKS / ".work" / corpus
    kept = {name: _kept(name, work) for name in wanted} if args.keep else {}
    if any(kept.get(name) is None for name in wanted):
        train, dev = prepare(args.corpus, work)
    else:
        data = depl.read(args.corpus, splits=["train", "dev"])
        train, dev = data.train, data.dev

    path = args.results / f"{corpus}-peers.json"
    facts = origin(corpus) | {"command": f"python experiments/peers.py data/{corpus}"}
    chosen = dict(x.split("=", 1) for x in args.set)
    if "xrtransformer" in wanted:
        chosen.setdefault("encoder", str(_encoder()))
    _, again = repeated(train.texts, dev.texts)
    for name in wanted:
        result = kept.get(name) or run_peer(name, work, threads=args.threads, **chosen)
        report, ranking = score(result, train, dev), Ranking(*result.read_predictions())
        # Read anew each time: a peer takes long, and other commands write here meanwhile.
        before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        systems = before.get("systems", {})
        facts["versions"] |= {k: v for k, v in before.get("versions", {}).items() if k != "depl"}
        command = f"{facts['command']} --only {name}"
        systems[NAMES[name]] = {
            "command": " ".join([command, *(f"--set {x}" for x in args.set)]),
            "seconds": round(result.train_seconds, 1),
            "cpu_seconds": round(result.more["train_cpu_seconds"], 1),
            "peak_memory_mb": round(result.peak_rss_mb),
            "hardware": result.more.get("hardware", facts["hardware"]),
            "settings": result.settings,
            **({"note": result.more["note"]} if result.more.get("note") else {}),
            **scores_apart(ranking, dev, train.label_counts, len(train), again),
            "report": report.to_json(bins=True),
        }
        facts["versions"][PEERS[name].environment.split("_")[0]] = result.version
        in_order = {title: systems[title] for title in NAMES.values() if title in systems}
        write_result(path, {**facts, "systems": in_order})
        keep_ranking(args.out / corpus, NAMES[name], None, ranking)
        print(f"{corpus}  {NAMES[name]}: {in_a_line(report)}", flush=True)


def _encoder() -> Path:
    """The encoder that depl comes with."""
    from depl.neural.encoder_files import DEFAULT_ENCODER, find_encoder

    return find_encoder(DEFAULT_ENCODER)


def _kept(name: str, work: Path) -> PeerResult | None:
    try:
        return kept_result(name, work)
    except PeerError:
        return None


if __name__ == "__main__":
    main()
