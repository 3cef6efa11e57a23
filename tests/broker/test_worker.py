"""A thread whose results come back on the loop, in order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from cotidal.broker.worker import Done, Failed, Worker


def play(script: Callable[[Worker, list[Any]], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        faults: list[Any] = []
        worker = Worker(asyncio.get_running_loop(), "test", faults.append)
        try:
            await asyncio.wait_for(script(worker, faults), 10)
        finally:
            worker.abandon()

    asyncio.run(whole())


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


def test_work_is_done_elsewhere_and_told_here_in_order() -> None:
    async def script(worker: Worker, faults: list[Any]) -> None:
        here = threading.get_ident()
        told: list[Any] = []
        for number in range(20):
            worker.submit(
                lambda number=number: (number, threading.get_ident() == here),
                lambda outcome: told.append((outcome, threading.get_ident() == here)),
            )
        assert worker.waiting == 20
        await until(lambda: len(told) == 20)
        assert told == [(Done((number, False)), True) for number in range(20)]
        assert worker.waiting == 0

    play(script)


def test_what_work_raises_is_an_outcome() -> None:
    async def script(worker: Worker, faults: list[Any]) -> None:
        told: list[Any] = []
        worker.submit(lambda: 1 // 0, told.append)
        await until(lambda: told)
        assert isinstance(told[0], Failed)
        assert isinstance(told[0].error, ZeroDivisionError)
        assert faults == []

    play(script)


def test_what_the_listener_raises_is_a_fault() -> None:
    async def script(worker: Worker, faults: list[Any]) -> None:
        def broken(outcome: object) -> None:
            raise AssertionError("nobody expected this")

        worker.submit(lambda: None, broken)
        await until(lambda: faults)
        assert str(faults[0]) == "nobody expected this"

    play(script)


def test_an_abandoned_worker_does_nothing_more() -> None:
    async def script(worker: Worker, faults: list[Any]) -> None:
        begun, may_end = threading.Event(), threading.Event()
        done: list[str] = []

        def first() -> None:
            begun.set()
            may_end.wait()
            done.append("first")

        worker.submit(first, lambda outcome: done.append("told"))
        worker.submit(lambda: done.append("second"), lambda outcome: done.append("told"))
        await asyncio.to_thread(begun.wait)
        abandoning = asyncio.ensure_future(asyncio.to_thread(worker.abandon))
        await until(lambda: worker._abandoned)
        may_end.set()
        await abandoning
        assert done == ["first"]

    play(script)
