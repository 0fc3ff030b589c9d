"""Tokens with roles, as `depl token` makes them; and how many requests each may send."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path

import pytest
from typer.testing import CliRunner

from depl.cli.app import app
from depl.core.errors import ConfigError
from depl.server import tokens
from depl.server.security import Access
from depl.server.tokens import Buckets, Role, Token, read_tokens

# What each request needs; label and document do not exist, so that nothing is changed.
REQUESTS = {
    Role.READ: ("GET", "/v1/info", None, 200),
    Role.FEEDBACK: ("GET", "/v1/feedback", None, 200),
    Role.EDIT: ("DELETE", "/v1/labels/nope", None, 404),
    Role.ADMIN: ("POST", "/v1/reload", None, 200),
}


def made(role: str, name: str) -> tuple[str, str]:
    """A token and its line, by the command."""
    told = CliRunner().invoke(app, ["token", "--role", role, "--name", name])
    assert told.exit_code == 0, told.output
    line = told.stdout.splitlines()[-1]
    secret = next(x.strip() for x in told.output.splitlines() if x.startswith("  "))
    return secret, line


@pytest.fixture
def four(tmp_path: Path) -> tuple[dict[Role, str], tuple[Token, ...]]:
    secrets, lines = zip(*(made(r.name.lower(), f"n-{r.name}") for r in Role), strict=True)
    path = tmp_path / "tokens"
    path.write_text("# role name hash\n\n" + "\n".join(lines) + "\n")
    return dict(zip(Role, secrets, strict=True)), read_tokens(path)


def test_the_line_has_the_hash_of_the_token_and_not_the_token():
    secret, line = made("edit", "anna")
    assert line == f"edit anna {hashlib.sha256(secret.encode()).hexdigest()}"
    assert len(secret) >= 43  # 256 bits
    assert made("edit", "anna")[0] != secret


def test_every_role_may_do_its_own_and_what_those_before_it_may(model, connect, fitted_run, four):
    secrets, known = four
    client = connect(model, access=Access(tokens=known, token_for_all=True, token="old"))
    for role, needed in itertools.product(Role, Role):
        method, path, body, done = REQUESTS[needed]
        shown = {"Authorization": f"Bearer {secrets[role]}"}
        answer = client.request(method, path, json=body, headers=shown)
        assert answer.status_code == (done if role >= needed else 403), (role, needed)
        if role < needed:
            assert f"n-{role.name} may" in answer.json()["error"]["message"]
            assert f"the role {needed.name.lower()}" in answer.json()["error"]["message"]
    for method, path, body, done in REQUESTS.values():
        assert client.request(method, path, json=body).status_code == 401
        wrong = {"Authorization": f"Bearer {known[3].digest}"}  # what is in the file
        assert client.request(method, path, json=body, headers=wrong).status_code == 401
        old = {"Authorization": "Bearer old"}  # the token without a role may do everything
        assert client.request(method, path, json=body, headers=old).status_code == done


def test_labels_are_not_shown_as_writable_where_no_token_may_edit(model, connect, four):
    known = four[1]
    assert connect(model, access=Access(tokens=known)).get("/v1/info").json()["writable"] is True
    client = connect(model, access=Access(tokens=known[:2]))
    assert client.get("/v1/info").json()["writable"] is False
    assert client.delete("/v1/labels/nope").status_code == 401


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no token"),
        ("# nothing\n", "has no token"),
        ("edit anna\n", ":1 is no line of a token"),
        ("\nedit anna s3cret\n", ":2 is no line of a token"),
        (f"boss anna {'0' * 64}\n", "there is no role 'boss'. Roles are read, feedback, edit"),
        (f"edit anna {'a' * 64}\nread ben {'A' * 64}\n", ":2 has the token of a line above"),
    ],
)
def test_files_of_tokens_that_make_no_sense_are_refused(tmp_path: Path, text: str, said: str):
    path = tmp_path / "tokens"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_tokens(path)
    assert said in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_files_that_are_no_files_of_tokens_are_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"^Cannot read tokens from \S+: No such file"):
        read_tokens(tmp_path / "none")
    (tmp_path / "book.xlsx").write_bytes(b"PK\x03\x04\x8f\xff")
    with pytest.raises(ConfigError, match=r"book\.xlsx is no text file\. --tokens-file has a line"):
        read_tokens(tmp_path / "book.xlsx")


@pytest.mark.parametrize("options", [["boss", "anna"], ["edit", "an na"], ["edit", ""]])
def test_roles_and_names_that_make_no_sense_are_refused(options: list[str]):
    with pytest.raises(ConfigError):
        tokens.new_token(*options)


def test_more_requests_than_allowed_get_429_by_token_or_address(
    model, connect, four, monkeypatch: pytest.MonkeyPatch
):
    now = 1_000.0
    monkeypatch.setattr(tokens.time, "monotonic", lambda: now)
    secrets, known = four
    client = connect(model, access=Access(tokens=known, buckets=Buckets(2.0)))
    shown = {"Authorization": f"Bearer {secrets[Role.READ]}"}
    assert [client.get("/v1/info").status_code for _ in range(6)] == [200] * 4 + [429] * 2
    # Somebody with a token is not the others at the same address.
    answers = [client.get("/v1/info", headers=shown) for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200] * 4 + [429]
    assert answers[-1].headers["retry-after"] == "1"
    assert "too many requests" in answers[-1].json()["error"]["message"]
    wrong = {"Authorization": "Bearer wrong"}
    assert client.get("/v1/info", headers=wrong).status_code == 429  # counts as the address
    assert client.get("/healthz").status_code == client.get("/readyz").status_code == 200
    now += 1.0
    assert [client.get("/v1/info").status_code for _ in range(3)] == [200, 200, 429]


def test_only_so_many_clients_are_remembered():
    buckets = Buckets(1.0)
    for i in range(10_050):
        assert buckets.wait(str(i)) == 0
    assert len(buckets._left) == 10_000
