"""Ports for clusters that tests start side by side.

Ports are handed out one after another from a share that each worker of pytest-xdist has for itself,
so that none is given twice soon: a node that is down finds its own still free when it starts again.
Two runs on one machine begin at random places. Controllers listen CONTROLLER_PORTS_AWAY from the
clients' ports, outside of all that is handed out here.
"""

from __future__ import annotations

import os
import random
from typing import Final

from cotidal.broker.local import CONTROLLER_PORTS_AWAY, is_free

PORTS: Final = range(22_700, 29_900)
"""Below those that systems give to callers; so high that controllers are below them."""

SHARES: Final = 4
"""As many workers as test side by side without meeting."""

assert PORTS.stop - CONTROLLER_PORTS_AWAY <= PORTS.start


class NoPort(Exception):
    """Every one of the share is in use."""


class Share:
    """The ports of one worker."""

    def __init__(self, worker: int) -> None:
        size = len(PORTS) // SHARES
        self._mine = PORTS[worker % SHARES * size :][:size]
        self._next = random.randrange(size)

    def take(self, count: int) -> int:
        """The first of so many free ones in a row."""
        for _ in range(len(self._mine)):
            if self._next + count > len(self._mine):
                self._next = 0
            wanted = self._mine[self._next : self._next + count]
            self._next += count
            if all(is_free("localhost", each) for each in wanted):
                return wanted[0]
        raise NoPort(f"no {count} free ports in a row from {self._mine[0]} to {self._mine[-1]}")


_share: Final = Share(int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")))


def quiet_port(count: int = 1) -> int:
    """The first of so many that are free, and that no test running beside this one will take."""
    return _share.take(count)
