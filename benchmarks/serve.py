"""What `depl serve` does under the load of many clients.

    python benchmarks/serve.py RUN CORPUS [--clients 64] [--seconds 60] [--max-batch 32]
    python benchmarks/serve.py RUN CORPUS --workers 2 [--clients 64] [--seconds 60]
    python benchmarks/serve.py RUN CORPUS --endurance [--clients 64] [--seconds 180] [--pause 0]

RUN is what `depl fit` wrote; the documents come from the dev split of CORPUS. Every client sends
one document, waits for the 5 labels, and sends the next. The service runs as its own process on the
same machine. Latencies are what the clients see.

By default the service runs twice, with `--max-batch 1` and with batches, and the two are compared.
With `--workers N` it runs with one process and with N, in turns, four times in all. Requests then
hold 8 documents each: the clients run on the same cores, and must not be what is measured. The CPU
seconds of the service alone are counted as well: documents for each of them do not depend on what
else the machine does, and `cores` says how many the service had.
With `--endurance` it runs once, for longer: every tenth request asks for an explanation and every
twentieth searches labels, and the memory of the service is read every second. Its figure after the
first third, or after five minutes if that is sooner, is compared with that at the end. With
`--pause` every client rests so many seconds between an answer and its next request. A memory that
grew by more than 5 %, or a p99 of more than 10 times the p50, ends it with exit code 1.

An answer other than 200, or one without labels, counts as an error and ends the benchmark with exit
code 1. A 503 with Retry-After does not: the queue is full, and the client waits as long as it says.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.memory import cpu_seconds

import depl

K = 5
TEXTS = 8  # of a request, where processes are compared
EXPLAIN_EVERY, SEARCH_EVERY = 10, 20

console = Console(highlight=False, width=120)


@dataclass
class Load:
    """What the clients saw."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    full: int = 0  # answers 503 with Retry-After
    cpu: float = 0.0  # seconds that the service took meanwhile

    def milliseconds(self, percentile: float) -> float:
        """So many per cent of the requests were answered within this time."""
        return 1000 * float(np.percentile(self.latencies, percentile))

    @property
    def throughput(self) -> float:
        """Requests a second."""
        return len(self.latencies) / self.seconds


class Service(NamedTuple):
    """A service that runs."""

    address: str
    process: int


@contextmanager
def service(run: Path, *options: str) -> Iterator[Service]:
    """Run `depl serve` on a free port."""
    command = [sys.executable, "-m", "depl", "serve", str(run), "--port", "0", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            line = process.stderr.readline()
            address = re.search(r"http://\S+", line)
            if address is None:
                sys.exit(f"The service did not start: {line}{process.stderr.read()}")
            yield Service(address[0], process.pid)
        finally:
            process.terminate()
            process.wait()


async def put_under_load(
    address: str, request: Callable[[int], bytes], clients: int, seconds: float, pause: float = 0.0
) -> Load:
    """Let the clients ask for some seconds; without a pause, every one has a request open always.

    They speak HTTP by hand: a complete client library takes more CPU time a request than the
    service, and would be what is measured.
    """
    load, turn = Load(), count()
    host, port = address.removeprefix("http://").rstrip("/").split(":")
    start = time.perf_counter()
    end = start + seconds

    async def ask_and_ask(first: float) -> None:
        await asyncio.sleep(first)
        reader, writer = await asyncio.open_connection(host, int(port))
        while time.perf_counter() < end:
            begun = time.perf_counter()
            writer.write(request(next(turn)))
            status, head, body = await read_answer(reader)
            wait = re.search(r"(?im)^retry-after: (\d+)", head)
            if status == 503 and wait:
                load.full += 1
                await asyncio.sleep(int(wait[1]))
                continue
            load.latencies.append(time.perf_counter() - begun)
            if status != 200 or not is_useful(json.loads(body)):
                load.errors.append(f"{status}: {body[:200]!r}")
            if pause:
                await asyncio.sleep(pause)
        writer.close()

    async def client(number: int) -> None:
        try:
            await ask_and_ask(number * pause / clients)
        except (OSError, EOFError, ValueError) as error:
            load.errors.append(repr(error))

    await asyncio.gather(*(client(i) for i in range(clients)))
    load.seconds = time.perf_counter() - start
    return load


def is_useful(answer: dict) -> bool:
    """Whether there is in an answer what was asked for."""
    if "results" in answer:
        return all(result["labels"] for result in answer["results"])
    return "neighbours" in answer or "total" in answer


def prediction(*texts: str) -> bytes:
    """A request for the labels of some texts, on a connection that stays open."""
    return post("/v1/predict", {"texts": texts, "k": K})


def mixture(texts: list[str], labels: list[str]) -> Callable[[int], bytes]:
    """The requests of the endurance trial, by their number."""

    def request(i: int) -> bytes:
        text, label = texts[i % len(texts)], labels[i % len(labels)]
        if i % SEARCH_EVERY == 1:
            return b"GET /v1/labels?search=a&limit=20 HTTP/1.1\r\nHost: localhost\r\n\r\n"
        if i % EXPLAIN_EVERY == 0:
            return post("/v1/explain", {"text": text, "label": label})
        return prediction(text)

    return request


def post(path: str, body: dict) -> bytes:
    """A POST of JSON."""
    raw = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(raw)}\r\n\r\n"
    )
    return head.encode() + raw


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, str, bytes]:
    """Status, head and body of an answer that says its length."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    length = re.search(r"(?i)^content-length: (\d+)", head, re.MULTILINE)
    if length is None:
        raise ValueError(f"an answer without its length: {head[:200]!r}")
    return int(head.split(" ", 2)[1]), head, await reader.readexactly(int(length[1]))


def metrics(address: str) -> dict[str, float]:
    """What the service has counted."""
    with urllib.request.urlopen(f"{address}metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name.partition("{run=")[0]: float(value) for name, value in pairs}


def mean_batch(address: str) -> float:
    """Texts a batch, as the service has counted them."""
    counted = metrics(address)
    return counted["depl_batch_texts_sum"] / max(1.0, counted["depl_batch_texts_count"])


def compare(args: argparse.Namespace, texts: list[str]) -> list[str]:
    """Put services with and without batches under load, one after the other; the errors."""
    title = f"{args.run.resolve().name}: {args.clients} clients, {args.seconds:g} s each"
    columns = ("", "documents/s", "p50 ms", "p95 ms", "p99 ms", "texts a batch", "errors", "ratio")
    table = Table(*columns, title=title, box=None)
    loads = {}
    for name, size in (("one by one", 1), ("batched", args.max_batch)):
        console.print(f"[dim]{name} …[/]")
        with service(args.run, "--max-batch", str(size)) as (address, _):
            load = asyncio.run(
                put_under_load(
                    address,
                    lambda i: prediction(texts[i % len(texts)]),
                    args.clients,
                    args.seconds,
                )
            )
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
    return [error for load in loads.values() for error in load.errors]


def compare_workers(args: argparse.Namespace, texts: list[str]) -> list[str]:
    """Put services of one and of several processes under load, in turns; the errors."""
    title = f"{args.run.resolve().name}: {args.clients} clients, {args.seconds:g} s each"
    columns = ("workers", "documents/s", "documents/CPU s", "cores", "p50 ms", "p99 ms", "errors")
    table = Table(*columns, title=title, box=None)
    chunks = [texts[i : i + TEXTS] for i in range(0, len(texts) - TEXTS + 1, TEXTS)]
    requests = [prediction(*chunk) for chunk in chunks]
    loads: dict[int, list[Load]] = {1: [], args.workers: []}
    for workers in (1, args.workers) * 2:
        console.print(f"[dim]{workers} …[/]")
        options = ("--max-batch", str(args.max_batch), "--workers", str(workers))
        with service(args.run, *options) as (address, process):
            before = cpu_seconds(process)
            load = asyncio.run(
                put_under_load(
                    address, lambda i: requests[i % len(requests)], args.clients, args.seconds
                )
            )
            load.cpu = cpu_seconds(process) - before
        loads[workers].append(load)
        table.add_row(
            str(workers),
            f"{TEXTS * load.throughput:,.1f}",
            f"{TEXTS * len(load.latencies) / load.cpu:,.1f}",
            f"{load.cpu / load.seconds:.2f}",
            *(f"{load.milliseconds(p):,.0f}" for p in (50, 99)),
            str(len(load.errors)),
        )
    console.print(table)
    for what, of in (
        ("documents/s", lambda x: x.throughput),
        ("documents/CPU s", lambda x: len(x.latencies) / x.cpu),
    ):
        one, several = (statistics.mean(map(of, found)) for found in loads.values())
        console.print(f"{what}, {args.workers} workers : 1 worker = {several / one:.2f}")
    return [error for found in loads.values() for load in found for error in load.errors]


def endure(args: argparse.Namespace, texts: list[str]) -> list[str]:
    """Put one service under load for longer, and watch its memory; the errors."""
    with service(args.run, "--max-batch", str(args.max_batch)) as (address, _):
        with urllib.request.urlopen(f"{address}v1/labels?sort=count&limit=50") as answer:
            labels = [label["id"] for label in json.load(answer)["labels"]]

        async def trial() -> tuple[Load, list[float]]:
            watching = asyncio.create_task(watch_memory(address))
            request = mixture(texts, labels)
            load = await put_under_load(address, request, args.clients, args.seconds, args.pause)
            watching.cancel()
            return load, (await asyncio.gather(watching))[0]

        load, memory = asyncio.run(trial())
    warm = min(args.seconds / 3, 300)
    first = round(len(memory) * warm / args.seconds)
    early = statistics.median(memory[first : first + 10])
    late = statistics.median(memory[-10:])
    p50, p99 = load.milliseconds(50), load.milliseconds(99)
    title = f"{args.run.resolve().name}: {args.clients} clients for {args.seconds:g} s"
    table = Table("", "", title=title, box=None, show_header=False)
    table.columns[1].justify = "right"
    for name, figure in (
        ("requests answered", f"{len(load.latencies):,}"),
        ("requests a second", f"{load.throughput:,.1f}"),
        ("queue full (503 with Retry-After)", f"{load.full:,}"),
        ("errors", f"{len(load.errors):,}"),
        ("p50, p99 (ms)", f"{p50:,.0f}, {p99:,.0f}"),
        ("p99 / p50", f"{p99 / p50:.1f}"),
        ("memory before the load (MB)", f"{memory[0]:,.0f}"),
        (f"after {warm:,.0f} s (MB)", f"{early:,.0f}"),
        ("at the end (MB)", f"{late:,.0f}"),
        ("growth since then", f"{late / early - 1:+.1%}"),
    ):
        table.add_row(name, figure)
    console.print(table)
    missed = ["the memory grew by more than 5 %"] if late > 1.05 * early else []
    missed += ["p99 is more than 10 times p50"] if p99 > 10 * p50 else []
    return load.errors + missed


async def watch_memory(address: str) -> list[float]:
    """Resident memory of the service every second, in MB, until this is cancelled."""
    found = []
    try:
        while True:
            counted = await asyncio.to_thread(metrics, address)
            found.append(counted["process_resident_memory_bytes"] / 1e6)
            await asyncio.sleep(1)
    except asyncio.CancelledError:
        return found


def main() -> None:
    """Put the service under load; print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, help="60, and 180 of the endurance trial")
    parser.add_argument("--max-batch", type=int, default=32)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--endurance", action="store_true")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds, with --endurance")
    args = parser.parse_args()
    args.seconds = args.seconds or (180 if args.endurance else 60)
    texts = depl.read(args.corpus, splits=["dev"]).dev.texts
    measure = endure if args.endurance else compare_workers if args.workers else compare
    errors = measure(args, texts)
    for error in errors[:3]:
        console.print(f"[red]{error}[/]")
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
