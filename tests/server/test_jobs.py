"""Files of documents, labelled in the background: the result, the end of a service, cancelling."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from depl import Client
from depl.client import ServiceError
from depl.server import jobs as jobs_module
from depl.server.batching import QueueFullError
from depl.server.job_files import Job, JobFiles, Wish
from depl.server.live_model import LiveModel, load
from depl.server.security import Access

TEXTS = ("Labelling of sparkling wines", "Catch quotas of fishing vessels", "Customs duty on cod")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "records.csv"
    rows = [f"r{i},{TEXTS[i % 3]} number {i}" for i in range(70)]
    path.write_text("\n".join(["id,text", *rows, "empty,", ""]))
    return path


@pytest.fixture
def service(connect, own_run):
    return Client.over(connect(load(own_run), access=Access(local_writes=True)))


def finished(service, id):
    end = time.monotonic() + 60
    while (job := service.job(id)).state not in ("finished", "failed"):
        assert time.monotonic() < end, job
        time.sleep(0.01)
    return job


def test_the_result_is_what_predict_gives(service, own_run, table, tmp_path):
    job = service.label_file(table, tmp_path / "out.jsonl", k=2, threshold=0.01)
    assert (job.state, job.documents, job.left_out, job.progress) == ("finished", 70, 1, 1.0)
    assert job.reasons == ["records.csv:72: no text"]
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == [f"r{i}" for i in range(70)]
    texts = [f"{TEXTS[i % 3]} number {i}" for i in range(70)]
    expected = service.predict(texts, 2, threshold=0.01)
    for row, labels in zip(rows, expected, strict=True):
        assert row["labels"] == [
            {"id": x.id, "name": x.name, "score": pytest.approx(x.probability, abs=1e-4)}
            for x in labels
        ]
    with pytest.raises(ServiceError) as gone:
        service.job(job.id)
    assert gone.value.status == 404
    assert list((own_run / "jobs").iterdir()) == []


def test_a_file_that_is_a_document_is_called_by_its_name_alone(service, tmp_path):
    (tmp_path / "letter.txt").write_text(TEXTS[0])
    service.label_file(tmp_path / "letter.txt", tmp_path / "out.jsonl", k=1)
    assert json.loads((tmp_path / "out.jsonl").read_text())["id"] == "letter.txt"


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "xlsx"])
def test_every_format_of_results(service, table, tmp_path, suffix):
    if suffix == "xlsx":
        pytest.importorskip("xlsxwriter")
    service.label_file(table, tmp_path / f"out.{suffix}", k=1, wide=suffix != "parquet")
    assert (tmp_path / f"out.{suffix}").stat().st_size > 100
    if suffix == "csv":
        first = next(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
        assert first["text"] == f"{TEXTS[0]} number 0"
        assert "wine" in first.values()


def test_what_cannot_be_labelled_says_so(service, tmp_path, own_run):
    nothing = tmp_path / "nothing.csv"
    nothing.write_text("id,text\na,\n")
    with pytest.raises(ServiceError, match=r"No document could be read from nothing\.csv"):
        service.label_file(nothing, tmp_path / "out.csv")
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 and nothing else")
    with pytest.raises(ServiceError, match=r"broken\.parquet") as refused:
        service.label_file(broken, tmp_path / "out.csv")
    assert str(own_run) not in str(refused.value)
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    odd = ({"output": "pdf"}, {"threshold": "best"}, {"k": 0}, {"output": "parquet", "wide": True})
    for wish in ({}, *odd):
        with pytest.raises(ServiceError) as refused:
            service.start_job(empty, **wish)
        assert refused.value.status == 422, wish
    odd_names = ("a\0b", "ä" * 200)
    for name in odd_names:
        answer = service._connection.http.post(
            "/v1/jobs", params={"name": name}, content=b"id,text\n"
        )
        assert answer.status_code == 422, name
        assert "cannot be called" in answer.json()["error"]["message"]
    assert list((own_run / "jobs").iterdir()) == []  # nothing is left of what was refused


def test_a_job_can_be_cancelled_and_too_many_are_refused(connect, own_run, table, monkeypatch):
    model = load(own_run)
    http = connect(model, most_jobs=2)
    service = Client.over(http)
    monkeypatch.setattr("depl.client.connection._PATIENCE", 0.0)
    # The first waits for room in the queue, and the second for the first.
    monkeypatch.setattr(jobs_module, "_PAUSE", 0.01)
    monkeypatch.setattr(LiveModel, "suggest", never)
    first, second = service.start_job(table), service.start_job(table)
    with pytest.raises(ServiceError, match="2 files waiting") as refused:
        service.start_job(table)
    assert refused.value.status == 503
    assert service.job(second.id).state == "waiting"
    with pytest.raises(ServiceError, match="not finished") as early:
        service.save_result(second.id, own_run / "never")
    assert early.value.status == 409
    service.delete_job(second.id)
    service.delete_job(first.id)
    assert list((own_run / "jobs").iterdir()) == []
    for method, path in (("GET", ""), ("GET", "/result"), ("DELETE", "")):
        assert http.request(method, f"/v1/jobs/{first.id}{path}").status_code == 404


async def never(self, questions):
    raise QueueFullError("The queue is full.")


def test_no_files_are_taken_where_none_are_wanted(connect, own_run, table, monkeypatch):
    monkeypatch.setattr("depl.client.connection._PATIENCE", 0.0)
    service = Client.over(connect(load(own_run), most_jobs=0))
    with pytest.raises(ServiceError, match="takes no files"):
        service.start_job(table)


def test_only_so_many_results_are_kept(service, own_run, table, monkeypatch):
    monkeypatch.setattr(jobs_module, "MAX_KEPT", 2)
    ids = [service.start_job(table, k=1).id for _ in range(4)]
    finished(service, ids[-1])
    kept = {folder.name for folder in (own_run / "jobs").iterdir()}
    assert kept == set(ids[-2:])
    for id in ids[:2]:
        with pytest.raises(ServiceError, match="no job"):
            service.job(id)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_service_that_is_started_again_continues_its_jobs(own_run, served, tmp_path, how):
    long = tmp_path / "long.csv"
    rows = [f"r{i},{TEXTS[i % 3]} number {i}" for i in range(6_000)]
    long.write_text("\n".join(["id,text", *rows, ""]))
    with served(own_run) as process, Client(process.url) as service:
        job = service.start_job(long, k=2, output="jsonl")
        while service.job(job.id).documents < 100:
            pass
        process.signal(how)
        process.process.wait(30)
    log = (own_run / "jobs" / job.id / "output.jsonl.resume.jsonl").read_text().splitlines()
    done = json.loads(log[-1])[0]
    assert 100 <= done < 6_000
    with served(own_run) as process, Client(process.url) as service:
        assert service.job(job.id).documents == 0 or service.job(job.id).documents >= done
        assert finished(service, job.id).documents == 6_000
        service.save_result(job.id, tmp_path / "out.jsonl")
        again = service.label_file(long, tmp_path / "again.jsonl", k=2)
    assert again.documents == 6_000
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "again.jsonl").read_bytes()


@pytest.fixture
def kept_job(service, own_run, table):
    """The file that says how far a finished job is."""
    id = finished(service, service.start_job(table, k=1).id).id
    return own_run / "jobs" / id / "job.json"


@pytest.mark.parametrize(
    "changes",
    [
        {"created": 5},
        {"id": "../../precious"},
        {"state": "odd"},
        {"wish": {"name": "a.csv", "output": "csv/../../../../precious/mine.txt"}},
        {"wish": None},
        {"documents": "many"},
        {"reasons": {"a": 1}},
    ],
)
def test_a_damaged_job_is_dropped_and_harms_nothing_else(
    connect, kept_job, own_run, table, changes
):
    precious = own_run.parent / "precious" / "mine.txt"
    precious.parent.mkdir()
    precious.write_text("mine")
    kept_job.write_text(json.dumps(json.loads(kept_job.read_text()) | changes))
    http = connect(load(own_run), access=Access(local_writes=True))
    assert http.get(f"/v1/jobs/{kept_job.parent.name}").status_code == 404
    assert http.get(f"/v1/jobs/{kept_job.parent.name}/result").status_code == 404
    again = Client.over(http)
    assert finished(again, again.start_job(table, k=1).id).state == "finished"
    assert precious.read_text() == "mine"
    assert not kept_job.exists()


@pytest.mark.parametrize("name", ["input/more.csv", "output.csv", "output.csv.resume.jsonl"])
def test_links_in_the_folder_of_a_job_are_not_followed(connect, kept_job, own_run, name):
    precious = own_run.parent / "precious.txt"
    precious.write_text("text\nmine\n")
    waiting = json.loads(kept_job.read_text()) | {"state": "waiting"}
    kept_job.write_text(json.dumps(waiting))
    link = kept_job.parent / name
    link.parent.mkdir(exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(precious)
    http = connect(load(own_run), access=Access(local_writes=True))
    for path in ("", "/result"):
        assert http.get(f"/v1/jobs/{kept_job.parent.name}{path}").status_code == 404
    assert precious.read_text() == "text\nmine\n"


def test_a_job_is_read_while_its_files_come_and_go(tmp_path):
    files = JobFiles(tmp_path)
    id, folder = files.new()
    files.keep(Job(id, Wish("a.csv"), "2026"), new=True)
    with ThreadPoolExecutor(1) as other:
        found = other.submit(lambda: [files.get(id) for _ in range(300)])
        while not found.done():
            folder.mkdir(exist_ok=True)
            (folder / "a.csv").touch()
            shutil.rmtree(folder)
    assert all(job is not None for job in found.result())


def test_a_folder_of_jobs_that_is_a_link_is_left_alone(connect, own_run, table):
    elsewhere = own_run.parent / "elsewhere"
    (elsewhere / "old").mkdir(parents=True)
    os.utime(elsewhere / "old", (0, 0))
    (own_run / "jobs").symlink_to(elsewhere)
    http = connect(load(own_run), access=Access(local_writes=True))
    answer = http.post("/v1/jobs", params={"name": "a.csv"}, content=table.read_bytes())
    assert answer.status_code >= 400
    assert "is a link" in answer.json()["error"]["message"]
    assert [x.name for x in elsewhere.iterdir()] == ["old"]


def test_jobs_go_on_after_their_folder_was_out_of_reach(service, own_run, table):
    folder = own_run / "jobs"
    folder.write_text("not a folder")
    with pytest.raises(ServiceError):
        service.start_job(table)
    time.sleep(3 * jobs_module._LOOK)
    folder.unlink()
    assert finished(service, service.start_job(table, k=1).id).state == "finished"


def test_what_was_never_finished_is_deleted_and_nothing_else(service, own_run, table):
    folders = [own_run / "jobs" / name for name in ("A" * 22, "notes")]
    for folder in folders:
        folder.mkdir(parents=True)
        os.utime(folder, (0, 0))
    finished(service, service.start_job(table, k=1).id)
    assert [folder.exists() for folder in folders] == [False, True]
