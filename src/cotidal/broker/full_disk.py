"""Files that cannot grow while somebody says so: a full disk, for single logs, on purpose.

Only in a node that was started for it (links.py). What is written already can be read, cut and
removed, as on a full disk.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import Any, ClassVar

from cotidal.log.files import OsFile, OsFiles


class FillableFile(OsFile):
    __slots__ = ()

    def append(self, buffers: Sequence[bytes | memoryview]) -> None:
        assert isinstance(self.files, FillableFiles)
        self.files.check(self._path)
        super().append(buffers)


class FillableFiles(OsFiles):
    __slots__ = ("_full",)

    FILE: ClassVar = FillableFile

    def __init__(self, max_open: int) -> None:
        super().__init__(max_open)
        self._full: frozenset[str] = frozenset()

    def __reduce__(self) -> tuple[Any, ...]:
        return _filled, (self.max_open, self._full)

    def fill(self, logs: Sequence[str]) -> None:
        """The directories with these names are full, and no others."""
        self._full = frozenset(logs)

    def check(self, path: str) -> None:
        if self._full and os.path.basename(os.path.dirname(path)) in self._full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    def write(self, path: str, data: bytes, *, sync: bool = True) -> None:
        self.check(path)
        super().write(path, data, sync=sync)


def _filled(max_open: int, full: frozenset[str]) -> FillableFiles:
    files = FillableFiles(max_open)
    files.fill(tuple(full))
    return files
