"""What happened, one line for each event of a node and what it did about it. Pure.

Entries are kept as values and told (by ``node.trace``) only when somebody reads them: a run that
holds costs no formatting. ``full`` hands every line, as it happens, to whoever wants all of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from cotidal.core.trace.cluster import NO_NAMES, Names
from cotidal.node.effects import Effect
from cotidal.node.events import Event
from cotidal.node.trace import line as told

LINES_KEPT: Final = 60
"""As many as a failure tells."""

Entry = tuple[int, int, Event | str, tuple[Effect, ...]]


class Trace:
    """The last lines of a run."""

    __slots__ = ("_full", "_kept", "names")

    def __init__(self, full: Callable[[str], object] | None = None, kept: int = LINES_KEPT) -> None:
        self._kept: deque[Entry] = deque(maxlen=kept)
        self._full = full
        self.names: Callable[[], Names] = lambda: NO_NAMES
        """What topics are called, by their ids; asked when a line is told."""

    def add(self, now_us: int, node: int, event: Event | str, effects: tuple[Effect, ...]) -> None:
        entry = (now_us, node, event, effects)
        self._kept.append(entry)
        if self._full is not None:
            self._full(line(entry, self.names()))

    def say(self, now_us: int, node: int, text: str) -> None:
        """Something that is no event of a node: a fault, a start, what a client saw."""
        self.add(now_us, node, text, ())

    def last(self, count: int) -> list[str]:
        names = self.names()
        return [line(entry, names) for entry in list(self._kept)[-count:]]


def line(entry: Entry, names: Names = NO_NAMES) -> str:
    now_us, node, event, effects = entry
    moment = f"{now_us // 1_000_000}.{now_us % 1_000_000:06d}"
    happened = event if isinstance(event, str) else told(event, names)
    wanted = "; ".join(told(effect, names) for effect in effects)
    return f"{moment} {node}: {happened}" + (f" -> {wanted}" if wanted else "")
