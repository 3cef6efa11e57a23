"""The sockets at which nodes on this machine tell what they do (broker/witness.py).

A node that is started anew is found again. Nodes tell nothing while nobody listens.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import socket
import time
from contextlib import suppress
from typing import Final

from cotidal.broker.witness import WITNESS_SOCKET
from cotidal.console.world import Json

SEEK_EVERY_S: Final = 0.5
READ_BYTES: Final = 256 * 1024
_NODE: Final = re.compile(r"node-(\d+)")


class Ears:
    def __init__(self, home: str) -> None:
        """``home``: the directory of the cluster's data."""
        self._home = home
        self._selector = selectors.DefaultSelector()
        self._half: dict[int, bytes] = {}
        """Node -> the beginning of a line whose end has not come. Those that are listened to."""
        self._sought_at = 0.0

    @property
    def nodes(self) -> tuple[int, ...]:
        """That are listened to."""
        return tuple(self._half)

    def hear(self, timeout_s: float) -> list[tuple[int, Json]]:
        """What was told, by whom; in order for each node."""
        if time.monotonic() - self._sought_at > SEEK_EVERY_S:
            self._seek()
        found: list[tuple[int, Json]] = []
        for key, _ in self._selector.select(timeout_s):
            found += [(key.data, told) for told in self._read(key.data, key.fileobj)]
        return found

    def close(self) -> None:
        """Until something is heard again."""
        for key in list(self._selector.get_map().values()):
            self._let_go(key.data, key.fileobj)

    def _seek(self) -> None:
        self._sought_at = time.monotonic()
        with suppress(OSError):
            for entry in os.scandir(self._home):
                named = _NODE.fullmatch(entry.name)
                if named and int(named[1]) not in self._half:
                    self._listen(int(named[1]), f"{entry.path}/{WITNESS_SOCKET}")

    def _listen(self, node: int, path: str) -> None:
        ear = socket.socket(socket.AF_UNIX)
        try:
            ear.setblocking(False)
            ear.connect(path)
        except OSError:  # it does not run, or is busy: another time
            ear.close()
            return
        self._half[node] = b""
        self._selector.register(ear, selectors.EVENT_READ, node)

    def _read(self, node: int, ear: object) -> list[Json]:
        assert isinstance(ear, socket.socket)
        try:
            data = ear.recv(READ_BYTES)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self._let_go(node, ear)
            return []
        *whole, self._half[node] = (self._half[node] + data).split(b"\n")
        return [json.loads(line) for line in whole]

    def _let_go(self, node: int, ear: object) -> None:
        assert isinstance(ear, socket.socket)
        self._selector.unregister(ear)
        ear.close()
        del self._half[node]
