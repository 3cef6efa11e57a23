"""The metadata log of a cluster whose data lies on this machine, as lines for a person."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from cotidal.broker.metadata_lines import Unreadable, lines_of
from cotidal.console.world import Json
from cotidal.errors import PeerError
from cotidal.limits import LIVE_METADATA_BYTES_MAX


class MetadataLog:
    """Read from a node's files alone, no further than it is committed."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._read = 0

    def news(self, nodes: Iterable[int], committed: int) -> Sequence[Json]:
        """Lines below ``committed`` that were not given yet. ``nodes``: whom to ask, in order."""
        if committed <= self._read:
            return ()
        for node in nodes:
            directory = f"{self._home}/node-{node}/__cluster_metadata-0"
            try:
                if _size(directory) <= LIVE_METADATA_BYTES_MAX:
                    return self._from(directory, committed)
            except (Unreadable, PeerError, OSError):
                continue  # it is just being written, or gone: another one has it, or later
        return ()

    def _from(self, directory: str, committed: int) -> list[Json]:
        found = [line for line in lines_of(directory, self._read) if line.offset < committed]
        if found:
            self._read = found[-1].offset + 1
        return [{"offset": line.offset, "epoch": line.epoch, "text": line.text} for line in found]


def _size(directory: str) -> int:
    with os.scandir(directory) as entries:
        return sum(each.stat().st_size for each in entries if each.name.endswith(".log"))
