"""A line on stderr for what takes longer than a second. Silent when stderr is no terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Final

QUIET_FOR_S: Final = 1.0
BETWEEN_S: Final = 0.2
BAR_CELLS: Final = 30


class Progress:
    """Counts things, and says so on one line that is wiped at the end.

    ``with Progress("records written") as progress: progress.advance(100)``

    With ``total`` it draws a bar of how much is done.
    """

    __slots__ = ("_count", "_next", "_noun", "_shown", "_started", "_terminal", "_total")

    def __init__(self, noun: str, *, total: int = 0) -> None:
        self._noun = noun
        self._total = total
        self._count = 0
        self._terminal = sys.stderr.isatty()
        self._started = time.monotonic()
        self._next = self._started + QUIET_FOR_S
        self._shown = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def advance(self, by: int) -> None:
        self._count += by
        if not self._terminal:
            return
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + BETWEEN_S
        self._shown = True
        rate = self._count / (now - self._started)
        sys.stderr.write(f"\r\x1b[K{self._bar()}{self._count:,} {self._noun}, {rate:,.0f}/s")
        sys.stderr.flush()

    def _bar(self) -> str:
        if not self._total:
            return ""
        done = min(self._count * BAR_CELLS // self._total, BAR_CELLS)
        return f"[{'#' * done}{'.' * (BAR_CELLS - done)}] of {self._total:,}: "
