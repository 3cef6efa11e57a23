"""Snapshots of the metadata log: `<end offset>-<epoch>.checkpoint` beside its segments. KIP-630.

One that is being written, here or piece by piece from a leader, has `.part` after its name; it gets
its name when all of it is on the disk, so that a checkpoint is whole or not there. What is left of
one is removed at the next start. `00000000000000000000-0000000000.checkpoint` is what formatting
left; it sums up nothing and is never dropped.

Everything here is done, and on the disk, when it returns; except pieces, which are synced when the
last of them is there. Failures are OSError, or DamagedSnapshot for bytes that are no snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from cotidal.errors import MalformedFrame
from cotidal.log.failure import DamagedSnapshot
from cotidal.log.filesystem import FileSystem
from cotidal.values import LeaderEpoch, Offset
from cotidal.wire.metadata_batch import ReadMetadata
from cotidal.wire.metadata_snapshot import decode_metadata_snapshot

SUFFIX: Final = ".checkpoint"
PART: Final = ".checkpoint.part"
FETCHED: Final = "-fetched.checkpoint.part"
DAMAGED: Final = ".checkpoint.damaged"
"""Of one that could not be read: kept for whoever wants to know why, never looked at again."""


class SnapshotKey(NamedTuple):
    """Everything below ``end_offset``, whose last record is of ``epoch``."""

    end_offset: Offset
    epoch: LeaderEpoch

    @property
    def name(self) -> str:
        return f"{self.end_offset:020d}-{self.epoch:010d}"


FORMATTED: Final = SnapshotKey(Offset(0), LeaderEpoch(0))
"""What formatting leaves, where it says who votes."""


class StoredSnapshot(NamedTuple):
    key: SnapshotKey
    size_bytes: int
    batches: tuple[ReadMetadata, ...] = ()
    """Empty for one that was not read."""


class LoadedSnapshots(NamedTuple):
    snapshots: tuple[StoredSnapshot, ...]
    """Ascending. The newest has been read, and what formatting left."""
    damaged: tuple[str, ...]
    """A sentence for each that was passed over."""


class MetadataSnapshots:
    __slots__ = ("_directory", "_files")

    def __init__(self, files: FileSystem, directory: str) -> None:
        self._files = files
        self._directory = directory

    # at start

    def load(self, log_start: Offset) -> LoadedSnapshots:
        """The newest that can be read, and what is older.

        DamagedSnapshot if the log begins after it.
        """
        self._remove_parts()
        damaged: list[tuple[SnapshotKey, str]] = []
        found: list[StoredSnapshot] = []
        newest = True
        for key in reversed(self.listed()):
            if not newest and key.end_offset > 0:
                found.append(StoredSnapshot(key, self._files.size(self._path(key))))
                continue
            try:
                found.append(self.read(key))
                newest = False
            except DamagedSnapshot as wrong:
                if newest and key.end_offset == 0:
                    raise  # nothing else says who votes
                damaged.append((key, str(wrong)))
        sentences = tuple(sentence for _, sentence in damaged)
        reach = found[0].key.end_offset if found else Offset(0)
        if reach < log_start:
            raise DamagedSnapshot(
                f"the log begins at {log_start}, and no snapshot of what came before can be read"
                + "".join(f"; {sentence}" for sentence in sentences)
                + ". Restore the file, or wipe this directory and format it anew: the node then"
                " gets its metadata from the others"
            )
        for key, _ in damaged:
            self._files.rename(self._path(key), self._path(key, DAMAGED))
        return LoadedSnapshots(tuple(reversed(found)), sentences)

    def listed(self) -> list[SnapshotKey]:
        """Ascending."""
        return [key for name in self._files.listdir(self._directory) if (key := key_of(name))]

    def read(self, key: SnapshotKey) -> StoredSnapshot:
        return self._read(key, self._path(key))

    # while it runs

    def begin(self, key: SnapshotKey, pieces: Iterable[bytes]) -> None:
        """Write one; it is there after ``finish``."""
        self._write(self._path(key, PART), 0, pieces)

    def finish(self, key: SnapshotKey) -> int:
        """Its size in bytes."""
        self._name(self._path(key, PART), self._path(key))
        return self._files.size(self._path(key))

    def keep_piece(self, key: SnapshotKey, position: int, data: bytes | memoryview) -> None:
        """A piece of one that another node has; at 0 it begins anew."""
        self._write(self._path(key, FETCHED), position, (data,))

    def adopt(self, key: SnapshotKey) -> StoredSnapshot:
        """Its last piece is here: make it one of ours. Nothing to do for one that is."""
        part = self._path(key, FETCHED)
        if not self._files.exists(part):
            return self.read(key)
        whole = self._read(key, part)
        self._name(part, self._path(key))
        return whole

    def piece(self, key: SnapshotKey, position: int, max_bytes: int) -> bytes:
        file = self._files.open(self._path(key))
        try:
            return file.pread(max_bytes, position)
        finally:
            file.close()

    def forget(self, key: SnapshotKey) -> None:
        if key.end_offset > 0 and self._files.exists(self._path(key)):
            self._files.unlink(self._path(key))

    # inside

    def _write(self, path: str, position: int, pieces: Iterable[bytes | memoryview]) -> None:
        file = self._files.open(path, create=True)
        try:
            if file.size < position:
                raise DamagedSnapshot(f"{_name_of(path)} ends at {file.size} before {position}")
            file.truncate(position)
            for piece in pieces:
                file.append((piece,))
        finally:
            file.close()

    def _name(self, part: str, path: str) -> None:
        file = self._files.open(part)
        try:
            file.sync()
        finally:
            file.close()
        self._files.rename(part, path)
        self._files.sync_directory(self._directory)

    def _read(self, key: SnapshotKey, path: str) -> StoredSnapshot:
        data = self._files.read(path)
        try:
            return StoredSnapshot(key, len(data), decode_metadata_snapshot(data))
        except MalformedFrame as wrong:
            raise DamagedSnapshot(f"the snapshot {_name_of(path)} is damaged: {wrong}") from wrong

    def _remove_parts(self) -> None:
        for name in self._files.listdir(self._directory):
            if name.endswith(PART):
                self._files.unlink(f"{self._directory}/{name}")

    def _path(self, key: SnapshotKey, suffix: str = SUFFIX) -> str:
        return f"{self._directory}/{key.name}{suffix}"


def key_of(name: str) -> SnapshotKey | None:
    """What a file's name says it is; None for any other file."""
    end_offset, dash, epoch = name.removesuffix(SUFFIX).partition("-")
    if not (name.endswith(SUFFIX) and dash and end_offset.isdigit() and epoch.isdigit()):
        return None
    return SnapshotKey(Offset(int(end_offset)), LeaderEpoch(int(epoch)))


def _name_of(path: str) -> str:
    return path.rpartition("/")[2]
