"""What happened, one line for each event of a node and what it did about it. Pure.

Lines are kept as values and written out only when somebody reads them: a run that holds costs no
formatting. ``full`` hands every line, as it happens, to whoever wants all of them.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable
from typing import Any, Final

LINES_KEPT: Final = 400
VALUES_SHOWN: Final = 12
TEXT_SHOWN: Final = 120

Entry = tuple[int, int, object, tuple[Any, ...]]


class Trace:
    """The last lines of a run."""

    __slots__ = ("_full", "_kept")

    def __init__(self, full: Callable[[str], object] | None = None, kept: int = LINES_KEPT) -> None:
        self._kept: deque[Entry] = deque(maxlen=kept)
        self._full = full

    def add(self, now_us: int, node: int, event: object, effects: tuple[Any, ...]) -> None:
        entry = (now_us, node, event, effects)
        self._kept.append(entry)
        if self._full is not None:
            self._full(line(entry))

    def say(self, now_us: int, node: int, text: str) -> None:
        """Something that is no event of a node: a fault, a start, what a client saw."""
        self.add(now_us, node, text, ())

    def last(self, count: int) -> list[str]:
        return [line(entry) for entry in list(self._kept)[-count:]]


def line(entry: Entry) -> str:
    now_us, node, event, effects = entry
    moment = f"{now_us // 1_000_000}.{now_us % 1_000_000:06d}"
    told = f"{moment} {node}: {event if isinstance(event, str) else brief(event)}"
    if effects:
        told += " -> " + "; ".join(brief(effect) for effect in effects)
    return told


def brief(value: Any) -> str:
    """A value in few words, the same on every Python: no address, no set, bytes by checksum."""
    if isinstance(value, str):
        return value if len(value) <= TEXT_SHOWN else value[:TEXT_SHOWN] + "..."
    if isinstance(value, bytes | bytearray | memoryview):
        raw = bytes(value)
        return raw.hex() if len(raw) <= 16 else f"<{len(raw)} bytes {zlib.crc32(raw):08x}>"
    if isinstance(value, tuple | list):
        parts = [brief(each) for each in value[:VALUES_SHOWN]]
        if len(value) > VALUES_SHOWN:
            parts.append(f"+{len(value) - VALUES_SHOWN}")
        name = type(value).__name__ if hasattr(value, "_fields") else ""
        return f"{name}({' '.join(parts)})"
    if isinstance(value, dict):
        return f"<{len(value)} entries>"
    if value is None or isinstance(value, int | bool):
        return str(value)
    if hasattr(value, "items"):
        return f"<{len(value)} entries>"
    return type(value).__name__
