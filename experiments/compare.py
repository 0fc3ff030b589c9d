"""The other systems of the paper's tables, and whole recipes of depl, each one command.

    python experiments/compare.py data/debtags svm dismec
    python experiments/compare.py data/debtags pfastrexml --seed 0
    python experiments/compare.py data/debtags lightxml aplc lwan --seed 0
    python experiments/compare.py data/eurlex57k --recipe "paper's settings" --seed 0
    python experiments/compare.py --list

All of them get what depl gets (tf-idf vectors, or the encoder and its tokens) and are scored on the
dev split like every other system. What is measured goes into experiments/results at once; what is
there already is not measured again unless --redo says so. With --at-once every system has a process
of its own: small steps leave a large GPU idle.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from corpora import repeated
from measured import (
    RESULTS,
    add_system,
    in_a_line,
    keep_ranking,
    origin,
    read_systems,
    scores_apart,
)
from scipy.sparse import csr_array

import depl
from depl.core.corpus import Dataset
from depl.core.ranking import Ranking
from depl.evaluation.scores import evaluate

DEPTH = 100  # of rankings: deep enough to hold several rare labels
SPARSE = {"svm": "svm", "dismec": "DiSMEC", "pfastrexml": "PfastreXML"}
NEURAL = {"lightxml": "LightXML", "aplc": "APLC", "lwan": "LWAN"}
SYSTEMS = SPARSE | NEURAL
SEEDLESS = ("dismec",)  # it finds the same optimum, whatever the order
Settings = dict[str, Any]
Vectors = tuple[csr_array, csr_array]


class Found(NamedTuple):
    """The name of a row, what it suggests, and the settings behind it."""

    title: str
    ranking: Ranking
    settings: Settings


def main() -> None:
    """Measure what is asked for, here or in processes of their own."""
    args = _arguments()
    data = depl.read(args.corpus, splits=["train", "dev"])
    if args.at_once or args.prepare:
        _prepare(data, args)
    if args.prepare:
        return
    if args.at_once and len(args.systems) + len(args.recipe) > 1:
        sys.exit(_at_once(args))
    vectors = _vectors(data, args) if any(x in SPARSE for x in args.systems) else None
    for system in args.systems:
        seed = None if system in SEEDLESS else args.seed
        _measure(system, {SYSTEMS[system]}, seed, data, args, vectors)
    for recipe in args.recipe:
        _measure(recipe, {f"classifier, {recipe}"}, args.seed, data, args)


def _vectors(data: Dataset, args: argparse.Namespace) -> Vectors:
    """Tf-idf of the training and the dev documents; the clock of no system runs meanwhile."""
    # Nobody else's system knows of titles.
    features = depl.TfidfFeatures(**{"title_weight": 0.0} | _given(args, "features"))
    return features.fit_transform(data.train.texts), features.transform(data.dev.texts)


def _measure(
    name: str,
    rows: set[str],
    seed: int | None,
    data: Dataset,
    args: argparse.Namespace,
    vectors: Vectors | None = None,
) -> None:
    """Fit one system, and keep what it says of the dev split; ``rows`` tell whether it is there."""
    corpus = args.corpus.resolve().name
    kind = "systems" if name in SYSTEMS else "recipes"
    path = args.results / f"{corpus}-{kind}{'' if seed is None else f'-seed{seed}'}.json"
    if not args.redo and rows <= set(read_systems(path)):
        print(f"{path} has {name}; --redo measures it again.")
        return
    asked = name if name in SYSTEMS else f'--recipe "{name}"'
    command = f"python experiments/compare.py data/{corpus} {asked}"
    command += "" if seed is None else f" --seed {seed}"
    # What is not as published is said in the row.
    given = _given(args, name)
    changed = ", ".join(f"{key}={x}" for key, x in given.items())
    command += "".join(f" --set {name}.{key}={x}".replace(", ", ",") for key, x in given.items())
    libraries = () if name in SPARSE else ("torch", "transformers")
    _, again = repeated(data.train.texts, data.dev.texts)
    start, cpu = time.perf_counter(), time.process_time()
    for title, ranking, settings in _rankings(name, data, args, vectors):
        report = evaluate(
            ranking, data.dev, train_counts=data.train.label_counts, n_train=len(data.train)
        )
        entry = {
            "command": command,
            "seconds": round(time.perf_counter() - start, 1),
            "cpu_seconds": round(time.process_time() - cpu, 1),
            "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            "hardware": origin(corpus)["hardware"],
            "settings": settings,
            **({"note": changed} if changed else {}),
            **scores_apart(ranking, data.dev, data.train.label_counts, len(data.train), again),
            "report": report.to_json(bins=True),
        }
        add_system(path, origin(corpus, *libraries, seed=seed), title, entry)
        keep_ranking(args.out / data.name, title, seed, ranking)
        print(f"{corpus}  {title}: {in_a_line(report)}  {entry['seconds']} s", flush=True)


def _rankings(
    name: str, data: Dataset, args: argparse.Namespace, vectors: Vectors | None
) -> Iterator[Found]:
    if vectors is not None and name in SPARSE:
        yield _sparse(name, data, args, vectors)
    elif name in NEURAL:
        yield _fine_tuned(name, data, args)
    else:
        from systems.recipes import RECIPES, prepare, rankings

        recipe = RECIPES[name]
        run = prepare(data.train, args.out / data.name, recipe.base, _changes(args))
        settings = run.config().changed(recipe.changes).to_dict()
        settings["encoder"]["name"] = Path(args.encoder).name
        for branch, ranking in rankings(run, recipe, data.dev, DEPTH):
            yield Found(f"{branch}, {name}", ranking, settings)


def _sparse(name: str, data: Dataset, args: argparse.Namespace, vectors: Vectors) -> Found:
    X, X_dev = vectors
    settings = _given(args, name)
    model: Any
    if name == "svm":
        model = depl.OneVsAllSVM(seed=args.seed, **settings)
    elif name == "dismec":
        from systems.dismec import dismec

        model = dismec(**settings)
    else:
        from systems.pfastrexml import PfastreXML

        model = PfastreXML(seed=args.seed, **settings)
    return Found(SYSTEMS[name], model.fit(X, data.train.Y).rank(X_dev, DEPTH), settings)


def _fine_tuned(name: str, data: Dataset, args: argparse.Namespace) -> Found:
    from systems.aplc import APLC
    from systems.lightxml import LightXML
    from systems.lwan import LWAN

    from depl.neural.distributed import Processes
    from depl.neural.encoder_files import find_encoder, load_encoder
    from depl.neural.tokens import tokenize

    folder, settings = find_encoder(args.encoder), _given(args, name)
    train, dev = (tokenize(x.texts, folder, args.max_tokens) for x in (data.train, data.dev))
    bert = load_encoder(folder).bert
    model: Any
    if name == "lightxml":
        model = LightXML(bert, len(data.labels), seed=args.seed, **settings)
    elif name == "lwan":
        model = LWAN(bert, len(data.labels), seed=args.seed, **settings)
    else:
        model = APLC(bert, data.train.label_counts, seed=args.seed, **settings)
    model.to(Processes.launched("auto").device).fit(train, data.train.Y, eager=args.eager)
    about = {"encoder": Path(args.encoder).name, "max_tokens": args.max_tokens}
    return Found(SYSTEMS[name], model.rank(dev, DEPTH), about | settings)


def _prepare(data: Dataset, args: argparse.Namespace) -> None:
    """Make what rows of one recipe share, so that they need not wait for each other."""
    if args.recipe:
        from systems.recipes import RECIPES, prepare

        for base in dict.fromkeys(RECIPES[name].base for name in args.recipe):
            prepare(data.train, args.out / data.name, base, _changes(args))


def _at_once(args: argparse.Namespace) -> int:
    """A process for each system, all at the same time; 1 if any failed."""
    shared = ["--seed", str(args.seed), "--encoder", args.encoder]
    shared += ["--max-tokens", str(args.max_tokens), "--out", str(args.out)]
    shared += ["--results", str(args.results)]
    shared += [flag for flag in ("--redo", "--eager") if vars(args)[flag.removeprefix("--")]]
    for change in args.set:
        shared += ["--set", change]
    asked = [[x] for x in args.systems] + [["--recipe", x] for x in args.recipe]
    command = [sys.executable, __file__, str(args.corpus)]
    children = [subprocess.Popen([*command, *x, *shared]) for x in asked]
    codes = [child.wait() for child in children]
    return int(any(codes))


def _changes(args: argparse.Namespace) -> list[str]:
    """The changes of depl's own settings."""
    own = [x for x in args.set if x.partition(".")[0] not in SYSTEMS]
    return [f"encoder.name={args.encoder}", f"seed={args.seed}", *own]


def _given(args: argparse.Namespace, section: str) -> Settings:
    """The settings of one section that were given: lightxml.epochs=5 as {"epochs": 5}."""
    settings: Settings = {}
    for dotted, _, raw in (x.partition("=") for x in args.set):
        if dotted.partition(".")[0] == section:
            try:
                settings[dotted.partition(".")[2]] = tomllib.loads(f"x = {raw}")["x"]
            except tomllib.TOMLDecodeError:
                settings[dotted.partition(".")[2]] = raw  # a bare word is a string
    return settings


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", nargs="?", type=Path, help="a folder with train and dev")
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", help=", ".join(SYSTEMS))
    parser.add_argument("--recipe", action="append", default=[], help="a recipe of depl, as listed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--encoder", default="all-MiniLM-L6-v2")
    parser.add_argument("--max-tokens", type=int, default=256, help="of fine-tuned systems")
    parser.add_argument("--out", type=Path, default=Path("runs/recipes"), help="where runs are")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE")
    parser.add_argument("--redo", action="store_true", help="measure again what is there")
    parser.add_argument("--eager", action="store_true", help="record no step of a fine-tuned one")
    parser.add_argument("--at-once", action="store_true", help="a process for each system")
    parser.add_argument("--prepare", action="store_true", help="no more than recipes share")
    parser.add_argument("--list", action="store_true", help="say what there is, and do nothing")
    args = parser.parse_args()
    recipes: list[str] = []
    if args.recipe or args.list:
        from systems.recipes import RECIPES

        recipes = list(RECIPES)
    if args.list:
        print("\n".join([*SYSTEMS, *(f'--recipe "{name}"' for name in recipes)]))
        sys.exit(0)
    unknown = [x for x in args.systems if x not in SYSTEMS]
    unknown += [x for x in args.recipe if x not in recipes]
    if unknown or args.corpus is None or not (args.systems or args.recipe):
        what = f"there is no system {unknown[0]!r}" if unknown else "give a corpus and a system"
        parser.error(f"{what}; --list says what there is")
    return args


if __name__ == "__main__":
    main()
