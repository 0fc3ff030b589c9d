"""Damaged feedback and damaged queues of reviews are refused, or read as they were."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from depl.core.errors import DeplError, RunError
from depl.labels.decisions import Decision
from depl.labels.feedback import FeedbackStore
from depl.labels.review_queue import NewDocument, ReviewQueue

FEEDBACK, QUEUE = "feedback/feedback.sqlite", "review/queue.sqlite"
TEXTS = [f"käse and wine number {n} " * 5 for n in range(30)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    run = tmp_path_factory.mktemp("whole")
    for n, text in enumerate(TEXTS):
        FeedbackStore(run).add(text, [Decision(label=f"l{n % 5}", verdict="added")], by="anna")
    FeedbackStore(run).undo(3)
    new = [NewDocument(x, suggested=[("l1", 0.5)], terms=[("wine", 1.0)]) for x in TEXTS]
    ReviewQueue(run).add(new)
    return run


def use(run: Path) -> None:
    """Everything that reads and writes."""
    store, queue = FeedbackStore(run), ReviewQueue(run)
    store.history()
    store.documents()
    store.count(label="l1")
    store.add("a new text", [Decision(label="l1", verdict="rejected")])
    store.undo(1)
    queue.waiting()
    queue.texts()
    queue.document(7)
    queue.look(7, by="anna")
    queue.mark(7, "done")
    queue.progress()
    queue.add([NewDocument("one more")])


DAMAGES = {
    "a byte": lambda raw, place, rng: raw[:place] + rng.randbytes(1) + raw[place + 1 :],
    "16 bytes": lambda raw, place, rng: raw[:place] + rng.randbytes(16) + raw[place + 16 :],
    "zeros": lambda raw, place, rng: raw[:place] + bytes(512) + raw[place + 512 :],
    "no UTF-8": lambda raw, place, rng: raw[:place] + b"\xff" + raw[place + 1 :],
    "cut": lambda raw, place, rng: raw[:place],
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", [FEEDBACK, QUEUE])
def test_a_damaged_database_is_used_or_refused(whole, tmp_path, name, damage):
    rng = random.Random(damage)
    raw = (whole / name).read_bytes()
    written = [place for place, byte in enumerate(raw) if byte]
    said = []
    for n in range(12):
        run = Path(shutil.copytree(whole, tmp_path / str(n)))
        (run / name).write_bytes(DAMAGES[damage](raw, rng.choice(written), rng))
        try:
            use(run)
        except DeplError as error:
            said.append(str(error))
    assert all(name in message and len(message) < 600 for message in said)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        (FEEDBACK, b"anna", b"ann\xff"),
        (QUEUE, b"[[", b"[\xff"),
        (QUEUE, b'"l1", 0.5', b'"l1",:0.5'),
    ],
)
def test_texts_that_cannot_be_read_are_damage(whole, tmp_path, name, old, new):
    run = Path(shutil.copytree(whole, tmp_path / "run"))
    (run / name).write_bytes((whole / name).read_bytes().replace(old, new))
    with pytest.raises(RunError, match=r"sqlite is damaged \(.*Put the file back from a copy"):
        use(run)


def test_a_text_that_is_not_what_it_was_is_never_learnt_from(whole, tmp_path):
    run = Path(shutil.copytree(whole, tmp_path / "run"))
    path = run / FEEDBACK
    raw = path.read_bytes()
    assert raw.count(b"wine number 4 ") == 5
    path.write_bytes(raw.replace(b"wine number 4 ", b"milk number 4 "))
    with pytest.raises(RunError, match=r"feedback\.sqlite is damaged \(the text of the document"):
        FeedbackStore(run).documents()
