"""What a generated codec module says of each message: its facts, and its reader and writer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from cotidal.wire.primitives import Buffer

Parts = list[Buffer | bytearray]
Reader = Callable[[Buffer, int, int], tuple[Any, int]]
"""(buffer, position, version) -> (message, next position)."""
Writer = Callable[[bytearray, Parts, Any, int], bytearray]
"""(out, parts, message, version) -> what to write to next.

Full buffers go to parts, so that record data between them need not be copied; the bytearray that
is returned belongs after them.
"""


class Codec(NamedTuple):
    """One message, all versions."""

    message: type[Any]
    kind: str
    """request, response, metadata, key, value or data."""
    key: int
    """API key or record key; -1 where there is none."""
    first_version: int
    flexible_from: int
    """Above last_version where no version is flexible."""
    readers: tuple[Reader, ...]
    """By version, from first_version on."""
    writers: tuple[Writer, ...]

    @property
    def last_version(self) -> int:
        return self.first_version + len(self.readers) - 1
