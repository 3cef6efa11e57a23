"""The topics in what consumers say when they join. Pure.

A subscription is: version int16 | topics: array of strings | more, by version. Every version begins
like the first, so that much can be read of all of them. What clients other than consumers say, and
what cannot be read, is not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from struct import error as TooShort
from typing import Final

_int16: Final = Struct(">h").unpack_from
_int32: Final = Struct(">i").unpack_from


def subscribed_topics(said: Iterable[bytes]) -> frozenset[str] | None:
    """The topics of all members; None if what one of them says cannot be read."""
    found: set[str] = set()
    for metadata in said:
        try:
            found.update(_topics(metadata))
        except (TooShort, UnicodeDecodeError):
            return None
    return frozenset(found)


def _topics(metadata: bytes) -> list[str]:
    (count,) = _int32(metadata, 2)
    at = 6
    names = []
    for _ in range(count):
        (length,) = _int16(metadata, at)
        at += 2
        if length < 0 or at + length > len(metadata):
            raise TooShort
        names.append(metadata[at : at + length].decode())
        at += length
    return names
