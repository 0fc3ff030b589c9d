"""What a run with one damaged file answers: copies of small runs, each damaged in one place.

    python benchmarks/damage.py [--copies 2000] [--seed 0] [--sparse]

Four runs are fitted: two sparse ones and two with a tiny encoder. Every copy of one of them has
one file changed: a bit, 16 bytes, a page of zeros, the head or the tail cut off, emptied, deleted,
or swapped with the same file of the other run. A process of its own loads the copy, suggests labels
and explains one. It may answer as the whole run does (the file is not needed for that), or refuse
with an error that names the file and the command that repairs it. Anything else is a failure:
another answer, a crash, a traceback, an error that says less, or no end.
"""

from __future__ import annotations

import argparse
import os
import pickle
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from depl.core.corpus import Corpus, Label, LabelSet
from depl.core.errors import DeplError
from depl.model.classifier import Classifier
from depl.pipeline.fit import fit
from depl.run.config import Config
from depl.run.manifest import MANIFEST

FINE = ("right", "clear error")
FAILURES = ("silently wrong", "crash", "traceback", "vague error", "hang")
_PAGE = 4_096
_PATIENCE = 120  # seconds
_LONGEST = 2_000  # characters of an error
_NOT_READ = {".lock", "logs", "report", ".scratch"}  # never read by what answers

_SPARSE = ("features.analyzer=words", "validation=0.25", "threads=1")
_NEURAL = (
    *_SPARSE,
    "encoder.training=full",
    "encoder.max_tokens=24",
    "classifier.epochs=2",
    "classifier.batch_size=16",
    "retrieval.epochs=2",
    "retrieval.batch_size=16",
    "device=cpu",
)


def _cut_head(raw: bytes, rng: random.Random) -> bytes:
    return raw[rng.randint(1, max(1, len(raw) - 1)) :]


def _cut_tail(raw: bytes, rng: random.Random) -> bytes:
    return raw[: rng.randint(0, max(0, len(raw) - 1))]


def _overwritten(raw: bytes, new: bytes, rng: random.Random) -> bytes:
    start = rng.randint(0, max(0, len(raw) - len(new)))
    return (raw[:start] + new + raw[start + len(new) :])[: len(raw)]


def _flip_bit(raw: bytes, rng: random.Random) -> bytes:
    if not raw:
        return raw
    place = rng.randrange(len(raw))
    return raw[:place] + bytes([raw[place] ^ 1 << rng.randrange(8)]) + raw[place + 1 :]


DAMAGES: dict[str, Callable[[bytes, random.Random], bytes | None]] = {
    "bit": _flip_bit,
    "16 bytes": lambda raw, rng: _overwritten(raw, rng.randbytes(16), rng),
    "page of zeros": lambda raw, rng: _overwritten(raw, bytes(min(_PAGE, len(raw))), rng),
    "head cut": _cut_head,
    "tail cut": _cut_tail,
    "emptied": lambda raw, rng: b"",
    "deleted": lambda raw, rng: None,
}
SWAPPED = "swapped"


def corpus(seed: int, n: int = 120, n_labels: int = 12) -> Corpus:
    """Random documents; two words decide each label."""
    rng = np.random.default_rng(seed)
    words = np.array([f"{a}{b}" for a in "bdfgklm" for b in ("ab", "eg", "ik", "on", "ur")])
    labels = LabelSet(Label(f"l{j}", str(words[2 * j])) for j in range(n_labels))
    rows = [sorted(rng.choice(n_labels, 2, replace=False).tolist()) for _ in range(n)]
    texts = [
        " ".join([*(words[2 * j + rng.integers(2)] for j in row), *rng.choice(words, 5)])
        for row in rows
    ]
    return Corpus.from_rows([f"d{i}" for i in range(n)], texts, rows, labels)


def answers(run: Path) -> list[object]:
    """What a run says about some texts."""
    model = Classifier.load(run)
    texts = corpus(7, 12).texts
    said: list[object] = []
    for row in model.predict(texts, 5).rows(model.labels):
        said.append([(label.id, label.name, round(score, 6)) for label, score in row])
    best = model.explain_best(texts[0], 1)[0]
    said.append(repr(best))
    return said


def in_child(do: Callable[[], object]) -> tuple[str, Any]:
    """What a process of its own returned or raised, as a kind and a value.

    Always in a child: libraries that have used threads do not survive a fork.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.alarm(_PATIENCE)
        try:
            said: tuple[str, Any] = "answer", do()
        except DeplError as error:
            said = "error", str(error)
        except BaseException as error:  # all that would be a traceback
            said = "traceback", repr(error)
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(said, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        raw = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        ended_by = os.WTERMSIG(status)
        return ("hang" if ended_by == signal.SIGALRM else "crash"), f"signal {ended_by}"
    return pickle.loads(raw)  # type: ignore[no-any-return]  # written by this very program


def outcome(run: Path, expected: object, name: str) -> tuple[str, str]:
    """What a damaged run leads to, and what it said."""
    kind, said = in_child(lambda: answers(run))
    if kind == "answer":
        kind = "right" if said == expected else "silently wrong"
    elif kind == "error":
        # With the manifest of another run, it is the other files that are not what it says.
        named = name == MANIFEST or Path(name).name in said
        helpful = named and str(run) in said and "depl fit" in said and len(said) < _LONGEST
        kind = "clear error" if helpful else "vague error"
    return kind, str(said)


def files_of(run: Path) -> list[str]:
    """All files of a run that anything reads."""
    found = (path.relative_to(run) for path in sorted(run.rglob("*")) if path.is_file())
    return [path.as_posix() for path in found if path.parts[0] not in _NOT_READ]


def damaged_copy(
    run: Path, other: Path, name: str, kind: str, to: Path, rng: random.Random
) -> None:
    """A copy of a run, made of links, with one file damaged."""
    shutil.copytree(run, to, copy_function=os.link)
    path = to / name
    if kind == SWAPPED:
        new: bytes | None = (other / name).read_bytes()
    else:
        new = DAMAGES[kind](path.read_bytes(), rng)
    path.unlink()  # the link, so that the run itself stays whole
    if new is not None:
        path.write_bytes(new)


def trial(
    runs: dict[Path, Path], copies: int, seed: int, folder: Path
) -> tuple[Counter[tuple[str, str]], list[str]]:
    """Damage copies of runs, each given with the one to swap files with; counts and failures."""
    rng = random.Random(seed)
    expected = {run: whole(lambda run=run: answers(run)) for run in runs}
    counts: Counter[tuple[str, str]] = Counter()
    failures = []
    for i in range(copies):
        run = list(runs)[i % len(runs)]
        name = rng.choice(files_of(run))
        kinds = [*DAMAGES, *([SWAPPED] if (runs[run] / name).is_file() else [])]
        kind = rng.choice(kinds)
        copy = folder / f"copy-{i}"
        damaged_copy(run, runs[run], name, kind, copy, rng)
        what, said = outcome(copy, expected[run], name)
        counts[kind, what] += 1
        if what not in FINE:
            failures.append(f"{what}: {name}, {kind} (copy {i}): {said[:300]}")
        shutil.rmtree(copy)
    return counts, failures


def _fitted(folder: Path, *, sparse: bool) -> dict[Path, Path]:
    """Runs, each with another one of its kind."""
    pairs = {}
    if not sparse:
        # Imported once, for all children; nothing has started a thread yet.
        import depl.neural.encoder_files
        import depl.neural.retriever  # noqa: F401
    for kind in ("sparse",) if sparse else ("sparse", "neural"):
        settings: tuple[str, ...] = _SPARSE
        if kind == "neural":
            settings = (*_NEURAL, f"encoder.name='{_tiny_encoder(folder / 'encoder')}'")
        config = Config.load(None, settings)
        pair = [folder / f"{kind}-{seed}" for seed in (0, 1)]
        for seed, run in enumerate(pair):
            whole(lambda run=run, seed=seed, config=config: str(fit(corpus(seed), run, config)))
        pairs[pair[0]] = pair[1]
    return pairs


def whole(do: Callable[[], object]) -> object:
    """What a process of its own returned; it must return something."""
    kind, value = in_child(do)
    if kind != "answer":
        raise SystemExit(f"Without any damage: {kind}, {value}")
    return value


def _tiny_encoder(folder: Path) -> Path:
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.tiny_encoder import save_tiny_encoder

    whole(lambda: save_tiny_encoder(folder))
    return folder


def print_outcomes(
    title: str, kinds: Iterable[str], outcomes: Iterable[str], counts: Counter[tuple[str, str]]
) -> None:
    """Print a table of how often each kind had each of the outcomes that there were."""
    total: Counter[str] = Counter()
    for (_, outcome), n in counts.items():
        total[outcome] += n
    columns = [x for x in outcomes if x in total]
    print(f"{title:<16}" + "".join(f"{x:>16}" for x in columns))
    for kind in kinds:
        print(f"{kind:<16}" + "".join(f"{counts[kind, x]:>16,}" for x in columns))
    print(f"{'all':<16}" + "".join(f"{total[x]:>16,}" for x in columns))


def main() -> None:
    """Print a table of damages and outcomes; the exit code is 1 if there was a failure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--copies", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sparse", action="store_true", help="without the runs with an encoder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        runs = _fitted(Path(name), sparse=options.sparse)
        counts, failures = trial(runs, options.copies, options.seed, Path(name))
    print_outcomes("damage", (*DAMAGES, SWAPPED), (*FINE, *FAILURES), counts)
    for line in failures[:40]:
        print(line)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
