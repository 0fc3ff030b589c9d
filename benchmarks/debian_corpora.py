"""Corpora that nothing here was tuned on, made from Debian's package lists and WordNet.

    python benchmarks/debian_corpora.py OUT

needs Debian with apt and its package sources, and writes corpus folders for out_of_the_box.py:

- wordnet: nouns by their definition; the label is the next broader noun. English, one label a
  document, short texts.
- debian-sources-fr: packages by their French description; the label is the source package that
  they are built from. French, one label a document, many labels unseen in training.
- debian-depends: packages by their English description; the labels are the packages that they
  depend on. Several labels a document.

Documents are split at random, and siblings are not kept together: as a user would do it.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

Document = tuple[str, str, list[str]]  # id, text, labels

_MOST = 20_000  # training documents
_DEV = 3_000


def main() -> None:
    """Make all corpora."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    out: Path = parser.parse_args().out
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        nouns, names = wordnet(work)
        write(out / "wordnet", nouns, names)
        packages = list(paragraphs(apt_list(work, "Packages", "none")))
        french = list(paragraphs(apt_list(work, "Translation-fr", "fr")))
    write(out / "debian-sources-fr", sources(packages, french))
    write(out / "debian-depends", dependencies(packages))


def wordnet(work: Path) -> tuple[list[Document], dict[str, list[str]]]:
    """Noun definitions with the noun above, and the names of every noun."""
    subprocess.run(["apt-get", "download", "-qq", "wordnet-base"], cwd=work, check=True)
    (archive,) = work.glob("wordnet-base*.deb")
    subprocess.run(["dpkg", "-x", archive.name, "."], cwd=work, check=True)
    documents, names = [], {}
    for line in (work / "usr/share/wordnet/data.noun").read_text().splitlines():
        if line.startswith("  "):
            continue  # the licence
        data, gloss = line.split(" | ", 1)
        noun, _, _, n_words, *rest = data.split()
        words = rest[: 2 * int(n_words, 16) : 2]
        names[noun] = [word.replace("_", " ") for word in words]
        above = re.search(r" @ (\d{8}) n ", data)
        definition = gloss.split('; "')[0].strip()
        if above:
            documents.append((noun, definition, [above.group(1)]))
    return documents, names


def sources(packages: list[dict[str, str]], french: list[dict[str, str]]) -> list[Document]:
    """French descriptions with the source package, of which there are at least two packages."""
    source = {x["Package"]: x.get("Source", x["Package"]).split(" ")[0] for x in packages}
    texts = {x["Package"]: x["Description-fr"] for x in french if x["Package"] in source}
    size = Counter(source[package] for package in texts)
    return [(x, text, [source[x]]) for x, text in texts.items() if size[source[x]] > 1]


def dependencies(packages: list[dict[str, str]]) -> list[Document]:
    """Short descriptions with the packages that are needed, the first of alternatives."""
    documents = []
    for x in packages:
        needed = re.split(r",\s*", x.get("Depends", ""))
        labels = sorted({re.split(r"[ :|(]", one.strip())[0] for one in needed} - {"", "libc6"})
        if labels:
            documents.append((x["Package"], f"{x['Package']}\n{x['Description']}", labels))
    return documents


def apt_list(work: Path, kind: str, language: str) -> str:
    """The text of one of apt's lists of the newest release."""
    lists = work / f"lists-{language}"
    (lists / "partial").mkdir(parents=True)
    options = [f"Dir::State::lists={lists}", f"Acquire::Languages={language}"]
    options += ["APT::Sandbox::User=root", "Acquire::GzipIndexes=false"]
    update = ["apt-get", "update", "-qq", *(x for o in options for x in ("-o", o))]
    # A configuration of its own: a machine may have turned translations off.
    (work / "apt.conf").write_text("#clear Acquire::Languages;\n")
    subprocess.run(
        update, check=True, env={"APT_CONFIG": str(work / "apt.conf"), "PATH": "/usr/bin"}
    )
    largest = max(lists.glob(f"*_main_*{kind}*"), key=lambda path: path.stat().st_size)
    helper = ["/usr/lib/apt/apt-helper", "cat-file", str(largest)]
    return subprocess.run(helper, check=True, capture_output=True, text=True).stdout


def paragraphs(text: str) -> Iterator[dict[str, str]]:
    """The fields of every paragraph; continuation lines are joined by a space."""
    for paragraph in text.split("\n\n"):
        whole = re.sub(r"\n (\.\n)?\s*", " ", paragraph).strip()
        if whole:
            yield dict(line.split(": ", 1) for line in whole.splitlines() if ": " in line)


def write(
    folder: Path, documents: list[Document], names: dict[str, list[str]] | None = None
) -> None:
    """Write train, dev and labels."""
    folder.mkdir(parents=True, exist_ok=True)
    order = np.random.default_rng(0).permutation(len(documents))
    n_train = min(_MOST, len(order) - _DEV)
    splits = {"train": order[:n_train], "dev": order[n_train : n_train + _DEV]}
    for split, rows in splits.items():
        write_lines(
            folder / f"{split}.jsonl",
            ({"id": i, "text": t, "labels": y} for i, t, y in (documents[row] for row in rows)),
        )
    used = sorted({y for rows in splits.values() for row in rows for y in documents[row][2]})
    named: dict[str, list[str]] = defaultdict(list, names or {})
    write_lines(
        folder / "labels.jsonl",
        ({"id": y, "name": (named[y] or [y])[0], "alt_names": named[y][1:]} for y in used),
    )


def write_lines(path: Path, rows: Iterable[dict[str, object]]) -> None:
    """Write one JSON object per line."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


if __name__ == "__main__":
    main()
