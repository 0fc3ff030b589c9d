"""``depl serve`` as a process: where it listens, what signals do."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time

import httpx
import pytest

from depl.cli.app import main

posix = pytest.mark.skipif(os.name != "posix", reason="these signals are POSIX's")

LONG = "wine and customs duties on sparkling grapes and herring " * 1_000


def metric(url: str, name: str) -> float:
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))


def wait_until(true, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


@posix
def test_sigterm_finishes_what_was_accepted(fitted_run, served):
    with served(fitted_run, "--max-batch", 2) as service:
        answers = []

        def ask() -> None:
            answers.append(
                httpx.post(f"{service.url}/v1/predict", json={"texts": [LONG] * 60}, timeout=60)
            )

        asking = threading.Thread(target=ask)
        asking.start()
        wait_until(lambda: metric(service.url, "depl_queue") > 2)
        service.signal(signal.SIGTERM)
        asking.join()
        assert answers[0].status_code == 200
        assert len(answers[0].json()["results"]) == 60
        assert service.process.wait(10) == 0
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{service.url}/healthz")


@posix
def test_sighup_reloads_the_run_while_requests_are_answered(own_run, served):
    with served(own_run, "--max-batch", 4) as service:
        statuses, stop = [], threading.Event()

        def ask() -> None:
            with httpx.Client(base_url=service.url) as client:
                while not stop.is_set():
                    answer = client.post("/v1/predict", json={"texts": ["a carbon border levy"]})
                    statuses.append(answer.status_code)

        asking = [threading.Thread(target=ask) for _ in range(4)]
        for thread in asking:
            thread.start()
        try:
            service.signal(signal.SIGHUP)
            wait_until(lambda: metric(service.url, "depl_reloads_total") == 1)
        finally:
            stop.set()
            for thread in asking:
                thread.join()
        assert set(statuses) == {200}
        (own_run / "manifest.json").write_text("{")
        service.signal(signal.SIGHUP)
        assert '"reloaded"' in service.process.stderr.readline()
        assert "manifest.json is damaged" in service.process.stderr.readline()
        assert httpx.get(f"{service.url}/v1/labels/2560").status_code == 200
        # A client that disconnects is taken out of the queue; others are still answered.
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{service.url}/v1/predict", json={"texts": [LONG] * 250}, timeout=0.3)
        wait_until(lambda: metric(service.url, "depl_queue") == 0, seconds=5)
        assert metric(service.url, "depl_documents_total") < len(statuses) + 250
        service.signal(signal.SIGINT)
        assert service.process.wait(10) == 0


def test_what_cannot_work_is_one_message(fitted_run, tmp_path, monkeypatch, capsys):
    def refused(*arguments: object) -> str:
        monkeypatch.setattr(sys, "argv", ["depl", "serve", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 2
        return " ".join(capsys.readouterr().err.split())

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"port {port}" in refused(fitted_run, "--port", port)
    assert "no run folder" in refused(tmp_path / "nothing", "--port", 0)
    message = refused(fitted_run, "--host", "0.0.0.0", "--allow-writes")
    assert "can be reached from others" in message
    assert "Cannot read the token" in refused(fitted_run, "--token-file", tmp_path / "no")
    monkeypatch.setenv("DEPL_TOKEN", "two words")
    assert "one word" in refused(fitted_run)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install 'depl[serve]'" in refused(fitted_run)
