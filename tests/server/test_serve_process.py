"""``depl serve`` as a process: where it listens, what signals do."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from contextlib import ExitStack

import httpx
import pytest
from benchmarks.serve import mixture, put_under_load
from typer.testing import CliRunner

from depl.cli.app import app, main

posix = pytest.mark.skipif(os.name != "posix", reason="these signals are POSIX's")

LONG = "wine and customs duties on sparkling grapes and herring " * 1_000


def metric(url: str, name: str) -> float:
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name}{{"))


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
        service.signal(signal.SIGHUP)  # as soon as the address is known, and before it answers
        wait_until(lambda: metric(service.url, "depl_reloads_total") == 1)
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
            wait_until(lambda: statuses)
            service.signal(signal.SIGHUP)
            wait_until(lambda: metric(service.url, "depl_reloads_total") == 2)
        finally:
            stop.set()
            for thread in asking:
                thread.join()
        assert set(statuses) == {200}
        (own_run / "manifest.json").write_text("{")
        service.signal(signal.SIGHUP)
        assert '"reloaded"' in service.process.stderr.readline()
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


@posix
def test_silent_and_slow_connections_keep_nobody_out(fitted_run, served):
    with served(fitted_run) as service, ExitStack() as open_sockets:
        host, port = service.url.removeprefix("http://").split(":")
        for i in range(700):
            sender = open_sockets.enter_context(socket.create_connection((host, int(port))))
            if i % 3 == 1:
                sender.sendall(b"GET /v1/info HT")
            elif i % 3 == 2:
                sender.sendall(
                    b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"
                )
        for _ in range(3):
            asked = httpx.post(f"{service.url}/v1/predict", json={"texts": ["wine"]}, timeout=30)
            assert asked.status_code == 200
        service.signal(signal.SIGTERM)
        assert service.process.wait(20) == 0  # without waiting for any of them


def test_a_client_that_never_finishes_its_headers_is_closed(
    fitted_run, uvicorn_running, monkeypatch, model
):
    from depl.server import connections
    from depl.server.app import create_app

    monkeypatch.setattr(connections, "MAX_SILENCE", 0.3)
    with uvicorn_running(create_app(model), http=connections.Connection) as service:
        host, port = service.url.removeprefix("http://").split(":")
        for begun in (b"", b"GET /healthz HTTP/1.1\r\nHost: loc"):
            with socket.create_connection((host, int(port)), timeout=20) as sender:
                sender.sendall(begun)
                assert sender.recv(100) == b""  # the service has hung up


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes its certificate with openssl")
def test_https_with_a_certificate(fitted_run, served, tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command, *names, *made], check=True, capture_output=True)
    with served(fitted_run, "--certfile", certificate, "--keyfile", key) as service:
        assert service.url.startswith("https://")
        trusting = ssl.create_default_context(cafile=certificate)
        assert httpx.get(f"{service.url}/v1/info", verify=trusting).status_code == 200


@pytest.mark.usefixtures("logs_restored")
def test_what_cannot_work_is_one_message(fitted_run, tmp_path, monkeypatch, capsys):
    def refused(*arguments: object) -> str:
        monkeypatch.setattr(sys, "argv", ["depl", "serve", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 2
        return " ".join(capsys.readouterr().err.split())

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"Port {port} is in use" in refused(fitted_run, "--port", port)
    assert "--keyfile needs --certfile" in refused(fitted_run, "--keyfile", tmp_path / "k")
    assert "Cannot serve HTTPS" in refused(fitted_run, "--certfile", tmp_path / "no")
    assert "no run folder" in refused(tmp_path / "nothing", "--port", 0)
    on_ray = fitted_run, "--ray", "local"
    assert "load balancer" in refused(*on_ray, "--certfile", tmp_path / "no")
    assert "listen at one port" in refused(*on_ray, "--port", 0)
    assert "--ray takes local" in refused(fitted_run, "--ray", "nonsense", "--port", port)
    message = refused(fitted_run, "--host", "0.0.0.0", "--allow-writes")
    assert "can be reached from other machines" in message
    assert "Cannot read the token" in refused(fitted_run, "--token-file", tmp_path / "no")
    monkeypatch.setenv("DEPL_TOKEN", "two words")
    assert "one word" in refused(fitted_run)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install 'depl[serve]'" in refused(fitted_run)


@pytest.mark.parametrize("told", [["--allow-writes"], ["--token", "abc"]])
def test_a_run_that_cannot_be_changed_is_said_at_the_start(own_run, monkeypatch, told):
    def started(*options: str) -> str:
        done = CliRunner().invoke(app, ["serve", str(own_run), "--port", "0", *options])
        assert done.exit_code == 0, done.exception
        return done.stderr

    monkeypatch.setattr("depl.server.process.run_app", lambda *_: None)
    assert "not writable" not in started(*told)
    feedback = own_run / "feedback"
    feedback.mkdir()
    for closed in (own_run, feedback):
        monkeypatch.setattr(os, "access", lambda path, mode, closed=closed: path != closed)
        assert f"Warning: {closed} is not writable" in started(*told)
    assert started().endswith("Stopped.\n")
    assert "not writable" not in started()
    assert "not writable" not in started(*told, "--read-only")


def test_many_clients_are_all_answered(fitted_run, served):
    labels = ["2560", "17"]
    with served(fitted_run) as process:
        request = mixture(["Wine of grapes", "Cod and herring"], labels)
        load = asyncio.run(put_under_load(f"{process.url}/", request, clients=64, seconds=3.0))
    assert load.errors == []
    assert len(load.latencies) >= 64
