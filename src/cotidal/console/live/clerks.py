"""Threads that ask the cluster on behalf of pages, with new connections for each question."""

from __future__ import annotations

import queue
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Final

from cotidal.broker.control import ControlError
from cotidal.client.cluster import Cluster
from cotidal.client.failures import ClientError
from cotidal.console.live.hearsay import CONSOLE
from cotidal.console.world import Json, Refused
from cotidal.limits import LIVE_CLERKS_MAX, LIVE_QUESTIONS_MAX

ANSWER_TIMEOUT_S: Final = 15.0

Work = Callable[[Cluster], Json]


class Answer:
    """Implements ``console.world.Awaited``. Written by a clerk, once."""

    __slots__ = ("_found", "_refusal")

    def __init__(self) -> None:
        self._found: Json | None = None
        self._refusal: str | None = None

    def found(self) -> Json | None:
        if self._refusal is not None:
            raise Refused(self._refusal)
        return self._found

    def give(self, found: Json) -> None:
        self._found = found

    def refuse(self, sentence: str) -> None:
        self._refusal = sentence


class Clerks:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._asked: queue.Queue[tuple[Work, Answer]] = queue.Queue(LIVE_QUESTIONS_MAX)
        self._hired = 0
        self._lock = threading.Lock()

    def ask(self, work: Work) -> Answer:
        """Refused when too many wait already."""
        answer = Answer()
        try:
            self._asked.put_nowait((work, answer))
        except queue.Full:
            raise Refused(f"{LIVE_QUESTIONS_MAX} questions wait for an answer already") from None
        with self._lock:
            if self._hired < LIVE_CLERKS_MAX:
                self._hired += 1
                threading.Thread(target=self._serve, name="clerk", daemon=True).start()
        return answer

    def _serve(self) -> None:
        while True:
            work, answer = self._asked.get()
            try:
                # New connections each time: an old one would tell of a broker that was restarted
                # meanwhile that it does not answer.
                with Cluster(
                    self._bootstrap,
                    timeout_s=ANSWER_TIMEOUT_S,
                    connect_timeout_s=2.0,
                    client_id=CONSOLE,
                ) as cluster:
                    answer.give(work(cluster))
            except (Refused, ClientError, ControlError) as no:
                answer.refuse(str(no))
            except Exception as fault:  # a bug of ours ends no clerk, and is not hidden
                traceback.print_exc(file=sys.stderr)
                answer.refuse(f"the console failed: {type(fault).__name__}: {fault}")
