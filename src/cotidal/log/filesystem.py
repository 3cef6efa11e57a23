"""The few things that a log asks of a file system. Protocols only.

files.py is the real one, memory.py its twin for simulation. Both keep these promises:

  - ``append`` writes all buffers or raises OSError; after an error a prefix may have been written.
  - What was appended is seen by ``pread`` at once, and survives the death of the process.
  - Only what was synced survives the death of the machine: bytes by ``File.sync``, names (created,
    renamed, removed) by ``sync_directory`` of the directory that holds them. Of unsynced appends
    any prefix may survive.
  - ``write`` replaces a small file as a whole: after a crash it holds the old or the new bytes.
  - A file is closed before it is renamed or removed.

One file is used by one thread at a time; different files may be used by different threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cotidal.messages.batch import Stretch


class File(Protocol):
    """An open file that grows at its end."""

    @property
    def size(self) -> int: ...

    def append(self, buffers: Sequence[bytes | memoryview]) -> None: ...

    def pread(self, count: int, position: int) -> bytes:
        """Up to ``count`` bytes from ``position``; fewer only at the end of the file."""
        ...

    def leave(self, count: int, position: int) -> bytes | Stretch:
        """The same for one who only sends them on: they may stay where they are until then."""
        ...

    def truncate(self, size: int) -> None: ...

    def finish(self) -> None:
        """It will not grow for now: give back what was reserved for that."""
        ...

    def sync(self) -> None:
        """May run in another thread while the file is used. Nothing if the file is closed."""
        ...

    def close(self) -> None: ...


class Lock(Protocol):
    def release(self) -> None: ...


class FileSystem(Protocol):
    """Paths are strings with ``/`` between their parts."""

    def open(self, path: str, *, create: bool = False) -> File:
        """FileNotFoundError unless the file exists or ``create`` is true."""
        ...

    def exists(self, path: str) -> bool: ...

    def size(self, path: str) -> int: ...

    def listdir(self, path: str) -> list[str]:
        """Names, sorted, so that simulation is deterministic."""
        ...

    def mkdir(self, path: str) -> None:
        """With its parents; no error when it exists."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Within one directory; replaces a file of the new name."""
        ...

    def unlink(self, path: str) -> None: ...

    def rmdir(self, path: str) -> None: ...

    def sync_directory(self, path: str) -> None: ...

    def read(self, path: str) -> bytes: ...

    def write(self, path: str, data: bytes, *, sync: bool = True) -> None:
        """``sync`` false: atomic for the death of the process, not yet for that of the machine."""
        ...

    def lock(self, path: str) -> Lock | None:
        """None when another process, or this one, holds it."""
        ...
