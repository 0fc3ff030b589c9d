"""``depl.Client``: what it asks is answered, and what is refused is an error with a reason."""

from __future__ import annotations

import subprocess
import sys

import pytest

from depl import Client
from depl.client import ServiceError
from depl.server.batching import QueueFullError
from depl.server.live_model import LiveModel, load
from depl.server.security import Access

WINE = "Labelling of sparkling wines made from grapes of named vineyards"


@pytest.fixture
def over_the_network(own_run, uvicorn_running):
    """A client with a token, of a service behind a real socket."""
    from depl.server.app import create_app

    app = create_app(load(own_run), access=Access(token="t"))
    with uvicorn_running(app) as server, Client(server.url, token="t") as client:
        yield client


def test_a_day_with_the_client(over_the_network, dataset, tmp_path):
    client = over_the_network
    assert client.info()["labels"] == 12
    ((best,), _) = client.predict([WINE, "Customs duty"], k=1)
    assert (best.id, best.name, best.band) == ("2560", "wine", "1-9")
    assert client.explain(WINE, "2560")["probability"] == pytest.approx(best.probability)
    assert [x.name for x in client.labels(page=5)] == sorted(x.name for x in dataset.labels)
    assert [x.id for x in client.labels("apicult")] == ["77"]

    added = client.add_label("x/1 ä", "grape must", alt_names=["must"], examples=["Grape must"])
    assert client.label("x/1 ä") == added
    changed = client.change_label("x/1 ä", name="new must", alt_names=[])
    assert (changed.name, changed.alt_names) == ("new must", [])
    client.remove_label("x/1 ä")
    assert client.undo() == "removed 'new must' (x/1 ä)"
    assert client.label("x/1 ä").name == "new must"

    decision = {"key": "k1", "label": "2560", "verdict": "accepted", "probability": 0.9}
    (kept,) = client.feedback(WINE, [decision], by="Ada")
    assert (kept["by"], kept["verdict"]) == ("Ada", "accepted")
    assert client.feedback(WINE, [decision], by="Ada") == [kept]
    (tmp_path / "letter.txt").write_text("On wine.")
    assert client.extract(tmp_path / "letter.txt") == "On wine."
    assert client.reload() == 13


def test_what_is_refused_is_the_services_own_sentence(over_the_network):
    with pytest.raises(ServiceError, match="no label with the id 'nope'") as refused:
        over_the_network.label("nope")
    assert refused.value.status == 404
    with pytest.raises(ServiceError, match="must have at most 256 entries"):
        over_the_network.predict(["wine"] * 257)


def test_a_service_that_is_not_there_is_an_error_in_words():
    with pytest.raises(ServiceError, match=r"no answer from http://127\.0\.0\.1:9"):
        Client("http://127.0.0.1:9").info()


def test_a_full_queue_is_waited_for(connect, model, monkeypatch):
    client, full = Client.over(connect(model)), [True, True]
    suggest = LiveModel.suggest

    async def now_and_then(self, questions):
        if full and full.pop():
            raise QueueFullError("The queue is full.")
        return await suggest(self, questions)

    waited = []
    monkeypatch.setattr(LiveModel, "suggest", now_and_then)
    monkeypatch.setattr("depl.client.connection.time.sleep", waited.append)
    assert client.predict([WINE])[0][0].name == "wine"
    assert waited == [1.0, 1.0]


def test_the_client_needs_nothing_heavy():
    program = (
        "import sys; from depl import Client; Client('http://localhost').close(); "
        "print([x for x in ('numpy', 'scipy', 'fastapi', 'torch') if x in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.stdout.strip() == "[]", found.stderr
