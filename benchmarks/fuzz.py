"""What the readers make of broken files: small corpora in every format, each changed in one file.

    python benchmarks/fuzz.py [--files 100000] [--first 0] [--seed 0] [--formats csv,parquet]

A file is changed by its bytes (bits, blocks, cuts, copies, lengths), by words that make trouble
(deep brackets, zero bytes, halves of surrogate pairs, huge numbers), or inside its packing, so that
gzip and zip are whole and what they hold is not. It is then read as a corpus, as documents to
suggest labels for, or as a table. A reader may read it, or refuse it with an error of its own in
at most 2,000 characters. Anything else is a failure: another exception, a longer message, a crash,
no end, or more than 2 GiB of memory.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import logging
import random
import re
import resource
import shutil
import struct
import sys
import tempfile
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pymarc
import xlsxwriter
import zstandard
from scipy.sparse import csr_matrix, save_npz

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.damage import DAMAGES, in_child, print_outcomes

from depl.core.errors import DeplError
from depl.readers import read
from depl.readers.documents import Documents

FINE = ("read", "refused")
FAILURES = ("unexpected", "long message", "crash", "hang")
LONGEST = 2_000  # characters of an error
_MEMORY = 2 << 30  # bytes beyond what the libraries have taken when they are loaded
_BATCH = 200  # files of one process; where it dies, they are read one by one
_SCRATCH = "/dev/shm" if Path("/dev/shm").is_dir() else None  # memory: a third of the time

_ROWS = [
    ("d1", "Rules on the bottling of sparkling wine", ["7", "2"]),
    ("d2", "Customs duties on „grüner Käse“ and œufs", ["2"]),
    ("d3", "Quality of olive oil, and its labels; a survey", ["9", "7"]),
    ("d4", "Wine of named vineyards", ["7"]),
]
_NAMES = {"7": "wine", "2": "customs duty", "9": "carbon levy"}
_WORDS = (
    *(b"\x00", b"\x00" * 40, b"\xff", b"\xed\xa0\x80", b"\\ud83d", b"\\u0000", b"\xef\xbf\xbd"),
    *(b"[" * 3_000, b'{"a":' * 3_000, b"9" * 5_000, b"1e999", b"NaN", b"-1", b"null", b"{}", b"[]"),
    *(b'"', b"'", b"\n", b"\r", b"\t", b",", b";", b"|", b"\\", b"\x1b[2J", b"\xe2\x80\xa8", b"<"),
    *(b"x" * 5_000, b",x" * 5_000, b"a\n" * 2_000, b"&lol;", b"<!DOCTYPE a [<!ENTITY a 'b'>]>"),
)


def _jsonl(folder: Path) -> None:
    _lines(folder / "labels.jsonl", [{"id": i, "name": n} for i, n in _NAMES.items()])
    _lines(folder / "train.jsonl", [{"id": i, "text": t, "labels": y} for i, t, y in _ROWS])


def _json(folder: Path) -> None:
    rows = [{"id": i, "title": t, "subjects": y} for i, t, y in _ROWS]
    (folder / "all.json").write_text(json.dumps(rows, indent=1, ensure_ascii=False))


def _delimited(suffix: str, mark: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        rows = [("id", "text", "labels"), *((i, f'"{t}"', ";".join(y)) for i, t, y in _ROWS)]
        (folder / f"train.{suffix}").write_text("\n".join(map(mark.join, rows)) + "\n")
        names = [("id", "name"), *_NAMES.items()]
        (folder / f"labels.{suffix}").write_text("\n".join(map(mark.join, names)) + "\n")

    return make


def _parquet(folder: Path) -> None:
    columns = dict(zip(("id", "text", "labels"), map(list, zip(*_ROWS, strict=True)), strict=True))
    pq.write_table(pa.table(columns), folder / "train.parquet", compression="zstd")
    names = {"id": list(_NAMES), "name": list(_NAMES.values())}
    pq.write_table(pa.table(names), folder / "labels.parquet", use_dictionary=False)


def _excel(folder: Path) -> None:
    book = xlsxwriter.Workbook(str(folder / "all.xlsx"))
    sheet = book.add_worksheet("Titles")
    for number, row in enumerate([("id", "text", "labels"), *_ROWS]):
        sheet.write_row(number, 0, [x if isinstance(x, str) else ";".join(x) for x in row])
    book.close()


def _pecos(folder: Path) -> None:
    (folder / "X.trn.txt").write_text("\n".join(text for _, text, _ in _ROWS))
    (folder / "output-items.txt").write_text("\n".join(_NAMES.values()))
    ids = list(_NAMES)
    matrix = [[float(label in y) for label in ids] for _, _, y in _ROWS]
    save_npz(folder / "Y.trn.npz", csr_matrix(matrix))


def _attentionxml(folder: Path) -> None:
    (folder / "train_texts.txt").write_text("\n".join(text for _, text, _ in _ROWS))
    (folder / "train_labels.txt").write_text("\n".join(" ".join(y) for *_, y in _ROWS))


def _annif(folder: Path) -> None:
    lines = [f"{t}\t{' '.join(f'<http://x/{i}>' for i in y)}" for _, t, y in _ROWS]
    (folder / "train.tsv").write_text("\n".join(lines))
    vocabulary = [f"<http://x/{i}>\t{name}" for i, name in _NAMES.items()]
    (folder / "vocab.tsv").write_text("\n".join(vocabulary))


def _annif_csv(folder: Path) -> None:
    rows = [f'"{t}",{" ".join(f"http://x/{i}" for i in y)}' for _, t, y in _ROWS]
    (folder / "train.csv").write_text("\n".join(["text,subject_uris", *rows]))
    names = [f"http://x/{i},{name}" for i, name in _NAMES.items()]
    (folder / "vocab.csv").write_text("\n".join(["uri,label_en", *names]))


def _lf_json(folder: Path) -> None:
    at = list(_NAMES)
    rows = [{"uid": i, "title": t, "target_ind": [at.index(x) for x in y]} for i, t, y in _ROWS]
    for name, found in (
        ("trn", rows),
        ("lbl", [{"uid": i, "title": n} for i, n in _NAMES.items()]),
    ):
        raw = "".join(json.dumps(row) + "\n" for row in found).encode()
        (folder / f"{name}.json.gz").write_bytes(gzip.compress(raw, mtime=0))


def _records() -> list[pymarc.Record]:
    made = []
    for own_id, text, labels in _ROWS:
        record = pymarc.Record(leader="00000nam a2200000 a 4500")
        record.add_field(pymarc.Field("001", data=own_id))
        blank = pymarc.Indicators(" ", "7")
        record.add_field(pymarc.Field("245", blank, [pymarc.Subfield("a", text)]))
        for label in labels:
            parts = [pymarc.Subfield("a", _NAMES[label]), pymarc.Subfield("0", label)]
            record.add_field(pymarc.Field("650", blank, parts))
        made.append(record)
    return made


def _marc(folder: Path) -> None:
    (folder / "all.mrc").write_bytes(b"".join(record.as_marc() for record in _records()))


def _marcxml(folder: Path) -> None:
    found = b"".join(pymarc.record_to_xml(record, namespace=True) for record in _records())
    (folder / "all.marcxml").write_bytes(b"<collection>" + found + b"</collection>")


def _lines(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


FORMATS: dict[str, Callable[[Path], None]] = {
    "jsonl": _jsonl,
    "json": _json,
    "csv": _delimited("csv", ","),
    "tsv": _delimited("tsv", "\t"),
    "parquet": _parquet,
    "excel": _excel,
    "pecos": _pecos,
    "attentionxml": _attentionxml,
    "annif": _annif,
    "annif csv": _annif_csv,
    "lf-json": _lf_json,
    "marc": _marc,
    "marcxml": _marcxml,
}


def _put_word(raw: bytes, rng: random.Random) -> bytes:
    """A word that makes trouble, between the others or in the place of one."""
    start = rng.randint(0, len(raw))
    end = start + rng.choice((0, 0, 1, 8))
    return raw[:start] + rng.choice(_WORDS) + raw[end:]


def _copy_block(raw: bytes, rng: random.Random) -> bytes:
    """A part of the file once more, somewhere else."""
    start, to = sorted((rng.randint(0, len(raw)), rng.randint(0, len(raw))))
    return raw[:to] + raw[start : start + rng.randint(1, 200)] + raw[to:]


def _set_number(raw: bytes, rng: random.Random) -> bytes:
    """Four or eight bytes, such as a length, as another number."""
    form = rng.choice(("<i", "<q", ">i"))
    size = struct.calcsize(form)
    if len(raw) < size:
        return raw
    start = rng.randint(0, len(raw) - size)
    number = rng.choice((0, -1, 1, 2**31 - 1, 2**30, 2**16))
    return raw[:start] + struct.pack(form, number) + raw[start + size :]


def _change_number(raw: bytes, rng: random.Random) -> bytes:
    """A number in decimals, as another one."""
    found = list(re.finditer(rb"\d+", raw))
    if not found:
        return raw
    place = rng.choice(found)
    new = rng.choice((b"0", b"-1", b"99999999999999999999", b"2147483647", b"1e400", b"4.5"))
    return raw[: place.start()] + new + raw[place.end() :]


Change = Callable[[bytes, random.Random], bytes]
CHANGES: dict[str, Change] = {
    "word": _put_word,
    "copy": _copy_block,
    "number": _set_number,
    "decimals": _change_number,
    **{name: change for name, change in DAMAGES.items() if name != "deleted"},  # type: ignore[dict-item]
}


def _inside(path: Path, raw: bytes, change: Change, rng: random.Random) -> bytes:
    """Change what a file packs, and pack it again; a file that packs nothing is changed itself."""
    if path.suffix == ".gz":
        return gzip.compress(change(gzip.decompress(raw), rng), mtime=0)
    if not zipfile.is_zipfile(io.BytesIO(raw)):
        return change(raw, rng)
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(made, "w") as new:
        chosen = rng.choice(old.namelist())
        for name in old.namelist():
            member = old.read(name)
            new.writestr(name, change(member, rng) if name == chosen else member)
    return made.getvalue()


class Case(NamedTuple):
    """One changed file: which format, which file, what was changed, and how it is read."""

    format: str
    file: str
    change: str
    how: str


def make_case(number: int, seed: int, whole: Path, formats: list[str], to: Path) -> Case:
    """A copy of a corpus with one file changed."""
    rng = random.Random(f"{seed}-{number}")
    format = formats[number % len(formats)]
    shutil.copytree(whole / format, to)
    path = rng.choice(sorted(to.iterdir()))
    change = rng.choice(list(CHANGES))
    raw = path.read_bytes()
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        with suppress(Exception):  # what the first change broke may not be packed again
            inside = rng.random() < 0.6
            raw = _inside(path, raw, CHANGES[change], rng) if inside else CHANGES[change](raw, rng)
    if format not in ("excel", "parquet") and path.suffix != ".npz" and rng.random() < 0.1:
        packed = path.with_name(path.name.removesuffix(".gz") + ".zst")
        path.unlink()
        path, raw = packed, zstandard.compress(raw)
    path.write_bytes(raw)
    return Case(format, path.name, change, rng.choice(("stop", "skip", "documents", "table")))


def outcome(case: Case, folder: Path) -> tuple[str, str]:
    """What reading a changed file leads to, and what was said."""
    path = folder / case.file
    try:
        if case.how == "documents":
            for _ in Documents([str(path)], left_out=_short):
                pass
        elif case.how == "table":
            read(path, on_error="skip")
        else:
            read(folder, on_error=case.how)
    except DeplError as error:
        what = "refused" if len(str(error)) <= LONGEST else "long message"
        return what, f"{len(str(error))} characters: {error}"
    except _LongMessageError as error:
        return "long message", str(error)
    except Exception:
        return "unexpected", traceback.format_exc()[-2_000:]
    return "read", ""


class _LongMessageError(Exception):
    pass


def _short(place: str, why: str) -> None:
    if len(place) + len(why) > LONGEST:
        raise _LongMessageError(why)


def trial(
    numbers: range, seed: int, whole: Path, formats: list[str]
) -> list[tuple[int, Case, str, str]]:
    """Number, case, outcome and words of each changed file."""
    logging.getLogger("depl.readers").addHandler(logging.NullHandler())
    logging.getLogger("depl.readers").propagate = False
    found = []
    for number in numbers:
        with tempfile.TemporaryDirectory(dir=_SCRATCH) as name:
            folder = Path(name, "corpus")
            case = make_case(number, seed, whole, formats, folder)
            found.append((number, case, *outcome(case, folder)))
    return found


def prepare(folder: Path, formats: list[str]) -> None:
    """The corpora before any change; each must be readable."""
    for name in formats:
        (folder / name).mkdir()
        FORMATS[name](folder / name)
        read(folder / name)


def _bounded(
    numbers: range, seed: int, whole: Path, formats: list[str]
) -> list[tuple[int, Case, str, str]]:
    """The trial with a limit to its memory."""
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + _MEMORY, taken + _MEMORY))
    return trial(numbers, seed, whole, formats)


def main() -> None:
    """Print a table of formats and outcomes; the exit code is 1 if there was a failure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--formats", default=",".join(FORMATS))
    parser.add_argument("--first", type=int, default=0, help="the number of the first file")
    options = parser.parse_args()
    formats = options.formats.split(",")
    counts: Counter[tuple[str, str]] = Counter()
    failures = []
    with tempfile.TemporaryDirectory(dir=_SCRATCH) as name:
        prepare(Path(name), formats)
        first, last = options.first, options.first + options.files
        batches = [range(i, min(i + _BATCH, last)) for i in range(first, last, _BATCH)]
        while batches:
            numbers = batches.pop(0)
            kind, found = in_child(lambda n=numbers: _bounded(n, options.seed, Path(name), formats))
            if kind != "answer" and len(numbers) > 1:
                batches[:0] = [range(i, i + 1) for i in numbers]
                continue
            if kind != "answer":
                with tempfile.TemporaryDirectory(dir=_SCRATCH) as again:
                    folder = Path(again, "corpus")
                    case = make_case(numbers[0], options.seed, Path(name), formats, folder)
                what = kind if kind in FAILURES else "unexpected"
                found = [(numbers[0], case, what, str(found))]
            for number, case, what, said in found:
                counts[case.format, what] += 1
                if what not in FINE:
                    failures.append(f"{what}: file {number}, {case}\n{said}")
                elif options.files == 1:  # somebody wants to see what it does
                    print(what, case, said)
    print_outcomes("format", formats, (*FINE, *FAILURES), counts)
    for line in failures[:20]:
        print(line)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
