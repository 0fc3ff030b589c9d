"""``depl serve --workers 2``: two processes that answer as one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

from depl import Client
from depl.core.workers import receive, send
from depl.server.batching import Batching
from depl.server.listening import listen
from depl.server.plan import Plan
from depl.server.security import Access

pytestmark = pytest.mark.skipif(os.name != "posix", reason="several workers are for POSIX")

NEW = {"id": "x-1", "name": "carbon border levy"}


def workers_of(pid: int) -> list[int]:
    return [int(x) for x in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def asked_of_both(url: str, path: str, method: str = "GET") -> list[httpx.Response]:
    """Answers to the same request on many connections: hardly ever all by one worker."""
    return [httpx.request(method, f"{url}{path}") for _ in range(12)]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks up processes in /proc")
def test_two_workers_answer_as_one(own_run, served, tmp_path):
    table = tmp_path / "records.csv"
    rows = [f"r{i},Labelling of sparkling wines number {i}" for i in range(1_200)]
    table.write_text("\n".join(["id,text", *rows, ""]))
    with served(own_run, "--workers", 2, "--allow-writes") as service:
        url = service.url
        first = workers_of(service.process.pid)
        assert len(first) == 2

        # What one of them is told, both know.
        assert httpx.post(f"{url}/v1/labels", json=NEW).status_code == 201
        assert {x.status_code for x in asked_of_both(url, "/v1/labels/x-1")} == {200}
        decision = {"label": "2560", "verdict": "accepted", "key": "0123456789abcdef"}
        given = httpx.post(f"{url}/v1/feedback", json={"text": "Port", "decisions": [decision]})
        assert given.status_code == 201, given.text
        assert {x.json()["total"] for x in asked_of_both(url, "/v1/feedback")} == {1}
        answered = sum(
            float(line.rpartition(" ")[2])
            for line in httpx.get(f"{url}/metrics").text.splitlines()
            if line.startswith("depl_requests_total")
        )
        assert answered == 26

        # A reload is one of both, and fails as a whole.
        assert httpx.post(f"{url}/v1/reload").json()["labels"] == 13
        assert 'depl_reloads_total{run="own"} 2.0' in httpx.get(f"{url}/metrics").text
        manifest = own_run / "manifest.json"
        whole = manifest.read_bytes()
        manifest.write_text("{")
        refused = httpx.post(f"{url}/v1/reload")
        assert (refused.status_code, "damaged" in refused.text) == (500, True)
        manifest.write_bytes(whole)

        # One labels a file and dies: the other continues, and there are two again.
        with Client(url) as client:
            job = client.start_job(table, k=1)
            while client.job(job.id).documents == 0:
                time.sleep(0.01)
            holder = json.loads((own_run / ".jobs.lock.holder").read_text())["process"]
            os.kill(holder, signal.SIGKILL)
        with Client(url) as client:  # the other's connection may have been to the one that is dead
            end = time.monotonic() + 60
            while (seen := client.job(job.id)).state != "finished":
                assert time.monotonic() < end, seen
                time.sleep(0.05)
            client.save_result(job.id, tmp_path / "labels.csv")
        assert len((tmp_path / "labels.csv").read_text().splitlines()) == 1_201
        while len(workers_of(service.process.pid)) < 2:
            assert time.monotonic() < end
            time.sleep(0.05)

        # Both finish what they have accepted.
        answers: list[int] = []

        def ask() -> None:
            body = {"texts": ["wine and herring " * 300] * 40}
            answers.append(httpx.post(f"{url}/v1/predict", json=body, timeout=60).status_code)

        asking = [threading.Thread(target=ask) for _ in range(4)]
        for thread in asking:
            thread.start()
        while 'depl_queue{run="own"} 0.0' in httpx.get(f"{url}/metrics").text:
            time.sleep(0.01)
        service.signal(signal.SIGTERM)
        for thread in asking:
            thread.join()
        assert set(answers) == {200}
        assert service.process.wait(10) == 0
        assert not any(Path(f"/proc/{pid}").exists() for pid in first)


def test_a_worker_ends_when_its_supervisor_is_gone(fitted_run):
    command = [sys.executable, "-c", "from depl.server.worker import main; main()"]
    with listen("127.0.0.1", 0) as listener:
        plan = Plan(folders={"laws": fitted_run}, access=Access(), batching=Batching(), most_jobs=0)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(command, pass_fds=[listener.fileno()], **pipes) as worker:
            try:
                send(worker.stdin, (plan, listener.fileno(), 1))
                assert receive(worker.stdout)[0] == "ready"
                worker.stdin.close()
                assert worker.wait(20) == 0
            finally:
                worker.kill()
