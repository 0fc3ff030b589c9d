"""The journeys of a first day, step by step, with the real commands on files as people have them.

    python tests/journeys/walk.py --fresh                       # from pip install on
    python tests/journeys/walk.py --fresh --corpora data/debtags data/tib-en

A step is a command and what it must say. With ``--fresh``, depl and its extras are installed into
a new virtual environment first, and everything runs there; otherwise the ``depl`` of this Python is
walked. A quick part of it is among the tests (``test_journeys.py``).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))  # as a script, and from the tests

import messy

ROOT = Path(__file__).parents[2]
EXTRAS = "client,documents,excel,marc,pandas,serve,skos"


class Answer(NamedTuple):
    """What a command gave."""

    code: int
    out: str
    err: str


class Walk:
    """Takes steps in a folder and keeps what went wrong.

    Parameters
    ----------
    folder : Path
        Where all files are made.
    run : callable
        Takes the arguments of ``depl`` and gives its answer.
    report : callable
        Called with a line for each step.
    """

    def __init__(
        self,
        folder: Path,
        run: Callable[[Sequence[str]], Answer],
        report: Callable[[str], None] = print,
    ) -> None:
        self.folder = folder
        self.steps = 0
        self.failures: list[str] = []
        self._run = run
        self._report = report

    def depl(self, *arguments: object, says: Sequence[str] = (), fails: bool = False) -> Answer:
        """Call ``depl``: it must succeed, or fail with one message; and say all of these."""
        given = [str(x) for x in arguments]
        begun = time.monotonic()
        answer = self._run(given)
        said = " ".join((answer.out + answer.err).split())
        wrong = [f"does not say {x!r}" for x in says if " ".join(x.split()) not in said]
        if answer.code != (2 if fails else 0):
            wrong.insert(0, f"ended with {answer.code}")
        if "Traceback" in answer.err:
            wrong.append("shows a traceback")
        words = " ".join(x if len(x) < 60 else f"{x[:57]}..." for x in given)
        self.check(f"depl {words}", wrong, f"{answer.out}\n{answer.err}", begun)
        return answer

    def check(self, what: str, wrong: Sequence[str], shown: str, begun: float) -> None:
        """Note a step and what is wrong with it."""
        self.steps += 1
        self._report(f"  {'✗' if wrong else '✓'} {what}  {time.monotonic() - begun:.1f} s")
        if wrong:
            self.failures.append(f"{what}: {'; '.join(wrong)}\n{shown[-3000:]}")
            self._report(f"    {'; '.join(wrong)}")

    def journey(self, name: str) -> None:
        """Begin another journey."""
        self._report(name)

    def file(self, name: str, contents: bytes | str) -> Path:
        """Write a file."""
        path = self.folder / name
        path.write_bytes(contents.encode() if isinstance(contents, str) else contents)
        return path


def tables(walk: Walk, *, every: int = 1) -> None:
    """All separators, encodings, kinds of files and of cells give the same documents and labels."""
    walk.journey("A table of any kind")
    folder = walk.folder / "tables"
    folder.mkdir()
    rows = messy.records()
    labelled = sum(bool(row.labels) for row in rows)
    taken = (
        f"{labelled} documents, {len(messy.TOPICS)} labels; {len(rows) - labelled} rows left out"
    )
    for path, called in list(messy.tables(folder, rows).items())[::every]:
        walk.depl(
            *("info", path),
            says=[called, "text Titel + Abstract", "labels Schlagwörter", "id PPN", taken],
        )


def first_run(walk: Walk, rows: Sequence[messy.Record], *options: object) -> Path:
    """From one CSV file to suggestions: fit, evaluate, predict."""
    walk.journey("From a CSV file to the first suggestions")
    new, old = rows[:12], rows[12:]
    table = walk.file("records.csv", messy.table(old))
    run = walk.folder / "runs" / "mine"
    walk.depl(
        *("fit", table, "--text", "Titel,Abstract", "--labels", "Schlagwörter", "--out", run),
        *options,
        says=[
            "separated by semicolons, UTF-8 with a byte order mark",
            "text Titel + Abstract",
            "labels Schlagwörter, split at ';'",
            "documents are not trained on, to measure quality",
            "among the first 5",
            f"depl predict {run} FILE",
            f"depl evaluate {run}",
            f"depl serve {run}",
        ],
    )
    walk.depl("evaluate", run, says=["P@5", "Report with figures"])
    page = (run / "report" / "set-aside.html").read_text(encoding="utf-8")
    for part in ("In short", "among the first 5", "Mistakes", "settings", "date"):
        walk.check(f"the report has {part!r}", [] if part in page else ["no"], "", time.monotonic())
    walk.depl("predict", run, walk.file("new.csv", messy.table(new)), says=[new[0].id])
    return run


def measuring(walk: Walk, run: Path) -> None:
    """What is said of documents that were trained on, and of labels that the run does not know."""
    walk.journey("Measuring")
    table = walk.folder / "records.csv"
    walk.depl("evaluate", run, table, says=["were trained on, so the figures are too good"])
    strange = [row._replace(labels=(*row.labels, "Imkerei")) for row in messy.records(12)]
    other = walk.file("other.csv", messy.table(strange, ",", "cp1252"))
    walk.depl("evaluate", run, other, says=["does not know 1 of the"])
    whole = walk.folder / "runs" / "whole"
    walk.depl("fit", table, "--no-holdout", "--until", "features", "--out", whole)
    walk.depl("evaluate", whole, fails=True, says=["set no documents aside"])
    folder = walk.folder / "splits"
    folder.mkdir()
    for name in ("train.csv", "dev.csv"):
        (folder / name).write_bytes(messy.table(messy.records(40)))
    walk.depl("evaluate", run, folder, "--split", "train", says=["was trained on"])


def outputs(walk: Walk, run: Path) -> None:
    """Suggestions in files: wide, for Excel, safe."""
    walk.journey("Suggestions in files")
    new = messy.records(5)
    evil = [new[0]._replace(id="=1+1"), *new[1:]]
    table = walk.file("evil.csv", messy.table(evil))
    for name in ("out.csv", "out.tsv", "out.jsonl", "out.parquet", "out.xlsx"):
        walk.depl("predict", run, table, "--output", walk.folder / name, says=["5 documents →"])
    wide = walk.folder / "wide.csv"
    walk.depl("predict", run, table, "--wide", "--excel", "--output", wide)
    raw = wide.read_bytes()
    head = raw.decode("utf-8-sig").splitlines()[0].split(";")
    wrong = [] if raw.startswith(b"\xef\xbb\xbf") else ["no byte order mark"]
    wrong += [] if head[:4] == list(messy.HEADER) else ["the input's columns are not kept"]
    wrong += ["a formula"] * any(line.startswith(b"=") for line in raw.splitlines())
    walk.check("wide.csv keeps the columns and opens in Excel", wrong, head, time.monotonic())


def small_things(walk: Walk, run: Path) -> None:
    """What a newcomer gets wrong, and what is said about it."""
    walk.journey("Small things")
    table = walk.folder / "records.csv"
    refused = {
        ("predict", run, table, "--threshold", "80"): ["for 80 % give 0.8"],
        ("labels", run, "add", "missing.csv"): ["missing.csv does not exist"],
        ("predict", run, "missing.xlsx"): ["there is no such file"],
        ("info", table, "--format", "csw"): ["Did you mean 'csv'?"],
        ("info", table, "--text", "Title"): ["Did you mean 'Titel'?"],
        ("info", table, "--encoding", "ansi-7"): ["There is no encoding 'ansi-7'"],
        ("info", walk.folder / "record.csv"): ["Did you mean"],
        ("predict", run, walk.file("noise.csv", os.urandom(5000))): ["noise.csv"],
    }
    for command, says in refused.items():
        answer = walk.depl(*command, says=says, fails=True)
        lines = answer.err.strip().splitlines()
        wrong = [] if len(lines) <= 12 else [f"{len(lines)} lines"]
        walk.check("... in a few lines", wrong, answer.err, time.monotonic())
    walk.depl("--version", says=["depl "])
    walk.depl("info", table, "--format", "csv")
    walk.depl("info", table, "--labels-as-they-are", says=["labels"])
    dos = table.read_bytes().decode("utf-8-sig").encode("cp850", "replace")
    walk.depl(
        "info", walk.file("dos.csv", dos), "--encoding", "cp850", says=["Schlagwörter, split"]
    )
    walk.depl("predict", run, table, "--threshold", "precision=0.8", "--per-band", "-k", "2")
    for command in ("fit", "evaluate", "predict", "info", "labels", "explain", "serve"):
        answer = walk.depl(command, "--help")
        wrong = [x for x in ("<bool>", "BOOLEAN", "MARC_") if x in answer.out]
        walk.check("... without the names of types", wrong, answer.out, time.monotonic())


def vocabulary(walk: Walk) -> None:
    """SKOS in all its files: names, definitions and the hierarchy."""
    walk.journey("A vocabulary")
    table = walk.folder / "records.csv"
    for path in messy.vocabularies(walk.folder):
        walk.depl(
            *("info", table, "--vocabulary", path, "--language", "de"),
            says=[f"vocabulary {path.name}", "8 labels"],
        )
    run = walk.folder / "runs" / "skos"
    path = walk.folder / "vocabulary.ttl"
    walk.depl("fit", table, "--vocabulary", path, "--language", "de", "--out", run)
    shown = ["broader Lebensmittel", "definition Nur aus Trauben.", "also wine, Rebensaft"]
    walk.depl("labels", run, "show", "Wein", says=shown)
    walk.depl("labels", run, "show", "Lebensmittel", says=["narrower", "Wein", "Käse", "Met"])
    walk.depl("predict", run, walk.folder / "new.csv", "--no-ancestors")
    walk.depl("explain", run, messy.TEXT, "--label", "Wein", says=["broader", "Lebensmittel"])


def documents(walk: Walk, run: Path) -> None:
    """Letters, reports and pages; what is none costs one sentence."""
    walk.journey("Documents")
    folder = walk.folder / "documents"
    folder.mkdir()
    messy.documents(folder)
    walk.depl(
        *("predict", run, folder),
        says=[
            *("letter.docx", "report.pdf", "page.html", "note.txt"),
            *("scan.pdf left out", "locked.pdf left out", "photo.png left out: a picture"),
            "Left out: 3 of 7 files",
        ],
    )
    for name in ("letter.docx", "report.pdf", "page.html", "note.txt"):
        best = json.loads(walk.depl("predict", run, folder / name, "--json").out)["labels"][0]
        walk.depl("explain", run, folder / name, says=[best["name"]])


def marc(walk: Walk) -> None:
    """Records in and out; predict reads and writes the fields that fit was given."""
    walk.journey("MARC records")
    from pymarc import MARCReader, parse_xml_to_array

    binary, xml = messy.marc(walk.folder, messy.records())
    run = walk.folder / "runs" / "marc"
    fields = ("--text", "245$a,520$a", "--labels", "690=mine")
    walk.depl("info", binary, fails=True, says=["have no labels", "the labels from 650$a"])
    walk.depl("info", xml, *fields, says=["MARC records", "6 labels"])
    walk.depl("fit", binary, *fields, "--out", run, says=["text 245$a + 520$a"])
    for source in (binary, xml):
        target = source.with_stem("tagged")
        walk.depl("predict", run, source, "--output", target, "-k", "2")
        read = parse_xml_to_array if source is xml else lambda path: MARCReader(path.read_bytes())
        added = [x for record in read(target) for x in record.get_fields("650", "690")]
        wrong = [] if {x.tag for x in added} == {"690"} else ["other fields than those of the run"]
        wrong += [] if all(x["2"] == "mine" and x["0"] for x in added) else ["no source or no id"]
        walk.check(f"{target.name} has subjects with source and id", wrong, "", time.monotonic())


def service(walk: Walk, run: Path, depl: Sequence[str]) -> None:
    """The page takes the same files through the service."""
    walk.journey("The service")
    begun = time.monotonic()
    process = subprocess.Popen(
        [*depl, "serve", str(run), "--port", "0"], stderr=subprocess.PIPE, text=True
    )
    try:
        address = ""
        while not address:
            line = process.stderr.readline()
            address = next(iter(re.findall(r"https?://[\d.:]+", line)), "")
            if not line:
                break
        walk.check("depl serve", [] if address else ["does not start"], "", begun)
        for name in ("report.pdf", "letter.docx", "page.html", "note.txt") if address else ():
            raw = (walk.folder / "documents" / name).read_bytes()
            request = urllib.request.Request(f"{address}/v1/extract?name={name}", raw)
            with urllib.request.urlopen(request) as response:
                found = json.load(response)
            wrong = [] if "Winzer" in found["text"] else ["no text"]
            walk.check(f"the service reads {name}", wrong, str(found), begun)
    finally:
        process.terminate()
        process.wait()


def python(walk: Walk, interpreter: str) -> None:
    """A data scientist's view, in a Python of its own."""
    walk.journey("Python and scikit-learn")
    script = Path(__file__).with_name("in_python.py")
    begun = time.monotonic()
    done = subprocess.run(
        [interpreter, script, walk.folder], capture_output=True, text=True, check=False
    )
    for line in done.stdout.splitlines():
        walk.check(line, [], "", begun)
    if done.returncode:
        walk.check("in_python.py", [f"ended with {done.returncode}"], done.stderr, begun)


def languages(walk: Walk, run: Path) -> None:
    """German is found, words of grammar are no keywords, capitals make no difference."""
    walk.journey("Languages")
    shown = walk.depl("labels", run, "show", "Wein").out
    wrong = [x for x in messy.GRAMMAR if re.search(rf"description.*\b{x}\b", shown)]
    walk.check("no keyword is a word of grammar", wrong, shown, time.monotonic())
    best = [
        json.loads(walk.depl("predict", run, walk.file("t.txt", text), "--json", "-k", "1").out)
        for text in (messy.TEXT, messy.TEXT.upper())
    ]
    same = best[0]["labels"][0]["name"] == best[1]["labels"][0]["name"] == "Wein"
    walk.check("capitals get the same label", [] if same else [str(best)], "", time.monotonic())


def corpora(walk: Walk, folders: Sequence[Path], n: int) -> None:
    """Slices of real corpora, as somebody's CSV and with their labels as a vocabulary."""
    for folder in folders:
        walk.journey(f"{folder.name}, {n:,} documents")
        table = walk.file(
            f"{folder.name}.csv", messy.table(messy.of_corpus(folder, n), ";", "cp1252")
        )
        run = walk.folder / "runs" / folder.name
        columns = ("--text", "Titel,Abstract", "--labels", "Schlagwörter")
        says = ["Windows-1252", "among the first 5"]
        walk.depl("fit", table, *columns, "--out", run, says=says)
        walk.depl("evaluate", run, says=["set aside", "P@5"])
        walk.depl("predict", run, table, "--output", walk.folder / f"{folder.name}.xlsx", "--wide")
        vocabulary = folder / "labels.jsonl"
        walk.depl("info", table, "--vocabulary", vocabulary, says=["vocabulary labels.jsonl"])


def fresh(folder: Path) -> Path:
    """A new virtual environment with depl and its extras; its Python."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    interpreter = folder / "bin" / "python"
    constraints = ROOT / "constraints.txt"
    command = [interpreter, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*command, "-c", constraints, f"{ROOT}[{EXTRAS}]"], check=True)
    return interpreter


def main() -> None:
    """Walk all journeys, and end with what went wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fresh", action="store_true", help="install into a new environment first")
    parser.add_argument("--corpora", nargs="*", type=Path, default=[], help="corpus folders")
    parser.add_argument("--documents", type=int, default=1500, help="taken from each of these")
    parser.add_argument("--only", nargs="*", help="these journeys, after the first run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.fresh:
            begun = time.monotonic()
            interpreter = fresh(folder / "venv")
            print(f"installed in {time.monotonic() - begun:.0f} s")
            given = [x for x in sys.argv[1:] if x != "--fresh"]
            sys.exit(subprocess.run([interpreter, __file__, *given], check=False).returncode)
        walk = Walk(folder, _called)
        begun = time.monotonic()
        run = first_run(walk, messy.records())
        print(f"the first suggestions after {time.monotonic() - begun:.0f} s")
        for chosen, journey in journeys(walk, run).items():
            if not options.only or chosen in options.only:
                journey()
        corpora(walk, options.corpora, options.documents)
    print(f"\n{walk.steps} steps, {len(walk.failures)} of them wrong")
    for failure in walk.failures:
        print(f"\n{failure}")
    sys.exit(bool(walk.failures))


def demo(walk: Walk) -> None:
    """The built-in corpus."""
    walk.journey("The demo")
    walk.depl("demo", "--out", walk.folder / "runs" / "demo", says=["See Also", "Report"])


def journeys(walk: Walk, run: Path) -> dict[str, Callable[[], None]]:
    """All that come after the first run, by name."""
    return {
        "tables": lambda: tables(walk),
        "measuring": lambda: measuring(walk, run),
        "outputs": lambda: outputs(walk, run),
        "small-things": lambda: small_things(walk, run),
        "documents": lambda: documents(walk, run),
        "service": lambda: service(walk, run, [sys.executable, "-m", "depl"]),
        "languages": lambda: languages(walk, run),
        "vocabulary": lambda: vocabulary(walk),
        "marc": lambda: marc(walk),
        "python": lambda: python(walk, sys.executable),
        "demo": lambda: demo(walk),
    }


def _called(arguments: Sequence[str]) -> Answer:
    done = subprocess.run(
        [sys.executable, "-m", "depl", *arguments], capture_output=True, text=True, check=False
    )
    return Answer(done.returncode, done.stdout, done.stderr)


if __name__ == "__main__":
    main()
