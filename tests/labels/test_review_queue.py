"""The queue of documents to look at."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from depl.core.errors import CorpusError
from depl.labels.review_queue import NewDocument, NotInQueueError, Progress, ReviewQueue


@pytest.fixture
def queue(tmp_path: Path) -> ReviewQueue:
    found = ReviewQueue(tmp_path)
    found.add([NewDocument("Wine of grapes", "a", "new.csv", [("2560", 0.5)]), NewDocument("Cod")])
    return found


def test_documents_are_kept_once_with_their_suggestions(queue: ReviewQueue) -> None:
    assert queue.add([NewDocument("Wine of grapes", "a"), NewDocument("Wine, again", "a")]) == 1
    first, second, third = queue.waiting()
    assert (first.id, first.source, first.suggested) == ("a", "new.csv", [("2560", 0.5)])
    assert second.id.startswith("text-")
    assert queue.document(third.number).text == "Wine, again"
    queue.renew({first.number: ([("17", 0.25)], [("wine", 0.5)])})
    renewed = queue.waiting()[0]
    assert (renewed.suggested, renewed.terms) == ([("17", 0.25)], [("wine", 0.5)])
    with pytest.raises(CorpusError, match="empty"):
        queue.add([NewDocument("fine", "b"), NewDocument(" ")])
    assert queue.progress().total == 3


def test_the_last_mark_counts(queue: ReviewQueue) -> None:
    first, second = (x.number for x in queue.waiting())
    queue.mark(first, "done", by="anna")
    queue.mark(second, "skipped", by="ben")
    assert queue.progress() == Progress(2, 1, 1, {"anna": 1})
    assert queue.texts() == {}
    queue.mark(first, "open", by="ben")
    assert queue.progress() == Progress(2, 0, 1, {})
    assert queue.texts() == {first: "Wine of grapes"}
    assert queue.document(first).state == "open"


def test_two_people_look_at_different_documents(queue: ReviewQueue) -> None:
    first, second = (x.number for x in queue.waiting())
    assert queue.look(first, by="anna")
    assert not queue.look(first, by="ben")
    assert [x.free for x in queue.waiting(by="ben")] == [False, True]
    assert [x.free for x in queue.waiting(by="anna")] == [True, True]
    assert queue.document(first).looking == "anna"
    assert queue.look(second, by="anna")  # and the first is free again
    assert queue.look(first, by="ben", seconds=-1)  # for a time that is over
    assert queue.document(first).looking == ""
    queue.mark(second, "done", by="anna")
    assert queue.document(second).looking == ""


def test_a_queue_that_is_not_there_is_empty(tmp_path: Path) -> None:
    queue = ReviewQueue(tmp_path)
    assert queue.waiting() == []
    assert queue.progress() == Progress()
    assert not (tmp_path / "review").exists()
    with pytest.raises(NotInQueueError, match="no document 1"):
        queue.document(1)
    with pytest.raises(NotInQueueError, match="no document 1"):
        queue.mark(1, "done")
    with pytest.raises(NotInQueueError, match="no document 1"):
        queue.look(1, by="")


def test_clearing_forgets_documents_and_marks(queue: ReviewQueue) -> None:
    queue.mark(queue.waiting()[0].number, "done", by="anna")
    assert queue.clear() == 2
    assert queue.progress() == Progress()
    queue.add([NewDocument("Wine of grapes", "a")])
    assert queue.progress() == Progress(1, 0, 0, {})


def _take_all(run: Path, name: str) -> None:
    queue = ReviewQueue(run)
    while True:
        free = [x for x in queue.waiting(by=name) if x.free]
        if not free:
            return
        if queue.look(free[0].number, by=name):
            queue.mark(free[0].number, "done", by=name)


def test_two_processes_share_the_work_and_none_is_done_twice(tmp_path: Path) -> None:
    queue = ReviewQueue(tmp_path)
    queue.add([NewDocument(f"Document {n}") for n in range(12)])
    start = multiprocessing.get_context("fork").Process
    people = [start(target=_take_all, args=(tmp_path, name)) for name in ("anna", "ben")]
    for person in people:
        person.start()
    for person in people:
        person.join(60)
    progress = queue.progress()
    assert progress.done == 12
    assert sum(progress.by.values()) == 12


def test_a_queue_of_an_earlier_version_is_read(queue: ReviewQueue) -> None:
    first = queue.waiting()[0].number
    queue.renew({first: ([], [("wine", 0.5, 3)])})  # terms had the number of documents as well
    assert queue.waiting()[0].terms == [("wine", 0.5)]
