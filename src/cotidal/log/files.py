"""The operating system's files. The only module of log/ that touches the operating system.

The number of open descriptors is bounded: a file that was not used lately loses its descriptor and
gets a new one when it is next used (second chance: a pass over the open files forgives each file
that was used since the last pass). A descriptor is never taken from a file that a thread is inside
of: each file has a lock, held during every system call, and the evictor skips files it cannot lock.

A file that grows large has the blocks of what will come next reserved, some megabytes at a time:
ext4 otherwise sees to each page's block as it is written, which costs more than the copy. Its size
is what was written; what is reserved beyond is given back when it is finished, cut or removed.
Where the file system cannot do that, nothing is reserved.

A reader who only sends bytes on need not have them: ``leave`` says where they are, and the kernel
takes them from its page cache to the socket. Until then they keep the file's descriptor, so they
can be sent though the file is closed or removed meanwhile; as many files fewer may be open, and
where they become too many, bytes are read again. Nothing in a file is ever changed but by cutting
it, and after a cut they are Gone. What the socket holds already may still be overwritten where it
was cut (the kernel has not copied it): by whole batches of a later epoch, or by a piece of one,
whose checksum tells. Only a replica or a reader after an unclean election can meet that.

Invariant: no more than ``max_open`` descriptors, those of files and those that only bytes keep.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import sys
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from cotidal import limits
from cotidal.limits import LEFT_SHARE, RESERVE_BYTES_MAX, RESERVE_FROM_BYTES, RESERVE_SHARE
from cotidal.log.failure import Gone

IOV_MAX: Final = max(16, os.sysconf("SC_IOV_MAX")) if hasattr(os, "sysconf") else 1024


BLOCK_BYTES: Final = 512
"""What st_blocks counts in."""
SLACK_BYTES: Final = 128 * 1024
"""A file has so many bytes more than its size, or its last block, without any being reserved."""
SENDS_FILES: Final = sys.platform == "linux"
"""os.sendfile takes a file of any kind there; elsewhere it differs."""
_NEVER_AGAIN: Final = 1 << 62
_KEEP_SIZE: Final = 1


def _fallocate() -> Any:
    """Linux's own; None elsewhere. (os.posix_fallocate would move the end of the file.)"""
    if sys.platform != "linux" or ctypes.sizeof(ctypes.c_void_p) < 8:
        return None
    found = getattr(ctypes.CDLL(None), "fallocate", None)
    if found is not None:
        found.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    return found


_FALLOCATE: Final[Any] = _fallocate()


def reserve_blocks(descriptor: int, position: int, count: int) -> bool:
    """Have blocks for these bytes, and leave the file's size as it is. False if the file system
    cannot, or the disk is full: then the write itself will say so."""
    return _FALLOCATE is not None and _FALLOCATE(descriptor, _KEEP_SIZE, position, count) == 0


class OsFile:
    """A file by its path; its descriptor comes and goes."""

    __slots__ = (
        "_closed",
        "_lock",
        "_opened",
        "_path",
        "_reserved",
        "_size",
        "cuts",
        "files",
        "used",
    )

    def __init__(self, files: OsFiles, path: str, descriptor: int) -> None:
        self.files = files
        self._path = path
        self._lock = threading.Lock()
        told = os.fstat(descriptor)
        self._size = told.st_size
        allocated = told.st_blocks * BLOCK_BYTES
        self._reserved = allocated if allocated - self._size > SLACK_BYTES else 0
        """Up to where blocks are reserved; here: what a process left behind that was killed."""
        self._opened: Descriptor | None = Descriptor(descriptor)
        self.used = True
        self._closed = False
        self.cuts = 0
        """How often the end was moved back."""

    @property
    def size(self) -> int:
        return self._size

    def append(self, buffers: Sequence[bytes | memoryview]) -> None:
        with self._lock:
            descriptor = self._descriptor().number
            expected = 0
            for buffer in buffers:
                expected += len(buffer)
            if self._size > RESERVE_FROM_BYTES and self._size + expected > self._reserved:
                self._reserve(descriptor, expected)
            if len(buffers) <= IOV_MAX:
                written = os.writev(descriptor, buffers)
                self._size += written
                if written == expected:
                    return
                buffers = _rest(buffers, written)
            while buffers:
                written = os.writev(descriptor, buffers[:IOV_MAX])
                self._size += written
                buffers = _rest(buffers, written)

    def pread(self, count: int, position: int) -> bytes:
        with self._lock:
            descriptor = self._descriptor().number
            data = os.pread(descriptor, count, position)
            if len(data) == count or position + len(data) >= self._size:
                return data
            return self._pread_on(descriptor, data, count, position)

    def leave(self, count: int, position: int) -> bytes | LeftBytes:
        if not SENDS_FILES or position + count > self._size or not self.files.may_leave:
            return self.pread(count, position)
        with self._lock:
            return LeftBytes(self, self._descriptor(), count, position)

    def truncate(self, size: int) -> None:
        with self._lock:
            self.cuts += size < self._size
            os.ftruncate(self._descriptor().number, size)
            self._size = size
            self._reserved = 0

    def finish(self) -> None:
        with self._lock:
            if self._reserved > self._size:
                os.ftruncate(self._descriptor().number, self._size)  # to where it ends already
            self._reserved = 0

    def sync(self) -> None:
        """On a descriptor of its own, so that the file can be used meanwhile: a sync may take
        long, and runs in another thread than appends and reads."""
        with self._lock:
            if self._closed:
                return
            own = os.dup(self._descriptor().number)
        try:
            os.fsync(own)
        finally:
            os.close(own)

    def close(self) -> None:
        with self._lock:
            if self._opened is not None:
                if self._reserved > self._size:
                    with contextlib.suppress(OSError):
                        os.ftruncate(self._opened.number, self._size)
                self._opened = None
            self._closed = True
        self.files.forget(self)

    def give_up_descriptor(self) -> bool:
        """For the evictor. False when a thread is inside this file."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            self._opened = None
            return True
        finally:
            self._lock.release()

    def _descriptor(self) -> Descriptor:
        self.used = True
        if self._opened is None:
            flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
            self._opened = Descriptor(os.open(self._path, flags))
            self.files.remember(self)
        return self._opened

    def _reserve(self, descriptor: int, wanted: int) -> None:
        ahead = max(wanted, min(self._size // RESERVE_SHARE, RESERVE_BYTES_MAX))
        reserved = reserve_blocks(descriptor, self._size, ahead)
        self._reserved = self._size + ahead if reserved else _NEVER_AGAIN

    def _pread_on(self, descriptor: int, data: bytes, count: int, position: int) -> bytes:
        """The kernel may answer a read in pieces (a signal, or more than 2 GB)."""
        parts = [data]
        have = len(data)
        while have < count:
            piece = os.pread(descriptor, count - have, position + have)
            if not piece:
                break
            parts.append(piece)
            have += len(piece)
        return b"".join(parts)


class Descriptor:
    """Closed when nobody has it any more."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.close(self.number)


class LeftBytes:
    """A Stretch: bytes of a file as they were when somebody asked for them. Made, sent and dropped
    by one thread."""

    __slots__ = ("_at", "_cuts", "_descriptor", "_file", "_left", "_size")

    def __init__(self, file: OsFile, descriptor: Descriptor, count: int, position: int) -> None:
        self._file = file
        self._descriptor = descriptor
        self._cuts = file.cuts
        self._size = count
        self._at = position
        self._left = count
        file.files.left += 1

    def __del__(self) -> None:
        self._file.files.left -= 1

    def __len__(self) -> int:
        """How many they are; of the whole, however much is sent."""
        return self._size

    @property
    def unsent(self) -> int:
        return self._left

    def send_to(self, socket: int) -> None:
        """Send what it takes now. BlockingIOError: nothing; Gone: never more."""
        self._check()
        self._pass(os.sendfile(socket, self._descriptor.number, self._at, self._left))

    def read(self, count: int) -> bytes:
        """The next ones of them, as bytes: they count as sent."""
        self._check()
        data = os.pread(self._descriptor.number, min(count, self._left), self._at)
        self._pass(len(data))
        return data

    def _check(self) -> None:
        if self._file.cuts != self._cuts:
            raise Gone("a log was cut before what was left in it had been sent")

    def _pass(self, count: int) -> None:
        if not count:
            raise Gone("a file ends before what was left in it")
        self._at += count
        self._left -= count


class OsLock:
    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class OsFiles:
    """A file system whose open files are bounded. Shared by all logs of a process."""

    __slots__ = ("_lock", "_open", "left", "max_open")

    FILE: ClassVar = OsFile

    def __init__(self, max_open: int = limits.LOG_OPEN_FILES) -> None:
        self.max_open = max_open
        self.left = 0
        """How many LeftBytes there are: each may keep a descriptor that its file has given up."""
        self._open: deque[OsFile] = deque()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process: the same files, and descriptors of its own."""
        return type(self), (self.max_open,)

    def open(self, path: str, *, create: bool = False) -> OsFile:
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        file: OsFile = self.FILE(self, path, os.open(path, flags, 0o644))
        self.remember(file)
        return file

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def listdir(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def mkdir(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, old: str, new: str) -> None:
        os.replace(old, new)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def rmdir(self, path: str) -> None:
        os.rmdir(path)

    def sync_directory(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def write(self, path: str, data: bytes, *, sync: bool = True) -> None:
        temporary = path + ".tmp"
        with open(temporary, "wb") as file:
            file.write(data)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
        if sync:
            self.sync_directory(os.path.dirname(path) or ".")

    def lock(self, path: str) -> OsLock | None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return OsLock(descriptor)

    def remember(self, file: OsFile) -> None:
        """Count a file that has just got a descriptor, and take others' while there are too many.

        The caller may hold ``file``'s own lock: it is the newest, marked as used, and the evictor
        never waits for a lock, so this cannot deadlock.
        """
        with self._lock:
            self._open.append(file)
            for _ in range(2 * len(self._open)):
                if len(self._open) + self.left <= self.max_open:
                    return
                oldest = self._open.popleft()
                if oldest is file or oldest.used or not oldest.give_up_descriptor():
                    oldest.used = False
                    self._open.append(oldest)

    def forget(self, file: OsFile) -> None:
        with self._lock, contextlib.suppress(ValueError):
            self._open.remove(file)

    def give_up_all(self) -> None:
        """Close every descriptor, without a flush: whoever used these files is gone."""
        with self._lock:
            for file in self._open:
                file.give_up_descriptor()
            self._open.clear()

    @property
    def may_leave(self) -> bool:
        return self.left < self.max_open // LEFT_SHARE

    @property
    def open_count(self) -> int:
        return len(self._open)


def _rest(buffers: Sequence[bytes | memoryview], written: int) -> list[bytes | memoryview]:
    """What is left of ``buffers`` after their first ``written`` bytes."""
    for number, buffer in enumerate(buffers):
        if written < len(buffer):
            return [memoryview(buffer)[written:], *buffers[number + 1 :]]
        written -= len(buffer)
    return []
