"""Calls of clients that may stand still for ever, though they are told how long they may take."""

from __future__ import annotations

import threading
from collections.abc import Callable


class StoodStill(Exception):
    """The call has not returned. It goes on in its thread, and nobody waits for it."""


def within(seconds: float, call: Callable[[], object]) -> None:
    """Call it, and raise what it raises; StoodStill if it does not return in time."""
    ended: list[Exception | None] = []

    def run() -> None:
        try:
            call()
        except Exception as wrong:
            ended.append(wrong)
        else:
            ended.append(None)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if not ended:
        raise StoodStill(f"a call has not returned within {seconds:g} s")
    if ended[0] is not None:
        raise ended[0]
