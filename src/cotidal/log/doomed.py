"""Files of segments that were let go of: out of the way by name, unlinked a while later, so that
whoever still reads them may finish (file.delete.delay.ms)."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable

from cotidal.log.filesystem import FileSystem


class DoomedFiles:
    __slots__ = ("_files", "_filesystem")

    def __init__(self, filesystem: FileSystem) -> None:
        self._filesystem = filesystem
        self._files: deque[tuple[int, str]] = deque()

    def add(self, paths: Iterable[str], *, due: int) -> None:
        self._files.extend((due, path) for path in paths)

    def are_due(self, now_wall: int) -> bool:
        return bool(self._files) and self._files[0][0] <= now_wall

    def sweep(self, now_wall: int) -> None:
        """Unlink those that are due."""
        while self.are_due(now_wall):
            with contextlib.suppress(FileNotFoundError):
                self._filesystem.unlink(self._files[0][1])
            self._files.popleft()
