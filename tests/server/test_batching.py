"""Texts of many requests, one thread: batch sizes, order, limits, cancelled requests."""

from __future__ import annotations

import asyncio
import threading

import pytest

from depl.core.errors import ConfigError
from depl.server.batching import Batcher, Batching, QueueFullError, TooLateError


class Doubler:
    """Doubles numbers, when allowed to; remembers in which batches."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.may_go = threading.Event()
        self.begun = threading.Event()

    def __call__(self, numbers: list[int]) -> list[int]:
        self.begun.set()
        assert self.may_go.wait(10)
        self.batches.append(numbers)
        if -1 in numbers:
            raise ValueError("no negative numbers")
        return [2 * number for number in numbers]


def run(scenario, *, doubler: Doubler | None = None, **settings):
    """Run a coroutine function of (batcher, doubler) with a working batcher."""
    doubler = doubler or Doubler()

    async def whole():
        batcher = Batcher(doubler, Batching(**settings), lambda size, seconds: None)
        batcher.start()
        try:
            return await scenario(batcher, doubler)
        finally:
            doubler.may_go.set()
            await batcher.stop()

    return asyncio.run(whole())


async def begun(doubler: Doubler) -> None:
    while not doubler.begun.is_set():
        await asyncio.sleep(0.001)


def test_requests_that_come_together_share_a_batch():
    async def scenario(batcher, doubler):
        doubler.may_go.set()
        return await asyncio.gather(*(batcher.submit([i, i + 100]) for i in range(5)))

    doubler = Doubler()
    answers = run(scenario, doubler=doubler, max_batch=10, max_wait=5.0)
    assert answers == [[2 * i, 2 * i + 200] for i in range(5)]
    assert [len(batch) for batch in doubler.batches] == [10]  # full: nobody waited the five seconds


def test_a_batch_is_never_larger_than_allowed_and_a_large_request_is_cut():
    async def scenario(batcher, doubler):
        doubler.may_go.set()
        return await asyncio.gather(batcher.submit(range(7)), batcher.submit([100]))

    doubler = Doubler()
    answers = run(scenario, doubler=doubler, max_batch=3, max_wait=0)
    assert answers == [[0, 2, 4, 6, 8, 10, 12], [200]]
    assert max(len(batch) for batch in doubler.batches) == 3


def test_a_lone_request_waits_no_longer_than_it_must():
    async def scenario(batcher, doubler):
        doubler.may_go.set()
        start = asyncio.get_running_loop().time()
        await batcher.submit([1])
        return asyncio.get_running_loop().time() - start

    assert 0.05 <= run(scenario, max_batch=100, max_wait=0.05) < 2


def test_a_full_queue_refuses_and_takes_again_later():
    async def scenario(batcher, doubler):
        first = asyncio.create_task(batcher.submit([1]))
        await begun(doubler)
        second = asyncio.create_task(batcher.submit([2, 3]))
        await asyncio.sleep(0)
        assert batcher.waiting == 2
        with pytest.raises(QueueFullError, match="queue is full"):
            await batcher.submit([4])
        doubler.may_go.set()
        assert await first == [2]
        assert await second == [4, 6]
        assert await batcher.submit([4]) == [8]

    run(scenario, max_batch=4, max_wait=0, queue=2)


def test_who_waits_too_long_is_told_and_taken_out():
    async def scenario(batcher, doubler):
        first = asyncio.create_task(batcher.submit([1]))
        await begun(doubler)
        with pytest.raises(TooLateError, match=r"0\.05 s"):
            await batcher.submit([2])
        with pytest.raises(TooLateError):
            await first
        assert batcher.waiting == 0

    doubler = Doubler()
    run(scenario, doubler=doubler, max_wait=0, timeout=0.05)
    assert doubler.batches == [[1]]


def test_who_goes_away_is_never_computed():
    async def scenario(batcher, doubler):
        first = asyncio.create_task(batcher.submit([1]))
        await begun(doubler)
        gone = asyncio.create_task(batcher.submit([2, 3]))
        stays = asyncio.create_task(batcher.submit([4]))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        assert batcher.waiting == 1
        doubler.may_go.set()
        return await asyncio.gather(first, stays)

    doubler = Doubler()
    assert run(scenario, doubler=doubler, max_wait=0) == [[2], [8]]
    assert doubler.batches == [[1], [4]]


def test_what_fails_fails_alone():
    async def scenario(batcher, doubler):
        doubler.may_go.set()
        wishes = ([1], [-1], [3, 4])
        return await asyncio.gather(*map(batcher.submit, wishes), return_exceptions=True)

    good, bad, other = run(scenario, max_batch=4, max_wait=1)
    assert (good, other) == ([2], [6, 8])
    assert isinstance(bad, ValueError)


def test_calls_run_between_batches_in_the_same_thread():
    async def scenario(batcher, doubler):
        doubler.may_go.set()
        names = await asyncio.gather(
            *(batcher.call(lambda: threading.current_thread().name) for _ in range(3))
        )
        assert set(names) == {"depl-model_0"}
        with pytest.raises(ZeroDivisionError):
            await batcher.call(lambda: 1 / 0)
        return await batcher.submit([1])

    assert run(scenario, max_wait=0) == [2]


@pytest.mark.parametrize(
    ("arriving", "served"),
    [
        ("ccccctt", "ccccctt"),  # first come, first served
        ("ctctcct", "ctctcct"),
        ("ttttccc", "ctctctt"),  # behind many texts there is a call after every batch
    ],
)
def test_calls_and_texts_wait_equally_long(arriving, served):
    async def scenario(batcher, doubler):
        done = []

        async def ask(kind):
            await (batcher.call(int) if kind == "c" else batcher.submit([1]))
            done.append(kind)

        first = asyncio.create_task(batcher.submit([1]))
        await begun(doubler)
        tasks = [asyncio.create_task(ask(kind)) for kind in arriving]
        await asyncio.sleep(0.01)
        doubler.may_go.set()
        await asyncio.gather(first, *tasks)
        return "".join(done)

    assert run(scenario, max_batch=1, max_wait=0) == served


def test_a_call_that_is_told_it_was_too_late_is_never_made():
    async def scenario(batcher, doubler):
        made = []
        first = asyncio.create_task(batcher.submit([1]))
        await begun(doubler)
        with pytest.raises(TooLateError):
            await batcher.call(lambda: made.append(1))
        doubler.may_go.set()
        await asyncio.gather(first, return_exceptions=True)
        await batcher.call(lambda: None)
        return made

    assert run(scenario, max_wait=0, timeout=0.05) == []


@pytest.mark.parametrize(
    "wrong", [{"max_batch": 0}, {"queue": 0}, {"max_wait": -1}, {"timeout": 0}]
)
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(ConfigError, match=f"{next(iter(wrong))} = "):
        Batching(**wrong)
