"""A file system in memory that can lose what a real one can lose: files.py's twin. Pure.

  crash()       the process dies: everything stays, open files and locks are gone
  crash(draw)   the machine dies: of each file's unsynced changes a prefix survives, to the byte,
                and of each directory's unsynced names a prefix in the order they were made; now
                and then a file is as long as that, and a part of what was not synced reads as
                zeros: its length had reached the disk, and its bytes had not
  capacity      bytes in all; the append that passes it writes what fits and raises ENOSPC
  fail          an error for chosen operations on chosen paths
  lies          chosen paths whose syncs are said to be done and are not
  cost_us       what each operation would have taken; ``take_spent_us`` tells the simulator

``draw(n)`` gives an integer in 0 .. n-1; all randomness comes from it. It is asked in an order
that depends only on what was done, so equal runs crash equally.

A file's own sync does not make its name durable, as POSIX has it; ext4 is kinder.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

Draw = Callable[[int], int]

_REASONS: Final = {
    errno.EIO: "Input/output error",
    errno.ENOSPC: "No space left on device",
}

FOREVER: Final = 1 << 62
"""Times that an operation fails: until somebody mends the disk, over any number of crashes."""

HOLE_ONE_IN: Final = 4
"""Of the files that were not synced, so few have a hole after a power cut."""

OPERATIONS: Final = ("open", "append", "pread", "truncate", "sync", "read", "write", "names")


class _Content:
    """The bytes of a file, and how to take back what was not synced."""

    __slots__ = ("data", "journal")

    def __init__(self) -> None:
        self.data = bytearray()
        self.journal: list[int | bytes] = []
        """In order: a number of bytes appended, or the bytes that a truncation cut off."""

    def append(self, buffer: bytes | memoryview) -> None:
        self.data += buffer
        if self.journal and isinstance(self.journal[-1], int):
            self.journal[-1] += len(buffer)
        else:
            self.journal.append(len(buffer))

    def truncate(self, size: int) -> None:
        cut = bytes(memoryview(self.data)[size:])
        del self.data[size:]
        if cut:
            self.journal.append(cut)

    def lose(self, draw: Draw) -> None:
        """Take back all but a prefix of the unsynced changes."""
        units = sum(change if isinstance(change, int) else 1 for change in self.journal)
        lost = _how_many(units, draw)
        while lost:
            change = self.journal.pop()
            if isinstance(change, bytes):
                self.data += change
                lost -= 1
            else:
                back = min(lost, change)
                del self.data[len(self.data) - back :]
                lost -= back
                if back < change:
                    self.journal.append(change - back)
        if self.journal and isinstance(self.journal[-1], int):
            self._punch(self.journal[-1], draw)
        self.journal.clear()

    def _punch(self, tail: int, draw: Draw) -> None:
        """Perhaps a hole in the last ``tail`` bytes, which were appended and never synced."""
        if draw(HOLE_ONE_IN) == 0:
            first = len(self.data) - tail + draw(tail)
            end = first + 1 + draw(len(self.data) - first)
            self.data[first:end] = bytes(end - first)


class MemoryFile:
    __slots__ = ("_content", "_files", "_life", "_path")

    def __init__(self, files: MemoryFiles, path: str, content: _Content, life: int) -> None:
        self._files = files
        self._path = path
        self._content = content
        self._life = life

    @property
    def size(self) -> int:
        return len(self._content.data)

    def append(self, buffers: Sequence[bytes | memoryview]) -> None:
        self._check("append")
        for buffer in buffers:
            room = self._files.room(len(buffer))
            self._content.append(memoryview(buffer)[:room])
            self._files.used_bytes += room
            if room < len(buffer):
                raise OSError(errno.ENOSPC, _REASONS[errno.ENOSPC], self._path)

    def pread(self, count: int, position: int) -> bytes:
        self._check("pread")
        return bytes(memoryview(self._content.data)[position : position + count])

    def leave(self, count: int, position: int) -> bytes:
        return self.pread(count, position)

    def truncate(self, size: int) -> None:
        self._check("truncate")
        assert size <= self.size
        self._files.used_bytes -= self.size - size
        self._content.truncate(size)

    def finish(self) -> None:
        """Nothing is ever reserved here."""

    def sync(self) -> None:
        if self._life == 0:
            return
        self._check("sync")
        if self._files.is_synced(self._path):
            self._content.journal.clear()

    def close(self) -> None:
        self._life = 0

    def _check(self, operation: str) -> None:
        if self._life != self._files.life:
            raise OSError(errno.EBADF, "Bad file descriptor", self._path)
        self._files.account(operation, self._path)


class MemoryLock:
    __slots__ = ("_held", "_path")

    def __init__(self, held: dict[str, MemoryLock], path: str) -> None:
        self._held = held
        self._path = path

    def release(self) -> None:
        if self._held.get(self._path) is self:
            del self._held[self._path]


class _Folder:
    """The names of a directory, and what they were before each change that was not synced."""

    __slots__ = ("journal", "names")

    def __init__(self) -> None:
        self.names: dict[str, _Content | _Folder] = {}
        self.journal: list[dict[str, _Content | _Folder]] = []

    def change(self) -> dict[str, _Content | _Folder]:
        self.journal.append(dict(self.names))
        return self.names

    def lose(self, draw: Draw) -> None:
        lost = _how_many(len(self.journal), draw)
        if lost:
            self.names = self.journal[-lost]
        self.journal.clear()
        for name in sorted(self.names):
            self.names[name].lose(draw)


class _Failure:
    __slots__ = ("error", "operation", "part", "times")

    def __init__(self, operation: str, part: str, error: int, times: int) -> None:
        self.operation = operation
        self.part = part
        self.error = error
        self.times = times


class MemoryFiles:
    """Paths begin at a root that is always there."""

    __slots__ = ("_failures", "_locks", "_root", "_spent_us", "capacity", "cost_us", "lies",
                 "lies_told", "life", "used_bytes")  # fmt: skip

    def __init__(self, *, capacity: int | None = None) -> None:
        self._root = _Folder()
        self._locks: dict[str, MemoryLock] = {}
        self._failures: list[_Failure] = []
        self._spent_us = 0
        self.capacity = capacity
        self.cost_us: Mapping[str, int] = {}
        """By operation (OPERATIONS); what is not named costs nothing."""
        self.lies: Callable[[str], bool] | None = None
        """Paths whose syncs do nothing. One that is true makes up for all that were not, of its
        own file or directory."""
        self.lies_told = 0
        """Such syncs since the last crash."""
        self.life = 1
        """Of which process: files opened before a crash cannot be used after it."""
        self.used_bytes = 0

    # what goes wrong

    def crash(self, draw: Draw | None = None) -> None:
        """The process dies; with ``draw``, the machine too."""
        self.life += 1
        self.lies_told = 0
        self._locks.clear()
        self._failures = [each for each in self._failures if each.times > FOREVER // 2]
        if draw is not None:
            self._root.lose(draw)
            self.used_bytes = _size_of(self._root)

    def fail(self, operation: str, part: str, *, error: int = errno.EIO, times: int = 1) -> None:
        """The next ``times`` such operations on paths that contain ``part`` raise ``error``."""
        assert operation in OPERATIONS
        self._failures.append(_Failure(operation, part, error, times))

    @contextmanager
    def unharmed(self) -> Iterator[None]:
        """Whoever looks at the files from outside meets none of the failures."""
        failures, self._failures = self._failures, []
        try:
            yield
        finally:
            self._failures = failures

    def mend(self) -> None:
        """Nothing fails any more, and there is room."""
        self._failures.clear()
        self.capacity = None

    def flip(self, path: str, position: int, bit: int) -> None:
        """Rot: one bit of a file changes."""
        self._file(path).data[position] ^= 1 << bit

    def take_spent_us(self) -> int:
        spent, self._spent_us = self._spent_us, 0
        return spent

    def account(self, operation: str, path: str) -> None:
        """Called by every operation: counts its cost, and fails if it was told to."""
        self._spent_us += self.cost_us.get(operation, 0)
        for failure in self._failures:
            if failure.operation == operation and failure.part in path:
                failure.times -= 1
                if failure.times == 0:
                    self._failures.remove(failure)
                raise OSError(failure.error, _REASONS.get(failure.error, "error"), path)

    def is_synced(self, path: str) -> bool:
        """Asked at a sync: is it a true one?"""
        if self.lies is None or not self.lies(path):
            return True
        self.lies_told += 1
        return False

    def room(self, wanted: int) -> int:
        """How many of so many bytes still fit."""
        if self.capacity is None:
            return wanted
        return max(0, min(wanted, self.capacity - self.used_bytes))

    # the file system

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        self.account("open", path)
        folder, name = self._place(path)
        content = folder.names.get(name)
        if content is None and create:
            content = folder.change()[name] = _Content()
        if not isinstance(content, _Content):
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        return MemoryFile(self, path, content, self.life)

    def exists(self, path: str) -> bool:
        try:
            folder, name = self._place(path)
        except FileNotFoundError:
            return False
        return name in folder.names

    def size(self, path: str) -> int:
        return len(self._file(path).data)

    def listdir(self, path: str) -> list[str]:
        return sorted(self._folder(path).names)

    def mkdir(self, path: str) -> None:
        self.account("names", path)
        folder = self._root
        for part in _parts(path):
            if part not in folder.names:
                folder.change()[part] = _Folder()
            inner = folder.names[part]
            if not isinstance(inner, _Folder):
                raise FileExistsError(errno.EEXIST, "File exists", path)
            folder = inner

    def rename(self, old: str, new: str) -> None:
        self.account("names", old)
        folder, old_name = self._place(old)
        other, new_name = self._place(new)
        assert folder is other, "a rename stays within its directory"
        if old_name not in folder.names:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", old)
        names = folder.change()
        self._forget(names.get(new_name))
        names[new_name] = names.pop(old_name)

    def unlink(self, path: str) -> None:
        self.account("names", path)
        content = self._file(path)
        folder, name = self._place(path)
        del folder.change()[name]
        self._forget(content)

    def rmdir(self, path: str) -> None:
        self.account("names", path)
        if self._folder(path).names:
            raise OSError(errno.ENOTEMPTY, "Directory not empty", path)
        folder, name = self._place(path)
        del folder.change()[name]

    def sync_directory(self, path: str) -> None:
        self.account("sync", path)
        if self.is_synced(path):
            self._folder(path).journal.clear()

    def read(self, path: str) -> bytes:
        self.account("read", path)
        return bytes(self._file(path).data)

    def write(self, path: str, data: bytes, *, sync: bool = True) -> None:
        self.account("write", path)
        folder, name = self._place(path)
        if self.room(len(data)) < len(data):
            raise OSError(errno.ENOSPC, _REASONS[errno.ENOSPC], path)
        content = _Content()
        content.append(data)
        names = folder.change()
        self._forget(names.get(name))
        names[name] = content
        self.used_bytes += len(data)
        if sync:
            self.account("sync", path)
            if self.is_synced(path):
                content.journal.clear()
                folder.journal.clear()

    def lock(self, path: str) -> MemoryLock | None:
        if path in self._locks:
            return None
        self.open(path, create=True)
        lock = self._locks[path] = MemoryLock(self._locks, path)
        return lock

    def _place(self, path: str) -> tuple[_Folder, str]:
        directory, _, name = path.rpartition("/")
        return self._folder(directory), name

    def _folder(self, path: str) -> _Folder:
        folder: _Content | _Folder | None = self._root
        for part in _parts(path):
            folder = folder.names.get(part) if isinstance(folder, _Folder) else None
        if not isinstance(folder, _Folder):
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        return folder

    def _file(self, path: str) -> _Content:
        folder, name = self._place(path)
        content = folder.names.get(name)
        if not isinstance(content, _Content):
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        return content

    def _forget(self, entry: _Content | _Folder | None) -> None:
        if isinstance(entry, _Content):
            self.used_bytes -= len(entry.data)


def _how_many(changes: int, draw: Draw) -> int:
    """Of so many changes, how many are lost: often none or all, as in life, else any number."""
    if changes == 0:
        return 0
    match draw(4):
        case 0:
            return 0
        case 1:
            return changes
        case _:
            return draw(changes + 1)


def _size_of(folder: _Folder) -> int:
    return sum(
        len(entry.data) if isinstance(entry, _Content) else _size_of(entry)
        for entry in folder.names.values()
    )


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]
