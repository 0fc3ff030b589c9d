"""Annif by its command line, as its users run it: load a vocabulary, train, index.

omikuji is its Parabel with the defaults of Annif, mllm its lexical matching against names of labels
(trained on 5,000 documents, as its documentation advises to take few), and ensemble the mean of
both. Annif has its own features: stemmed words and tf-idf of its own. Times include the start of
its commands and reading the files, for users wait for these, too.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from runner_io import (
    Stage,
    Text,
    command_line,
    folder_mb,
    load_texts,
    measured_command,
    settings,
    write_predictions,
    write_report,
)

URI = "http://example.org/labels/"
SOURCES = {"omikuji": ("omikuji",), "mllm": ("mllm",), "ensemble": ("omikuji", "mllm")}
PROJECTS = """
[omikuji]
language=en
backend=omikuji
analyzer=snowball(english)
vocab=labels

[mllm]
language=en
backend=mllm
analyzer=snowball(english)
vocab=labels

[ensemble]
language=en
backend=ensemble
sources=omikuji,mllm
vocab=labels
"""


def main() -> None:
    """Write Annif's files, and call its commands one after the other."""
    parser = command_line("Train and predict with Annif.")
    parser.add_argument("--project", choices=SOURCES, default="omikuji")
    parser.add_argument("--mllm-documents", type=int, default=5_000)
    args = parser.parse_args()
    folder = args.work / "annif"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "projects.cfg").write_text(PROJECTS, encoding="utf-8")
    _write_vocabulary(args.work / "labels.jsonl", folder / "labels.ttl")
    dev = load_texts(args.work, "dev")
    _write_tsv(folder / "train.tsv", load_texts(args.work, "train"), labels=True)
    _write_tsv(folder / "dev.tsv", dev, labels=False)

    def annif(*words: str) -> Stage:
        command = [str(Path(sys.executable).with_name("annif")), *words]
        return measured_command(command, cwd=folder, env=os.environ | {"NLTK_DATA": _nltk_data()})

    annif("load-vocab", "labels", "labels.ttl")
    few = {"mllm": ["--docs-limit", str(args.mllm_documents)]}
    trained = [
        annif("train", "--jobs", str(args.threads), *few.get(source, []), source, "train.tsv")
        for source in SOURCES[args.project]
    ]
    train = Stage(
        sum(x.seconds for x in trained),
        sum(x.cpu_seconds for x in trained),
        max(x.peak_rss_mb for x in trained),
    )
    options = ["--limit", str(args.k), "--no-include-doc", "--output", "dev.jsonl"]
    predict = annif("index", *options, args.project, "dev.tsv")
    write_predictions(args.out, _suggested(folder / "dev.jsonl"), len(dev), args.k)
    write_report(
        args.out,
        peer=args.peer,
        version=version("annif"),
        settings=settings(args),
        stages={"train": train, "predict": predict},
        model_mb=folder_mb(folder / "data" / "projects"),
    )


def _nltk_data() -> str:
    """Where the sentence splitter is; Annif downloads it where the variable is not set."""
    package = find_spec("llama_index.core")
    if package is None or package.origin is None:
        raise SystemExit("llama-index-core, which carries NLTK's data, is not installed.")
    return str(Path(package.origin).parent / "_static" / "nltk_cache")


def _write_vocabulary(labels: Path, path: Path) -> None:
    """Labels as SKOS; the last part of a URI is the label's position."""
    with labels.open(encoding="utf-8") as lines, path.open("w", encoding="utf-8") as out:
        out.write("@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n")
        for position, line in enumerate(lines):
            label = json.loads(line)
            parts = [f"skos:prefLabel {_literal(label['name'])}"]
            parts += [f"skos:altLabel {_literal(x)}" for x in label["alt_names"]]
            parts += [f"skos:broader <{URI}{x}>" for x in label["broader"]]
            out.write(f"<{URI}{position}> a skos:Concept ; {' ; '.join(parts)} .\n")


def _literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False) + "@en"


def _write_tsv(path: Path, documents: list[Text], *, labels: bool) -> None:
    with path.open("w", encoding="utf-8") as lines:
        for document in documents:
            carried = "\t" + " ".join(f"<{URI}{x}>" for x in document.labels) if labels else ""
            lines.write(" ".join(document.text.split()) + carried + "\n")


def _suggested(path: Path) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            found = json.loads(line)["results"]
            labels = [int(x["uri"].removeprefix(URI)) for x in found]
            yield np.array(labels, np.int32), np.array([x["score"] for x in found], np.float32)


if __name__ == "__main__":
    main()
