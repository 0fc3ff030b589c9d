"""How fast `depl serve` answers 64 clients at once, with and without batching, in one run.

    python benchmarks/serve.py RUN CORPUS [--clients 64] [--seconds 60] [--max-batch 32]

RUN is what `depl fit` wrote; the documents come from the dev split of CORPUS. Every client sends
one document, waits for the 5 labels, and sends the next. The service runs as its own process on the
same machine, once with `--max-batch 1` and once with batches; an answer other than 200, or one
without labels, counts as an error and ends the benchmark with exit code 1. Latencies are what the
clients see, and the first seconds, in which connections are made, count too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import depl

K = 5

console = Console(highlight=False, width=120)


@dataclass
class Load:
    """What the clients saw."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def milliseconds(self, percentile: float) -> float:
        """So many per cent of the requests were answered within this time."""
        return 1000 * float(np.percentile(self.latencies, percentile))

    @property
    def throughput(self) -> float:
        """Documents a second."""
        return len(self.latencies) / self.seconds


@contextmanager
def service(run: Path, *options: str) -> Iterator[str]:
    """Run `depl serve` on a free port; gives its address."""
    command = [sys.executable, "-m", "depl", "serve", str(run), "--port", "0", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            line = process.stderr.readline()
            address = re.search(r"http://\S+", line)
            if address is None:
                sys.exit(f"The service did not start: {line}{process.stderr.read()}")
            yield address[0]
        finally:
            process.terminate()
            process.wait()


async def put_under_load(address: str, texts: list[str], clients: int, seconds: float) -> Load:
    """Let the clients ask for some seconds; every one has a request open all the time.

    They speak HTTP by hand: a complete client library takes more CPU time a request than the
    service, and would be what is measured.
    """
    load, turn = Load(), count()
    host, port = address.removeprefix("http://").rstrip("/").split(":")
    start = time.perf_counter()
    end = start + seconds

    async def ask_and_ask() -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        while time.perf_counter() < end:
            request = as_request(host, texts[next(turn) % len(texts)])
            begun = time.perf_counter()
            writer.write(request)
            status, body = await read_answer(reader)
            load.latencies.append(time.perf_counter() - begun)
            if status != 200 or not json.loads(body)["results"][0]["labels"]:
                load.errors.append(f"{status}: {body[:200]!r}")
        writer.close()

    async def client() -> None:
        try:
            await ask_and_ask()
        except (OSError, EOFError, ValueError) as error:
            load.errors.append(repr(error))

    await asyncio.gather(*(client() for _ in range(clients)))
    load.seconds = time.perf_counter() - start
    return load


def as_request(host: str, text: str) -> bytes:
    """A POST of one text, on a connection that stays open."""
    body = json.dumps({"texts": [text], "k": K}).encode()
    head = (
        f"POST /v1/predict HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Status and body of an answer that says its length."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    length = re.search(r"(?i)^content-length: (\d+)", head, re.MULTILINE)
    if length is None:
        raise ValueError(f"an answer without its length: {head[:200]!r}")
    return int(head.split(" ", 2)[1]), await reader.readexactly(int(length[1]))


def mean_batch(address: str) -> float:
    """Texts a batch, as the service has counted them."""
    with urllib.request.urlopen(f"{address}metrics") as answer:
        lines = answer.read().decode().splitlines()
    counted = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    batches = float(counted["depl_batch_texts_count"])
    return float(counted["depl_batch_texts_sum"]) / max(1.0, batches)


def main() -> None:
    """Put both services under load, one after the other; print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--max-batch", type=int, default=32)
    args = parser.parse_args()
    texts = depl.read(args.corpus, splits=["dev"]).dev.texts
    title = f"{args.run.resolve().name}: {args.clients} clients, {args.seconds:g} s each"
    columns = ("", "documents/s", "p50 ms", "p95 ms", "p99 ms", "texts a batch", "errors", "ratio")
    table = Table(*columns, title=title, box=None)
    loads = {}
    for name, size in (("one by one", 1), ("batched", args.max_batch)):
        console.print(f"[dim]{name} …[/]")
        with service(args.run, "--max-batch", str(size)) as address:
            load = asyncio.run(put_under_load(address, texts, args.clients, args.seconds))
            batch = mean_batch(address)
        loads[name] = load
        table.add_row(
            name,
            f"{load.throughput:,.1f}",
            *(f"{load.milliseconds(p):,.0f}" for p in (50, 95, 99)),
            f"{batch:.1f}",
            str(len(load.errors)),
            f"{load.throughput / loads['one by one'].throughput:.2f}",
        )
    console.print(table)
    errors = [error for load in loads.values() for error in load.errors]
    for error in errors[:3]:
        console.print(f"[red]{error}[/]")
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
