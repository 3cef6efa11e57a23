"""What consumers of the classic protocol say to each other, as bytes. Pure.

    subscription  version int16 | topics: array of strings | user data: bytes
                  | 1: owned partitions | 2: generation int32 | 3: rack, a string or null
    assignment    version int16 | partitions | user data: bytes
    partitions    array of: topic string | array of int32

Every version begins like the first. What clients other than consumers say, and what cannot be read,
is not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from struct import error as TooShort
from typing import Final, NamedTuple

from cotidal.values import TopicPartition, by_topic

_int16: Final = Struct(">h")
_int32: Final = Struct(">i")
NO_DATA: Final = _int32.pack(-1)
OWNED_SINCE, GENERATION_SINCE, RACK_SINCE = 1, 2, 3


class Subscription(NamedTuple):
    version: int
    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...]
    rack_id: str | None


def subscribed_topics(said: Iterable[bytes]) -> frozenset[str] | None:
    """The topics of all members; None if what one of them says cannot be read."""
    found: set[str] = set()
    for metadata in said:
        try:
            found.update(_Reader(metadata, 2).strings())
        except (TooShort, UnicodeDecodeError):
            return None
    return frozenset(found)


def read_subscription(metadata: bytes) -> Subscription | None:
    """None if it cannot be read."""
    reader = _Reader(metadata, 0)
    try:
        version = reader.int16()
        topics = tuple(reader.strings())
        reader.skip_bytes()
        owned = reader.partitions() if version >= OWNED_SINCE else ()
        if version >= GENERATION_SINCE:
            reader.int32()
        rack_id = reader.nullable_string() if version >= RACK_SINCE else None
    except (TooShort, UnicodeDecodeError):
        return None
    return Subscription(version, topics, owned, rack_id)


def read_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """Nothing, where that cannot be read."""
    try:
        return _Reader(data, 2).partitions()
    except (TooShort, UnicodeDecodeError):
        return ()


def write_assignment(version: int, partitions: Iterable[TopicPartition]) -> bytes:
    topics = by_topic(partitions)
    out = [_int16.pack(version), _int32.pack(len(topics))]
    for topic, own in topics.items():
        name = topic.encode()
        out += [_int16.pack(len(name)), name, _int32.pack(len(own))]
        out += [_int32.pack(each) for each in own]
    return b"".join([*out, NO_DATA])


class _Reader:
    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at

    def int16(self) -> int:
        (value,) = _int16.unpack_from(self._data, self._at)
        self._at += 2
        return int(value)

    def int32(self) -> int:
        (value,) = _int32.unpack_from(self._data, self._at)
        self._at += 4
        return int(value)

    def _take(self, length: int) -> bytes:
        if length < 0 or self._at + length > len(self._data):
            raise TooShort
        self._at += length
        return self._data[self._at - length : self._at]

    def nullable_string(self) -> str | None:
        length = self.int16()
        return None if length < 0 else self._take(length).decode()

    def strings(self) -> list[str]:
        return [self._take(self.int16()).decode() for _ in range(self.int32())]

    def skip_bytes(self) -> None:
        length = self.int32()
        if length > 0:
            self._take(length)

    def partitions(self) -> tuple[TopicPartition, ...]:
        found: list[TopicPartition] = []
        for _ in range(self.int32()):
            topic = self._take(self.int16()).decode()
            found.extend(TopicPartition(topic, self.int32()) for _ in range(self.int32()))
        return tuple(found)
