"""A file sent to the service comes back as text, or with a sentence that says why not."""

from __future__ import annotations

import io
import sys

import pytest

pytest.importorskip("pypdfium2", reason="documents need depl[documents]")
docx = pytest.importorskip("docx")
canvas = pytest.importorskip("reportlab.pdfgen.canvas")

from depl.server import schemas  # noqa: E402
from depl.server.security import Access  # noqa: E402


def pdf(text: str) -> bytes:
    made = io.BytesIO()
    page = canvas.Canvas(made)
    page.setTitle("A title")
    page.drawString(50, 700, text)
    page.save()
    return made.getvalue()


def word(text: str) -> bytes:
    made = io.BytesIO()
    document = docx.Document()
    document.add_paragraph(text)
    document.save(made)
    return made.getvalue()


@pytest.mark.parametrize(
    ("name", "raw", "title"),
    [
        ("a.pdf", pdf("sparkling wine"), "A title"),
        ("a.docx", word("sparkling wine"), ""),
        ("a.html", b"<title>T</title><nav>Home</nav><p>sparkling wine", "T"),
        ("", "sparkling wine".encode("utf-16"), ""),
    ],
)
def test_the_text_of_a_file(client, name, raw, title):
    answer = client.post("/v1/extract", params={"name": name}, content=raw)
    assert answer.json() | {"title": answer.json()["title"][:7]} == {
        "text": "sparkling wine",
        "title": title,
        "cut": False,
    }


@pytest.mark.parametrize(
    ("raw", "why"), [(pdf(""), "probably a scan"), (b"\x89PNG..", "a picture"), (b"", "is empty")]
)
def test_a_file_without_text_is_refused_with_the_reason(client, raw, why):
    answer = client.post("/v1/extract?name=x.y", content=raw)
    assert answer.status_code == 422
    message = answer.json()["error"]["message"]
    assert message.startswith("x.y is not a document: ")
    assert why in message


def test_a_long_text_is_cut_to_what_can_be_labelled(client):
    raw = b"wine " * (schemas.MAX_CHARACTERS // 5) + b"oil"
    found = client.post("/v1/extract", content=raw).json()
    assert (len(found["text"]), found["cut"]) == (schemas.MAX_CHARACTERS, True)
    assert client.post("/v1/predict", json={"texts": [found["text"]]}).status_code == 200


def test_limits_and_access_are_those_of_other_requests(client, connect, model):
    assert client.post("/v1/extract", content=bytes(17 << 20)).status_code == 413
    closed = connect(model, access=Access(token="t", token_for_all=True))
    assert closed.post("/v1/extract", content=b"wine").status_code == 401
    allowed = {"Authorization": "Bearer t"}
    assert closed.post("/v1/extract", content=b"wine", headers=allowed).status_code == 200


def test_without_the_extra_the_answer_says_so(client, monkeypatch):
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    answer = client.post("/v1/extract", content=pdf("wine"))
    assert answer.status_code == 501
    assert "depl[documents]" in answer.json()["error"]["message"]


def test_rows_of_a_table_and_whole_files_do_not_tell_the_services_folders(client):
    for name in ("notes.txt", "../../notes.txt"):
        answer = client.post("/v1/table", params={"name": name}, content=b"wine\nand cheese")
        assert [row["id"] for row in answer.json()["documents"]] == ["notes.txt"]


def test_a_file_that_crashes_what_reads_it_costs_its_own_answer_only(client, monkeypatch):
    monkeypatch.setattr("depl.core.apart.SECONDS", 0)
    slow = b"<html><table>" + b"<tr><td rowspan=100000>a</td></tr>" * 200_000
    answer = client.post("/v1/extract", content=slow, params={"name": "slow.html"})
    assert answer.status_code == 422
    assert "takes more than 0 seconds of computing" in answer.json()["error"]["message"]
    assert client.post("/v1/extract", content=pdf("wine")).json()["text"] == "wine"
