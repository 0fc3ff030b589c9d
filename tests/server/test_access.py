"""Who may read and change; what browsers are told."""

from __future__ import annotations

import re
from functools import partial

import pytest

from depl.core.errors import ConfigError
from depl.server.app import PAGE
from depl.server.security import Access
from depl.server.tokens import Buckets

WRITES = [
    ("POST", "/v1/labels", {"id": "a", "name": "a"}),
    ("PATCH", "/v1/labels/2560", {"name": "vin"}),
    ("DELETE", "/v1/labels/2560", None),
    ("POST", "/v1/labels/undo", None),
    ("POST", "/v1/reload", None),
]


def statuses(client, **headers):
    return [client.request(m, p, json=body, headers=headers).status_code for m, p, body in WRITES]


def test_without_a_token_nobody_may_write(client):
    assert statuses(client) == [403] * 5
    assert "DEPL_TOKEN" in client.post("/v1/labels/undo").json()["error"]["message"]


def test_with_a_token_writing_needs_it_and_reading_does_not(model, connect):
    client = connect(model, access=Access(token="s3cret"))
    assert client.get("/v1/info").json()["writable"] is True
    assert client.post("/v1/predict", json={"texts": ["a"]}).status_code == 200
    for header in ("", "s3cret", "Bearer", "Bearer wrong", "Basic s3cret", "Bearer s3cret2", "Bé"):
        client = connect(model, access=Access(token="s3cret"))  # none has guessed too often
        shown = {"authorization": header.encode("latin-1")} if header else {}
        assert statuses(client, **shown) == [401] * 5, header
    assert client.post("/v1/labels/undo").headers["www-authenticate"] == "Bearer"


def test_the_right_token_opens(model, connect, fitted_run):
    client = connect(model, access=Access(token="s3cret"))
    for scheme in ("Bearer", "bearer"):
        shown = {"Authorization": f"{scheme} s3cret"}
        assert client.post("/v1/reload", headers=shown).status_code == 200
        assert client.delete("/v1/labels/nope", headers=shown).status_code == 404


def test_a_token_for_all_leaves_only_health_and_the_page_open(model, connect):
    client = connect(model, access=Access(token="t", token_for_all=True))
    for path in ("/v1/info", "/v1/labels", "/v1/labels/2560", "/metrics"):
        assert client.get(path).status_code == 401, path
        assert client.get(path, headers={"Authorization": "Bearer t"}).status_code == 200
    assert client.post("/v1/predict", json={"texts": ["a"]}).status_code == 401
    for path in ("/healthz", "/readyz", "/docs", "/openapi.json"):
        assert client.get(path).status_code == 200


def test_read_only_refuses_writes_even_with_the_token(model, connect, fitted_run):
    client = connect(model, access=Access(token="t", read_only=True))
    assert client.get("/v1/info").json()["writable"] is False
    assert statuses(client, Authorization="Bearer t") == [403] * 4 + [200]


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({}, True),
        ({"Host": "localhost:8000", "Origin": "http://localhost:8000"}, True),
        ({"Host": "[::1]:8000"}, True),
        ({"Origin": "https://evil.example"}, False),
        ({"Origin": "null"}, False),
        ({"Host": "10.1.2.3:8000"}, False),
    ],
)
def test_pages_of_other_sites_cannot_write_through_a_visitors_browser(
    local_client, headers, allowed
):
    answer = local_client.delete("/v1/labels/nope", headers=headers)
    assert answer.status_code == (404 if allowed else 403)


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "[::1", "a@b:c", "localhos"],
)
def test_a_name_that_leads_here_from_elsewhere_gets_no_answer(client, host):
    for path in ("/", "/v1/info", "/v1/labels", "/metrics", "/openapi.json", "/healthz"):
        answer = client.get(path, headers={"Host": host})
        assert answer.status_code == 421, path
        assert "--allowed-host" in answer.json()["error"]["message"]
    asked = {"text": "wine", "label": "2560"}
    assert client.post("/v1/explain", json=asked, headers={"Host": host}).status_code == 421


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:8000", "10.1.2.3", "depl.example:80"],
)
def test_names_of_this_machine_addresses_and_allowed_names_are_answered(model, connect, host):
    client = connect(model, access=Access(hosts=("depl.example",)))
    assert client.get("/v1/info", headers={"Host": host}).status_code == 200


def test_pages_of_other_sites_cannot_write_with_a_token_either(model, connect):
    client = connect(model, access=Access(token="t", hosts=("depl.example",)))
    shown = {"Authorization": "Bearer t"}
    for origin, status in (
        ("https://evil.example", 403),
        ("null", 403),
        ("http://[", 403),
        ("http://127.0.0.1", 404),
        ("https://depl.example", 404),
    ):
        answer = client.delete("/v1/labels/nope", headers=shown | {"Origin": origin})
        assert answer.status_code == status, origin


def test_pages_of_a_site_that_is_named_may_read_and_with_a_token_write(model, connect):
    there = "https://app.example.org"
    client = connect(model, access=Access(token="t", origins=(there,), buckets=Buckets(1)))
    allowed, shown = "access-control-allow-origin", {"Authorization": "Bearer t"}
    wanted = {
        "Origin": there,
        "Access-Control-Request-Method": "PATCH",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    preflight = client.options("/v1/labels/2560", headers=wanted)
    assert (preflight.status_code, preflight.headers[allowed]) == (200, there)
    assert "PATCH" in preflight.headers["access-control-allow-methods"]
    refused = client.options("/v1/info", headers=wanted | {"Origin": "https://evil.example"})
    assert refused.status_code == 400
    assert allowed not in refused.headers
    assert client.get("/v1/info", headers={"Origin": there}).headers[allowed] == there
    missing = client.delete("/v1/labels/nope", headers={"Origin": there} | shown)
    assert (missing.status_code, missing.headers[allowed]) == (404, there)
    answers = [client.get("/v1/info", headers={"Origin": there}) for _ in range(3)]
    assert answers[-1].status_code == 429
    assert answers[-1].headers[allowed] == there  # the page can read when to try again
    assert "Retry-After" in answers[-1].headers["access-control-expose-headers"]


def test_without_a_token_pages_of_a_site_that_is_named_may_only_read(model, connect):
    there = "https://app.example.org"
    client = connect(model, access=Access(local_writes=True, origins=(there,)))
    assert client.get("/v1/info", headers={"Origin": there}).status_code == 200
    assert client.delete("/v1/labels/nope", headers={"Origin": there}).status_code == 403
    assert client.delete("/v1/labels/nope").status_code == 404


@pytest.mark.parametrize("origin", ["*", "app.example.org", "https://a.example/path", "null", ""])
def test_what_is_no_origin_is_refused(origin):
    with pytest.raises(ConfigError, match="--cors-origin"):
        Access(origins=(origin,))


def test_guessing_tokens_ends_after_a_few(model, connect, monkeypatch):
    from depl.server import security

    client = connect(model, access=Access(token="s3cret"))
    delete = partial(client.delete, "/v1/labels/nope")
    for i in range(10):
        assert delete(headers={"Authorization": f"Bearer {i}"}).status_code == 401
    for token in ("11", "s3cret"):
        answer = delete(headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 429
        assert 1 <= int(answer.headers["retry-after"]) <= 60
    assert client.get("/v1/info").status_code == 200  # what needs no token goes on
    now = security.time.monotonic()
    monkeypatch.setattr(security.time, "monotonic", lambda: now + 61)
    assert delete(headers={"Authorization": "Bearer s3cret"}).status_code == 404


def test_only_so_many_addresses_are_remembered():
    from depl.server.security import Guesses

    guesses = Guesses()
    for i in range(10_050):
        guesses.count(str(i))
    assert len(guesses._wrong) == 10_000


@pytest.mark.parametrize("token", ["", "two words", "ümlaut", " padded"])
def test_tokens_that_cannot_travel_in_a_header_are_refused(token):
    with pytest.raises(ConfigError, match="token"):
        Access(token=token)


def test_a_token_for_all_needs_a_token():
    with pytest.raises(ConfigError, match="needs a token"):
        Access(token_for_all=True)


@pytest.mark.parametrize("path", ["/", "/healthz", "/v1/info", "/nope", "/v1/predict"])
def test_every_answer_has_the_security_headers(client, path):
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'self';")
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


def test_the_page_is_served_and_nothing_beside_it(client):
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert page.text == (PAGE / "index.html").read_text(encoding="utf-8")
    again = client.get("/", headers={"If-None-Match": page.headers["etag"]})
    assert again.status_code == 304
    script = client.get("/page.js")
    assert script.headers["content-type"].startswith("text/javascript")
    for path in ("/../__init__.py", "/..%2f__init__.py", "/page", "//etc/passwd", "/docs/"):
        assert client.get(path).status_code == 404, path


def test_the_reference_is_served_with_all_it_needs(client):
    page = client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'self';")  # and so for scripts
    assert "script-src" not in policy
    assert "<script>" not in page.text
    loaded = re.findall(r'(?:src|href|spec-url)="([^"]+)"', page.text)
    assert len(loaded) == 3
    for path in loaded:
        assert client.get(path).status_code == 200, path
    assert "Apache License" in client.get("/docs/LICENSE").text
