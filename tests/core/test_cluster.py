"""A real Ray cluster of two nodes does what one machine does, though workers die meanwhile."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from functools import partial
from importlib.metadata import version
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest
from starlette.testclient import TestClient
from tests.clusters import NODE, Disturbed, assert_suggests_the_same, files
from typer.testing import CliRunner

from depl.cli import predict
from depl.cli.app import app
from depl.core.cluster import RayExecutor, _connect, refuse_silent
from depl.core.corpus import Dataset
from depl.core.errors import ConfigError, DeplError, MissingExtraError, RunError
from depl.core.nodes import look_around, refuse_differing
from depl.model.bulk import Asked, rank_chunks
from depl.model.classifier import Classifier
from depl.pipeline.fit import fit
from depl.readers.document import Document
from depl.run.config import Config
from depl.server.app import PAGE
from depl.server.batching import Batching
from depl.server.listening import listen
from depl.server.plan import Plan
from depl.server.replicas import serving
from depl.server.security import Access
from depl.sparse.label_tree import LabelTreeSVM
from depl.sparse.tfidf import TfidfFeatures

pytest.importorskip("ray")

pytestmark = pytest.mark.usefixtures("many_tasks")

SETTINGS = {"linear": {"C_grid": [0.1, 0.7]}}


@pytest.fixture(scope="module")
def on_one_machine(
    dataset: Dataset, many_tasks: None, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    out = tmp_path_factory.mktemp("runs") / "local"
    return files(fit(dataset.train, out, Config.load(SETTINGS, ["threads=1"])).path)


def test_results_come_in_order_and_errors_of_ours_as_they_are(executor: RayExecutor):
    def refuse(payload: str, task: int) -> int:
        from depl.core.errors import CorpusError

        if task == 3:
            raise CorpusError(f"no {payload}")
        return task

    assert executor.workers == 2
    assert list(executor.map(pow, 2, range(40), ahead=2)) == [2**i for i in range(40)]
    with pytest.raises(DeplError, match=r"^no wine$"):
        list(executor.map(refuse, "wine", range(5)))


def test_tasks_are_taken_as_they_are_needed_and_dropped_at_the_end(executor: RayExecutor):
    taken: list[int] = []

    def tasks() -> Iterator[int]:
        for i in range(1_000):
            taken.append(i)
            yield i

    results = executor.map(pow, 2, tasks(), ahead=3)
    assert [next(results) for _ in range(4)] == [1, 2, 4, 8]
    assert len(taken) == 9  # the four, and five more of the six that two workers may be ahead
    results.close()
    assert len(taken) == 9


def test_a_label_tree_of_a_cluster_is_that_of_one_machine(
    executor: RayExecutor, dataset: Dataset, tmp_path: Path
):
    X = TfidfFeatures(n_jobs=1).fit_transform(dataset.train.texts)
    trees = [LabelTreeSVM().fit(X, dataset.train.Y, where) for where in (None, executor)]
    for tree, name in zip(trees, ("local", "ray"), strict=True):
        tree.save(tmp_path / name)
    for file in (tmp_path / "local").iterdir():
        assert file.read_bytes() == (tmp_path / "ray" / file.name).read_bytes()
    here, there = (
        tree.rank(X, 5, where) for tree, where in zip(trees, (None, executor), strict=True)
    )
    np.testing.assert_array_equal(here.indices, there.indices)
    np.testing.assert_array_equal(here.scores, there.scores)


def test_a_cluster_makes_the_bytes_of_one_machine_though_a_worker_is_killed_in_every_stage(
    executor: RayExecutor, dataset: Dataset, on_one_machine: dict[str, Any], tmp_path: Path
):
    (tmp_path / "marks").mkdir()
    moments = {("features", "call"), ("linear", "_solve"), ("linear", "_rank")}
    moments |= {("held_out", "_solve"), ("fusion", "_rank")}
    moments |= {("characters", "_solve"), ("characters", "_rank")}
    disturbed = Disturbed(executor, moments, tmp_path / "marks")
    run = fit(
        dataset.train,
        tmp_path / "run",
        Config.load(SETTINGS),
        executor=disturbed,
        observe=disturbed.observe,
    )
    assert disturbed.killed == disturbed.shared == moments  # all that have tasks
    assert files(run.path) == on_one_machine


def test_suggestions_of_a_cluster_are_those_of_one_machine(
    cluster: Any,
    executor: RayExecutor,
    fitted_run: Path,
    dataset: Dataset,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(predict, "_DOCUMENTS", 3)
    rows = [{"id": i, "text": t} for i, t in zip(dataset.dev.ids, dataset.dev.texts, strict=True)]
    texts = tmp_path / "texts.jsonl"
    texts.write_text("".join(json.dumps(row) + "\n" for row in rows))
    written = []
    for name, options in (("local", []), ("ray", ["--ray", cluster.address])):
        out = tmp_path / f"{name}.csv"
        command = ["predict", str(fitted_run), str(texts), "--output", str(out), *options]
        result = CliRunner().invoke(app, [*command, "-k", "3", "--threshold", "0.05"])
        assert result.exit_code == 0, result.output
        written.append(out.read_bytes())
    assert written[0] == written[1]


def test_a_worker_killed_while_it_suggests_changes_nothing(
    executor: RayExecutor, fitted_run: Path, dataset: Dataset, tmp_path: Path
):
    disturbed = Disturbed(executor, {("predict", "_rank_there")}, tmp_path)
    assert_suggests_the_same(fitted_run, dataset.dev, disturbed)


def test_a_run_that_is_not_the_one_that_was_asked_for(executor: RayExecutor, fitted_run: Path):
    asked = Asked(fitted_run, "another", 3)
    chunks = [[Document("1", "wine")]]
    with pytest.raises(RunError, match="changed while labels were being suggested"):
        list(rank_chunks(Classifier.load(fitted_run), asked, chunks, executor))


def test_a_task_that_kills_every_worker_is_told(
    executor: RayExecutor, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("depl.core.cluster._TRIES", 1)

    def die(payload: object, task: object) -> None:
        import os

        os._exit(3)

    with pytest.raises(DeplError, match=r"lost 2 times.*too little memory"):
        list(executor.map(die, None, [1]))


# The service on a cluster


def replicas_of(cluster: Any) -> set[int]:
    """The processes of this cluster's replicas."""
    found = set()
    for node in cluster.list_all_nodes():
        raylet = node.all_processes["raylet"][0].process.pid
        for child in Path(f"/proc/{raylet}/task/{raylet}/children").read_text().split():
            with suppress(OSError):
                if b"ServeReplica" in Path(f"/proc/{child}/cmdline").read_bytes():
                    found.add(int(child))
    return found


def found(pattern: str, answer: httpx.Response) -> str:
    return re.search(pattern, answer.text, re.MULTILINE)[1]


def free_port() -> int:
    """None of those that the system gives to connections, which come and go meanwhile."""
    for port in range(20_000 + os.getpid() % 5_000, 32_000):
        with suppress(ConfigError), listen("127.0.0.1", port):
            return port
    raise AssertionError("no port is free")


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks up processes in /proc")
def test_two_replicas_answer_as_one(cluster: Any, executor: RayExecutor, own_run: Path):
    port = free_port()
    plan = Plan(
        folders={"laws": own_run},
        access=Access(token="s3cret"),
        batching=Batching(),
        most_jobs=1,
    )
    asked = {"texts": ["Labelling of sparkling wines", "Freight trains"], "k": 3}
    with TestClient(plan.app(plan.load()), base_url="http://localhost") as alone:
        expected = alone.post("/v1/predict", json=asked).json()
    too_many = serving(plan, cluster.address, host="127.0.0.1", port=port, replicas=3)
    with pytest.raises(DeplError, match="3 replicas need a core each, but the cluster has 2"):
        too_many.__enter__()
    with (
        serving(plan, cluster.address, host="127.0.0.1", port=port) as service,
        httpx.Client(  # a connection for each request: hardly ever do all lead to one replica
            base_url=f"http://127.0.0.1:{port}",
            headers={"Authorization": "Bearer s3cret"},
            limits=httpx.Limits(max_keepalive_connections=0),
            timeout=60,
        ) as client,
    ):

        def answers(path: str, n: int = 20) -> list[httpx.Response]:
            return [client.get(path) for _ in range(n)]

        assert service.labels == {"laws": 12}
        first = replicas_of(cluster)
        assert len(first) == 2
        sent, labelled, end = 0, 0.0, time.monotonic() + 60
        while labelled == sent:  # until both have answered: then neither has labelled all texts
            assert time.monotonic() < end
            for _ in range(20):
                assert client.post("/v1/predict", json=asked).json() == expected
                sent += len(asked["texts"])
            labelled = float(found(r"^depl_documents_total.* (\S+)", client.get("/metrics")))
        assert client.get("/").text == (PAGE / "index.html").read_text()
        second = serving(plan, cluster.address, host="127.0.0.1", port=port)
        with pytest.raises(DeplError, match="Ray Serve runs on this cluster already"):
            second.__enter__()

        # What holds for one process holds here.
        new = {"id": "x-1", "name": "carbon border levy"}
        nobody = {"Authorization": "Bearer other"}
        assert client.post("/v1/labels", json=new, headers=nobody).status_code == 401
        assert client.get("/", headers={"Host": "elsewhere.example"}).status_code == 421

        # What one is told, both know.
        assert client.post("/v1/labels", json=new).status_code == 201
        assert {x.status_code for x in answers("/v1/labels/x-1")} == {200}
        decision = {"label": "x-1", "verdict": "accepted", "key": "0123456789abcdef"}
        said = {"text": "A levy", "decisions": [decision]}
        assert client.post("/v1/feedback", json=said).status_code == 201
        assert {x.json()["total"] for x in answers("/v1/feedback")} == {1}
        # In no form that needs memory which only one machine shares (SQLite's write-ahead log).
        assert (own_run / "feedback/feedback.sqlite").read_bytes()[18:20] == b"\1\1"

        # A reload is one of both, and fails as a whole.
        assert client.post("/v1/reload").json()["labels"] == 13
        reloads = {found(r"^depl_reloads_total.* (\S+)", x) for x in answers("/metrics")}
        assert reloads == {"1.0"}
        whole = (own_run / "manifest.json").read_bytes()
        (own_run / "manifest.json").write_text("{")
        refused = client.post("/v1/reload")
        assert (refused.status_code, "damaged" in refused.text) == (500, True)
        (own_run / "manifest.json").write_bytes(whole)

        # One is killed: the other answers, and soon there are two again.
        os.kill(min(first), signal.SIGKILL)
        end, answered = time.monotonic() + 60, 0
        while len(now := replicas_of(cluster)) < 2 or now == first or answered < 20:
            assert time.monotonic() < end
            with suppress(httpx.TransportError):  # what the dead one had accepted is lost
                answered += client.get("/v1/labels/x-1").status_code == 200


def test_a_missing_ray_serve_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch):
    import ray

    monkeypatch.delattr(ray, "serve", raising=False)
    monkeypatch.setitem(sys.modules, "ray.serve", None)
    plan = Plan(folders={}, access=Access(), batching=Batching(), most_jobs=0)
    with pytest.raises(MissingExtraError, match=r"depl\[ray-serve\]"):
        serving(plan, "auto", host="127.0.0.1", port=1).__enter__()


# What is refused before the work begins


@pytest.mark.parametrize("address", ["", "nonsense", "ray://1.2.3.4:10001", "http://a:1", "a:b"])
def test_an_address_that_is_none(address: str):
    with pytest.raises(ConfigError, match=r"--ray takes local.*6379; got"):
        RayExecutor(address)


def test_a_node_of_which_one_fault_is_mended_after_the_other(
    cluster: Any, executor: RayExecutor, tmp_path: Path
):
    import depl

    there = tmp_path / "depl"
    shutil.copytree(Path(depl.__file__).parent, there)
    with (there / "core/version.py").open("a") as file:
        file.write("# another\n")
    metadata = tmp_path / "depl-9.9.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: depl\nVersion: 9.9\n")
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['torch'] = None")
    node = cluster.add_node(**NODE, env_vars={"PYTHONPATH": str(tmp_path)})

    def refused(**asked: Any) -> str:
        with pytest.raises(DeplError) as error:
            RayExecutor(cluster.address, **asked).__enter__()
        return str(error.value)

    assert f"other versions than this machine: depl 9.9 (here {version('depl')})" in refused()
    shutil.rmtree(metadata)
    assert "but with other code in it" in refused()
    shutil.copy(Path(depl.__file__).parent / "core/version.py", there / "core/version.py")
    assert "has no torch, which the neural parts of this run need" in refused(torch=True)
    with RayExecutor(cluster.address):
        pass
    cluster.remove_node(node, allow_graceful=False)


def test_what_else_a_node_may_lack(fitted_run: Path):
    here = look_around(fitted_run)
    refuse_differing("The node", here, deepcopy(here), run=fitted_run, torch=True)

    def refused(**changes: Any) -> str:
        there = deepcopy(here) | changes
        with pytest.raises(DeplError) as error:
            refuse_differing("The node", here, there, run=fitted_run, torch=True, serve=True)
        return str(error.value)

    versions = here["versions"]
    assert "no depl" in refused(versions=versions | {"depl": None})
    assert "Python 3.9.1 (here 3." in refused(versions=versions | {"Python": "3.9.1"})
    assert f"does not see the run folder {fitted_run.resolve()}" in refused(manifest=None)
    assert "sees another run" in refused(manifest="0")
    assert "pip install 'depl[neural]'" in refused(torch=False)
    assert "has no fastapi, which a service needs" in refused(lacks=["fastapi"])


def test_an_address_where_nobody_answers_or_somebody_else(cluster: Any):
    refuse_silent(cluster.address)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        other = Thread(target=answer_as_a_web_server, args=(server,))
        other.start()
        with pytest.raises(DeplError, match=f"What answers at {address} is not the head"):
            refuse_silent(address)
        other.join()
    with pytest.raises(DeplError, match=f"Nobody answers at {address}.*ray start --head"):
        refuse_silent(address)


@pytest.mark.parametrize("command", ["fit", "predict"])
def test_a_cluster_that_is_not_there_is_told_before_anything_is_written(
    command: str, corpus_folder: Path, fitted_run: Path, tmp_path: Path
):
    out = tmp_path / "out.jsonl"
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    what = {"fit": [corpus_folder, "--out", out], "predict": [fitted_run, "-", "--output", out]}
    arguments = [command, *map(str, what[command]), "--ray", address]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ray.is_initialized", lambda: False)
        result = CliRunner().invoke(app, arguments, input="wine")
    assert isinstance(result.exception, DeplError)
    assert f"Nobody answers at {address}" in str(result.exception)
    assert not out.exists()


def test_what_ray_says_of_other_versions_and_of_no_cluster():
    from ray._private.utils import check_version_info

    def init(error: Exception | None = None, **_: object) -> None:
        if error is not None:
            raise error
        check_version_info({"ray_version": "1.0", "python_version": "3.9.1"}, "the cluster")

    ray = SimpleNamespace(init=init)
    with pytest.raises(DeplError, match=r"another version of Python or Ray.*Python: 3\.9\.1"):
        _connect(ray, "auto", None)
    ray.init = partial(init, ConnectionError())
    with pytest.raises(DeplError, match="No Ray cluster runs on this machine"):
        _connect(ray, "auto", None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("depl.core.cluster.refuse_silent", lambda _: None)
        with pytest.raises(DeplError, match=r"answers at a:1 is not.*ray start --address a:1`"):
            _connect(ray, "a:1", None)


def answer_as_a_web_server(server: socket.socket) -> None:
    connection = server.accept()[0]
    with connection:
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
