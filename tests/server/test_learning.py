"""``depl serve --learn``: when the service learns, and that it answers meanwhile."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import httpx
import pytest
from tests.server.test_serve_process import metric, wait_until

from depl.labels.decisions import Decision
from depl.labels.feedback import FeedbackStore
from depl.labels.review_queue import NewDocument, ReviewQueue
from depl.run.folder import Run
from depl.server.learning import Due, Learners

TEXT = "Storage of honey in hives and the keeping of bees"


def test_it_is_due_after_enough_decisions_or_a_pause():
    due = Due(after=3, pause=60)
    assert not due.look(0, now=0.0)
    assert not due.look(2, now=10.0)
    assert due.look(3, now=11.0)
    assert not due.look(4, now=20.0)
    assert not due.look(4, now=79.0)
    assert due.look(4, now=80.0)
    assert not due.look(4, now=500.0)


def test_feedback_from_before_the_start_is_learnt_after_the_pause():
    due = Due(after=100, pause=60)
    assert not due.look(5, now=1000.0)
    assert due.look(5, now=1060.0)


def test_decisions_and_undos_are_changes(tmp_path: Path):
    store = FeedbackStore(tmp_path)
    assert store.changes() == 0
    (entry,) = store.add("wine", [Decision("2560", "accepted")])
    assert store.changes() == 1
    store.undo(entry.number)
    assert store.changes() == 2


@pytest.mark.skipif(os.name != "posix", reason="these signals are POSIX's")
def test_the_service_learns_while_it_answers(own_run: Path, served):
    queue = ReviewQueue(own_run)
    queue.add([NewDocument(TEXT, "waits"), NewDocument("wine", "done")])
    queue.mark(2, "done")
    with served(own_run, "--allow-writes", "--learn", 2) as service:
        statuses, stop = [], threading.Event()

        def ask() -> None:
            with httpx.Client(base_url=service.url, timeout=60) as client:
                while not stop.is_set():
                    answer = client.post("/v1/predict", json={"texts": [TEXT]})
                    statuses.append(answer.status_code)

        before = httpx.get(f"{service.url}/v1/info", timeout=60).json()
        asking = threading.Thread(target=ask)
        asking.start()
        try:
            said = {"77": "added", "2560": "rejected"}
            decisions = [{"key": x, "label": x, "verdict": verdict} for x, verdict in said.items()]
            body = {"text": TEXT, "decisions": decisions}
            answer = httpx.post(f"{service.url}/v1/feedback", json=body, timeout=60)
            assert answer.status_code < 300, answer.text
            wait_until(lambda: metric(service.url, "depl_reloads_total") == 1, seconds=200)
        finally:
            stop.set()
            asking.join()
        assert set(statuses) == {200}
        assert Run.open(own_run).learned.current() == 1
        lines = [service.process.stderr.readline() for _ in range(2)]
        assert '"learnt"' in lines[0]
        assert '"labels": 2' in lines[0]
        assert '"reloaded"' in lines[1]
        found = httpx.get(f"{service.url}/v1/labels/77", timeout=60).json()
        assert found["training_documents"] == 1
        info = httpx.get(f"{service.url}/v1/info", timeout=60).json()
        assert info["run"] not in ("", before["run"])
        assert info["documents"] == before["documents"] + 1
        asked = httpx.post(f"{service.url}/v1/predict", json={"texts": [TEXT]}, timeout=60)
        assert asked.json()["run"] == info["run"]
    open_, done = queue.waiting()  # what waits is asked about with what the run knows now
    assert "77" in dict(open_.suggested)
    assert not done.suggested


def test_what_goes_wrong_is_logged_and_does_not_end_it(own_run: Path, caplog):
    store = FeedbackStore(own_run)
    store.add(TEXT, [Decision("77", "added")])
    learned = threading.Event()
    with Learners([own_run / "nowhere", own_run], 1, learned.set) as learners:
        (own_run / "manifest.json").rename(own_run / "aside.json")
        (own_run / ".manifest.copy.json").rename(own_run / "copy.json")
        learners.start()
        wait_until(lambda: "learning failed" in caplog.text, seconds=200)
        (own_run / "aside.json").rename(own_run / "manifest.json")
        (own_run / "copy.json").rename(own_run / ".manifest.copy.json")
        store.add("Bees and honey", [Decision("77", "added")])
        assert learned.wait(200)
