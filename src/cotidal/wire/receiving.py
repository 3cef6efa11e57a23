"""Frames received from a socket, without copying the large ones. Pure.

Whoever owns the socket has ``space()`` filled and says how much of it was, with ``received(n)``:

  small frames   come into a scratch area that all receivers of a thread share, and are cut out
  a large one    is received, from the moment its length is known, into the place where it stays

A claimed length allocates nothing: the place of a large frame is at most AHEAD times as large as
what has come of it, and gives way to a larger one when it is full. FrameReader (frames.py) does the
same for those who are handed bytes.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from cotidal.wire.frames import SMALL_FRAME_BYTES, length_refused
from cotidal.wire.primitives import Buffer

SCRATCH_BYTES: Final = 256 * 1024
"""The most that one read brings of small frames, and of a large one's beginning."""

LARGE_FRAME_BYTES: Final = 32 * 1024
"""An unfinished frame up to this is copied to the front of the scratch area before the next read,
which then brings its rest and what follows; a larger one gets a place of its own."""

AHEAD: Final = 8
"""A frame of 1 MB, of which a first read seldom brings less than 128 KB, gets its place at once; a
peer that claims much and sends little holds little."""

_unpack_length: Final = Struct(">i").unpack_from


def scratch() -> memoryview:
    """Room for the receivers of one thread: none of them leaves anything there."""
    return memoryview(bytearray(SCRATCH_BYTES))


class FrameReceiver:
    """Cuts what a socket brings into frames, without their length prefix.

    Work is linear in the bytes received, plus LARGE_FRAME_BYTES at most for each read.
    """

    __slots__ = ("_have", "_head", "_large", "_max", "_scratch", "_wanted")

    def __init__(self, max_frame_bytes: int, scratch: memoryview) -> None:
        self._max = max_frame_bytes
        self._scratch = scratch
        self._head = b""
        """An unfinished frame that is not large, or whose length is not known yet."""
        self._large: bytearray | None = None
        """The place of an unfinished large frame, prefix included."""
        self._have = 0
        """Bytes that are in it."""
        self._wanted = 0
        """Bytes that it needs."""

    @property
    def pending_bytes(self) -> int:
        """Memory that an unfinished frame takes."""
        return len(self._head) if self._large is None else len(self._large)

    def space(self) -> memoryview:
        """Where the next bytes belong; never empty."""
        if self._large is not None:
            return memoryview(self._large)[self._have :]
        head = self._head
        if not head:
            return self._scratch
        held = len(head)
        self._scratch[:held] = head
        return self._scratch[held:]

    def received(self, count: int) -> list[Buffer]:
        """So many bytes are in the ``space`` that was given last: all frames that are complete."""
        if self._large is not None:
            return self._received_large(self._large, count)
        arrived = self._scratch
        size = len(self._head) + count
        places: list[tuple[int, int]] = []
        at = wanted = 0
        while size - at >= 4:
            (length,) = _unpack_length(arrived, at)
            if not 0 <= length <= self._max:
                raise length_refused(length, self._max)
            end = at + 4 + length
            if end > size:
                wanted = 4 + length
                break
            places.append((at + 4, end))
            at = end
        rest = arrived[at:size]
        if wanted > LARGE_FRAME_BYTES:
            self._head = b""
            self._begin_large(rest, wanted)
        else:
            self._head = bytes(rest)
        if not places:
            return []
        data = bytes(arrived[:at])
        return [
            data[first:end] if end - first <= SMALL_FRAME_BYTES else memoryview(data)[first:end]
            for first, end in places
        ]

    def _received_large(self, large: bytearray, count: int) -> list[Buffer]:
        self._have += count
        if self._have == self._wanted:
            self._large = None
            return [memoryview(large)[4:]]
        if self._have == len(large):
            self._begin_large(memoryview(large), self._wanted)
        return []

    def _begin_large(self, begun: memoryview, wanted: int) -> None:
        self._have = len(begun)
        self._wanted = wanted
        self._large = bytearray(min(wanted, AHEAD * self._have))
        self._large[: self._have] = begun
