"""What one connection has to send of large answers, whose records are still in files.

Their bytes go to the socket past the transport (parcel.py), as much as it takes at a time. When it
takes no more, a piece is read and given to the transport, which knows how to wait; that it has sent
it is the sign to go on. Whatever else is to be sent meanwhile stands behind it, so that all goes
out in order. A connection whose answers are small never needs any of this.

Invariant: while anything waits here the transport has something to send, and room for nothing: it
has called pause_writing, and will call resume_writing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Final, TypeAlias

from cotidal.broker.parcel import Parcel
from cotidal.limits import OUTPUT_HIGH_WATER_BYTES

Piece: TypeAlias = bytes | bytearray | memoryview | Parcel

PUSH_BYTES: Final = 64 * 1024
"""Given to the transport to wait with: little, because it is read, and enough for a system call."""


def has_parcels(pieces: Iterable[Piece]) -> bool:
    return any(isinstance(piece, Parcel) for piece in pieces)


class Outlet:
    __slots__ = ("_pieces", "_socket", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        sock = transport.get_extra_info("socket")
        self._socket: int = sock.fileno()
        self._pieces: deque[Piece] = deque()
        self.rest()

    @property
    def busy(self) -> bool:
        return bool(self._pieces)

    @property
    def unsent_bytes(self) -> int:
        """Besides what the transport has."""
        return sum(
            piece.unsent if isinstance(piece, Parcel) else len(piece) for piece in self._pieces
        )

    def send(self, pieces: Iterable[Piece]) -> None:
        """After everything that was written before."""
        if not self._pieces:  # the transport says when it has sent all, and writes at once
            self._transport.set_write_buffer_limits(0, 0)
        self._pieces.extend(pieces)
        self.go_on()

    def go_on(self) -> None:
        """The transport has sent all that it had. Gone and ConnectionError as from Parcel."""
        transport, pieces = self._transport, self._pieces
        while pieces and not transport.get_write_buffer_size():
            if transport.is_closing():  # given up: its socket may be somebody else's by now
                return
            piece = pieces[0]
            if not isinstance(piece, Parcel):
                pieces.popleft()
                transport.write(piece)
                continue
            try:
                piece.send_to(self._socket)
            except BlockingIOError:
                transport.write(piece.read(PUSH_BYTES))
            if not piece.unsent:
                pieces.popleft()
        if not pieces:
            self.rest()

    def drop(self) -> None:
        """The connection is gone."""
        self._pieces.clear()

    def rest(self) -> None:
        """Nothing waits here: the transport may hold as much as any other."""
        self._transport.set_write_buffer_limits(
            OUTPUT_HIGH_WATER_BYTES, OUTPUT_HIGH_WATER_BYTES // 4
        )
