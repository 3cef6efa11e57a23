"""One thread that does what would stall the event loop: fsync, recovery, retention, big writes.

Work is done in the order in which it was handed in. Its result comes back on the loop's own
thread, so that nobody but the worker needs a lock. What the work raises comes back too.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")


class Done(NamedTuple, Generic[T]):
    value: T


class Failed(NamedTuple):
    error: Exception


Outcome: TypeAlias = Done[T] | Failed

_Job: TypeAlias = "tuple[Callable[[], object], Callable[[object], None]] | None"


class Worker:
    """A daemon thread: a process that has to die does not wait for it."""

    __slots__ = ("_abandoned", "_jobs", "_loop", "_on_fault", "_thread", "waiting")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        name: str,
        on_fault: Callable[[Exception], None],
    ) -> None:
        """``on_fault``: a ``then`` raised, which is a broken promise of ours."""
        self.waiting = 0
        """Jobs handed in whose outcome has not come back."""
        self._abandoned = False
        self._loop = loop
        self._on_fault = on_fault
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[], T], then: Callable[[Outcome[T]], None]) -> None:
        """Run ``work`` in the thread, then ``then(outcome)`` on the loop."""
        self.waiting += 1
        self._jobs.put((work, then))  # type: ignore[arg-type]

    def stop(self) -> None:
        """No more work; what was handed in is still done. Blocks until then."""
        self._jobs.put(None)
        self._thread.join()

    def abandon(self) -> None:
        """No more work but what is being done; nobody hears how that went."""
        self._abandoned = True
        self.stop()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            if self._abandoned:
                continue
            work, then = job
            outcome: Outcome[object]
            try:
                outcome = Done(work())
            except Exception as error:
                outcome = Failed(error)
            try:
                self._loop.call_soon_threadsafe(self._deliver, then, outcome)
            except RuntimeError:  # the loop was closed under us: nobody waits for the outcome
                return
            del job, work, then, outcome  # an idle worker holds on to no record bytes

    def _deliver(self, then: Callable[[object], None], outcome: object) -> None:
        self.waiting -= 1
        if self._abandoned:
            return
        try:
            then(outcome)
        except Exception as error:
            self._on_fault(error)
