"""What the service answers to broken requests: good ones to every address, each changed somewhere.

    python benchmarks/fuzz_requests.py [--requests 100000] [--first 0] [--seed 0]

The requests are made from the examples of the service's own description. One is changed in its
body (bytes, or a value of its JSON), address, query, method or headers, and given to the
application in this process, with a token that may do everything, so that much of it reaches what
edits labels, keeps feedback and starts jobs. The answer must have a status below 500 and, from 400
on, a message of at most 2,000 characters; 503 with Retry-After is fine, too, because a queue may be
full. After every change of a thousand, a good request must be answered. Anything else is a failure.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import json
import logging
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.damage import corpus
from benchmarks.fuzz import CHANGES, LONGEST

from depl.pipeline.fit import fit
from depl.run.config import Config
from depl.server.app import create_app
from depl.server.examples import EXAMPLES
from depl.server.live_model import load
from depl.server.security import Access

TOKEN = "t" * 32
_BATCH = 1_000  # requests to one service; the next has a fresh copy of the run
_JSON = "application/json"
_ODD: tuple[object, ...] = (
    *(None, True, -1, 0, 10**30, 1e308, float("nan"), float("inf"), "", " ", "\x00", "\ud800"),
    *("x" * 70_000, "é" * 3_000, "=cmd()", "<script>", "\x1b[2J", "../../x", "l1", "new", "f1"),
    *([], {}, [[]], [None], ["a"] * 3_000, {"a": {"b": 1}}, {"x" * 5_000: 1}, [["x"] * 50] * 50),
)
_HEADERS = (
    *(("host", x) for x in ("evil.example", "", "127.0.0.1:99999", "[::1]", "\xff", "a" * 3_000)),
    *(("content-type", x) for x in ("text/plain", "", "x" * 5_000, "application/json; charset=x")),
    *(("content-length", x) for x in ("-1", "x", "99999999999", "0", "1e9")),
    *(("authorization", x) for x in ("Bearer", "Bearer \xff", "Basic eDp5", "x" * 9_000)),
    *(("origin", x) for x in ("null", "http://evil.example", "\x00", "file://")),
    *(("accept", "\xff" * 99), ("cookie", "a=b" * 999), ("x-forwarded-for", "1.2.3.4")),
)


@dataclass(frozen=True)
class Sent:
    """One request."""

    method: str
    path: str
    query: str = ""
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


def good_requests(description: dict[str, Any], label: str) -> list[Sent]:
    """A request to every address of a description, with its examples, about one of the labels."""
    found = []
    values = {"label_id": label, "number": "1"}
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            where = path
            query = []
            for parameter in operation.get("parameters", []):
                name, schema = parameter["name"], parameter["schema"]
                if parameter["in"] == "path":
                    where = where.replace(f"{{{name}}}", values.get(name, "1"))
                else:
                    query.append(f"{name}={quote(str(schema.get('default', 'wine')))}")
            content = operation.get("requestBody", {}).get("content", {})
            body, headers = b"", {"authorization": f"Bearer {TOKEN}", "host": "127.0.0.1"}
            if _JSON in content:
                name = content[_JSON]["schema"]["$ref"].rpartition("/")[2]
                example = json.dumps(EXAMPLES[name]).replace('"4042"', json.dumps(label))
                body, headers["content-type"] = example.encode(), _JSON
            elif content:
                body, headers["content-type"] = b"id,text\n1,wine\n", "text/csv"
            found.append(Sent(method.upper(), where, "&".join(query), body, headers))
    return found


def _change_value(value: Any, rng: random.Random) -> Any:
    """A JSON value with something odd at a random place of it."""
    value = copy.deepcopy(value)
    places: list[tuple[Any, Any]] = []

    def walk(at: Any) -> None:
        for key in list(at) if isinstance(at, dict) else range(len(at)):
            places.append((at, key))
            if isinstance(at[key], (dict, list)):
                walk(at[key])

    if isinstance(value, (dict, list)):
        walk(value)
    if not places or rng.random() < 0.05:
        return rng.choice(_ODD)
    at, key = rng.choice(places)
    what = rng.random()
    if what < 0.6:
        at[key] = rng.choice(_ODD)
    elif what < 0.8:
        del at[key]
    elif isinstance(at, dict):
        at[rng.choice(["x" * rng.choice((1, 5_000)), "id", "\x00", "k", "__class__"])] = at[key]
    else:
        at.extend([at[key]] * rng.choice((1, 50, 3_000)))
    return value


def _body(sent: Sent, rng: random.Random) -> Sent:
    change = rng.choice(list(CHANGES.values()))
    return replace(sent, body=change(sent.body, rng))


def _json(sent: Sent, rng: random.Random) -> Sent:
    if sent.headers.get("content-type") != _JSON:
        return _body(sent, rng)
    value = _change_value(json.loads(sent.body), rng)
    return replace(sent, body=json.dumps(value).encode("utf-8", "surrogatepass"))


def _query(sent: Sent, rng: random.Random) -> Sent:
    odd = rng.choice(["%00", "%FF", "%", "x" * 5_000, "-1", "99999999999999999999", "é", "[]", "="])
    names = [pair.partition("=")[0] for pair in sent.query.split("&")]
    return replace(sent, query=f"{sent.query}&{rng.choice([*names, 'x'])}={odd}".strip("&"))


def _path(sent: Sent, rng: random.Random) -> Sent:
    at = rng.randint(0, len(sent.path))
    word = rng.choice(["/", "//", "..", "%2e%2e/", "\x00", "\udcff", "x" * 3_000, " ", "*", "é"])
    return replace(sent, path=sent.path[:at] + word + sent.path[at + rng.choice((0, 1, 4)) :])


def _method(sent: Sent, rng: random.Random) -> Sent:
    methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "X", ""]
    return replace(sent, method=rng.choice(methods))


def _header(sent: Sent, rng: random.Random) -> Sent:
    name, value = rng.choice(_HEADERS)
    return replace(sent, headers=sent.headers | {name: value})


_WAYS: dict[str, Callable[[Sent, random.Random], Sent]] = {
    "JSON": _json,
    "body": _body,
    "query": _query,
    "path": _path,
    "method": _method,
    "header": _header,
}
# The body has most places where something can be wrong.
_WEIGHTS = (8, 5, 3, 2, 1, 2)


def make_request(number: int, seed: int, good: list[Sent]) -> tuple[str, Sent]:
    """What is changed, and the changed request."""
    rng = random.Random(f"{seed}-{number}")
    sent = rng.choice(good)
    (way,) = rng.choices(list(_WAYS), _WEIGHTS)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        sent = _WAYS[way](sent, rng)
    return way, sent


async def answer(app: Any, sent: Sent) -> tuple[int, dict[str, str], bytes]:
    """Give a request to an application as a server does."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": sent.method,
        "scheme": "http",
        "path": sent.path,
        "raw_path": sent.path.encode("utf-8", "surrogateescape"),
        "root_path": "",
        "query_string": sent.query.encode("utf-8", "surrogateescape"),
        "headers": [
            (name.encode(), value.encode("latin-1"))
            for name, value in ({"content-length": str(len(sent.body))} | sent.headers).items()
        ],
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 80),
    }
    coming = iter([{"type": "http.request", "body": sent.body, "more_body": False}])
    got: dict[str, Any] = {"body": b""}

    async def receive() -> dict[str, Any]:
        for message in coming:
            return message
        await asyncio.sleep(3_600)  # the client waits for its answer
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            got["status"] = message["status"]
            got["headers"] = {k.decode(): v.decode("latin-1") for k, v in message["headers"]}
        else:
            got["body"] += message.get("body", b"")

    await app(scope, receive, send)
    return got["status"], got["headers"], got["body"]


def judged(sent: Sent, status: int, headers: dict[str, str], body: bytes) -> str:
    """What is wrong with an answer; an empty string if nothing is."""
    if status == 503 and "retry-after" in headers:
        return ""
    if status >= 500:
        return f"status {status}: {body[:300]!r}"
    if status >= 400 and sent.method != "HEAD":
        try:
            said = json.loads(body)["error"]["message"]
        except (ValueError, LookupError, TypeError):
            return f"no message: {body[:300]!r}"
        if not 0 < len(said) <= LONGEST:
            return f"a message of {len(said)} characters: {said[:200]!r}"
    return ""


def prepare(folder: Path) -> Path:
    """A small run."""
    quick = ["features.analyzer=words", "validation=0.25", "threads=1"]
    return fit(corpus(0), folder / "run", Config.load(None, quick)).path


async def trial(numbers: range, seed: int, run: Path) -> tuple[Counter[tuple[str, int]], list[str]]:
    """Counts of what was changed and the status of the answer, and the failures."""
    model = load(run)
    app = create_app(model, access=Access(token=TOKEN))
    counts: Counter[tuple[str, int]] = Counter()
    failures = []
    async with app.router.lifespan_context(app):
        host = Sent("GET", "/openapi.json", headers={"host": "127.0.0.1"})
        good = good_requests(json.loads((await answer(app, host))[2]), model.labels[1].id)
        known = next(sent for sent in good if sent.path == "/v1/predict")
        for number in numbers:
            way, sent = make_request(number, seed, good)
            try:
                status, headers, body = await asyncio.wait_for(answer(app, sent), 60)
                wrong = judged(sent, status, headers, body)
            except Exception as error:
                status, wrong = 0, repr(error)
            counts[way, status // 100] += 1
            if wrong:
                failures.append(f"request {number}, {way}: {_shown(sent)}\n  {wrong}")
        if (await answer(app, known))[0] != 200:
            failures.append(f"after request {numbers[-1]} a good one was refused")
    return counts, failures


def _shown(sent: Sent) -> str:
    return repr(sent)[:600]


def main() -> None:
    """Print a table of changes and statuses; the exit code is 1 if there was a failure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first request")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    logging.getLogger("depl").addHandler(logging.NullHandler())
    logging.getLogger("depl").propagate = False
    counts: Counter[tuple[str, int]] = Counter()
    failures: list[str] = []
    last, begun = options.first + options.requests, time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        run = prepare(Path(name))
        for first in range(options.first, last, _BATCH):
            own = Path(shutil.copytree(run, Path(name, "own")))
            numbers = range(first, min(first + _BATCH, last))
            some, wrong = asyncio.run(trial(numbers, options.seed, own))
            counts += some
            failures += wrong
            shutil.rmtree(own)
    print(f"{'changed':<12}" + "".join(f"{f'{x}xx':>10}" for x in (2, 3, 4, 5)))
    for way in _WAYS:
        print(f"{way:<12}" + "".join(f"{counts[way, x]:>10,}" for x in (2, 3, 4, 5)))
    print(f"{options.requests:,} requests in {time.monotonic() - begun:.0f} s")
    print(f"{len(failures):,} failures", *failures[:20], sep="\n")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
