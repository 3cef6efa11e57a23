"""A copy of a log's directory in another place, made beside whatever is done to the log.

  pull()   copies what the copy lacks, any number of times while the log is in use: closed segments,
           and the bytes of the open one so far. Nothing of these changes but by a cut or a
           compaction, and whoever does that says so (``start_over``): then all is copied anew
  end()    after the log was closed: the rest, and every small file; then the copy is the log

A copy is not a log until ``end`` has returned: its directory has another name until then.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Final

from cotidal.log.filesystem import FileSystem
from cotidal.log.segment import SUFFIXES

CHUNK_BYTES: Final = 256 << 10
"""Read and written at once: between two of them the thread rests."""


class Copy:
    """Used by one thread at a time; ``start_over`` and the properties from any."""

    __slots__ = ("_copied", "_cuts", "_cuts_seen", "_files", "_open_from", "source", "target")

    def __init__(self, files: FileSystem, source: str, target: str) -> None:
        self.source = source
        self.target = target
        self._files = files
        self._copied: dict[str, int] = {}
        """Files that stay as they are or grow, and how much of each is in the copy."""
        self._cuts = 0
        self._cuts_seen = 0
        self._open_from = 0

    @property
    def size_bytes(self) -> int:
        copied = dict(self._copied)
        return sum(size for name, size in copied.items() if name.endswith(".log"))

    @property
    def open_from(self) -> int:
        """The first offset of the segment that was open when all before it had been copied."""
        return self._open_from

    def start_over(self) -> None:
        """The log was cut or compacted: what was copied may not be what it has."""
        self._cuts += 1

    def begin(self) -> None:
        """An empty place; what an earlier attempt left there goes."""
        remove(self._files, self.target)
        self._files.mkdir(self.target)

    def pull(self, breathe: Callable[[int], None]) -> int:
        """How many bytes were missing. ``breathe(n)`` after every piece; it may raise."""
        self._see_cuts()
        names = self._files.listdir(self.source)
        last = max((name for name in names if name.endswith(".log")), default="")
        closed = [name for name in names if name.endswith(SUFFIXES) and _base(name) < _base(last)]
        total = 0
        for name in (*sorted(closed), *([last] if last else [])):
            with contextlib.suppress(FileNotFoundError):  # retention has taken it
                total += self._bring(name, breathe)
        if last:
            self._open_from = _base(last)
        return total

    def end(self) -> None:
        """The log is closed and stays so until this returns: all of it is there, synced."""
        self._see_cuts()
        names = self._files.listdir(self.source)
        for name in set(self._files.listdir(self.target)) - set(names):
            self._files.unlink(f"{self.target}/{name}")
        last = max((name for name in names if name.endswith(".log")), default="")
        for name in names:
            if not name.endswith(".log") and (not last or _base(name) >= _base(last)):
                self._copied.pop(name, None)  # of the open segment, or of the whole log
            self._bring(name, lambda _: None)
        self._files.sync_directory(self.target)

    def _see_cuts(self) -> None:
        cuts = self._cuts
        if cuts != self._cuts_seen:
            self._copied.clear()
            self._cuts_seen = cuts

    def _bring(self, name: str, breathe: Callable[[int], None]) -> int:
        """What the copy lacks of one file; how many bytes."""
        size = self._files.size(f"{self.source}/{name}")
        have = self._copied.get(name, -1)
        if have == size:
            return 0
        start = have if name.endswith(".log") and 0 <= have < size else 0
        source = self._files.open(f"{self.source}/{name}")
        target = self._files.open(f"{self.target}/{name}", create=True)
        try:
            target.truncate(start)
            at = start
            while at < size and (data := source.pread(min(CHUNK_BYTES, size - at), at)):
                target.append([data])
                at += len(data)
                breathe(len(data))
            target.sync()
        finally:
            source.close()
            target.close()
        self._copied[name] = at
        return at - start


def remove(files: FileSystem, directory: str) -> None:
    """A directory of files, if it is there."""
    if files.exists(directory):
        for name in files.listdir(directory):
            files.unlink(f"{directory}/{name}")
        files.rmdir(directory)


def _base(name: str) -> int:
    """The offset that names a segment's files; beyond all of them for any other file."""
    digits = name.partition(".")[0]
    return int(digits) if digits.isdigit() else 1 << 63
