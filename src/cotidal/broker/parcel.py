"""An answer's records that stay in their file until the connection takes them: the kernel moves
them from its page cache to the socket, and the broker never has them in memory of its own.

Only where the log is not known to need the disk (reading.py); if it does after all, it is read by a
thread for a while from then on. A disk that fails here ends the connection: whoever asks again is
answered by a read, and that one tells what is wrong.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Final

from cotidal.broker.lane import Lane
from cotidal.broker.stalls import Readings
from cotidal.limits import READ_STALL_MS
from cotidal.log.failure import Gone
from cotidal.log.files import LeftBytes

COLD_S: Final = 1.0
"""How long a log is read by a thread after a read of it stalled the loop."""


class Parcel:
    """A Stretch on its way to one connection."""

    __slots__ = ("_lane", "_left", "_loop", "_readings")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, readings: Readings, lane: Lane, left: LeftBytes
    ) -> None:
        self._loop = loop
        self._readings = readings
        self._lane = lane
        self._left = left

    def __len__(self) -> int:
        return len(self._left)

    @property
    def unsent(self) -> int:
        return self._left.unsent

    def send_to(self, socket: int) -> None:
        """Send what it takes now. BlockingIOError: nothing. Gone: it can never be sent to its end.
        ConnectionError: nobody is there any more."""
        begun = perf_counter()
        try:
            self._left.send_to(socket)
        except (BlockingIOError, ConnectionError):
            raise
        except OSError as error:
            self._lane.cold_until = self._loop.time() + COLD_S
            raise Gone(f"{self._lane.partition}: {error.strerror or error}") from error
        finally:
            if self._readings.has_met_the_disk(perf_counter() - begun, READ_STALL_MS):
                self._lane.cold_until = self._loop.time() + COLD_S

    def read(self, count: int) -> bytes:
        """The next ones as bytes, at most so many; they count as sent."""
        return self._left.read(count)
