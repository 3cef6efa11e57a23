"""Whose data directory is this? Formatting, checking and locking them.

A directory belongs to one node of one cluster for ever: ``meta.properties`` says which. A node
starts only on a directory that was formatted for it, so that a wrong path can never make it a new,
empty member of the wrong cluster. ``.lock`` keeps a second process out.

A node may have several for its logs, and one of its own for the metadata log. It starts without
those for logs that cannot be read, as long as one can; what is in them is offline. It does not
start on one that belongs to somebody else, nor without the metadata log.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from cotidal.broker.directory import Missing
from cotidal.log.checkpoint import (
    CLEAN_SHUTDOWN,
    META_PROPERTIES,
    MetaProperties,
    decode_clean_shutdown,
    decode_meta_properties,
    encode_clean_shutdown,
    encode_meta_properties,
)
from cotidal.log.filesystem import FileSystem, Lock
from cotidal.log.metadata_store import METADATA_PARTITION, write_first_voters
from cotidal.messages.records.quorum import VotersRecordVoter
from cotidal.values import (
    NO_BROKER_EPOCH,
    BrokerEpoch,
    NodeId,
    Uuid,
    WallMillis,
    uuid_from_text,
    uuid_text,
)

LOCK: Final = ".lock"
METADATA_NAME: Final = str(METADATA_PARTITION)


class StorageError(Exception):
    """One sentence about a data directory that cannot be used, and what to do."""


class Unusable(StorageError):
    """A directory that is not there, or cannot be read: a disk has failed, perhaps."""


class Storage(NamedTuple):
    """A data directory that this process holds."""

    path: str
    meta: MetaProperties
    lock: Lock
    clean: bool
    """The last process that held it stopped in order: logs need no recovery."""
    broker_epoch: BrokerEpoch
    """Of that process, if it was clean; otherwise NO_BROKER_EPOCH."""


class Held(NamedTuple):
    """All directories of a node."""

    metadata: Storage
    logs: tuple[Storage, ...]
    """Those that work; the one with the metadata log may be among them."""
    missing: tuple[Missing, ...]

    @property
    def all(self) -> tuple[Storage, ...]:
        """Each once."""
        return self.logs if self.metadata in self.logs else (self.metadata, *self.logs)

    @property
    def broker_epoch(self) -> BrokerEpoch:
        """Of the process that closed all of them in order; NO_BROKER_EPOCH if none did."""
        epochs = {storage.broker_epoch for storage in self.logs}
        return NO_BROKER_EPOCH if self.missing or len(epochs) != 1 else epochs.pop()

    def release(self) -> None:
        for storage in self.all:
            storage.lock.release()


def new_id() -> Uuid:
    """Random; never one that begins with a dash, which tools would take for an option."""
    while True:
        found = Uuid(os.urandom(16))
        if not uuid_text(found).startswith("-"):
            return found


def format_storage(
    files: FileSystem,
    path: str,
    *,
    node_id: NodeId,
    cluster_id: str | None = None,
    directory_id: Uuid | None = None,
    voters: tuple[VotersRecordVoter, ...] = (),
) -> MetaProperties:
    """Make ``path`` a node's directory. StorageError if it is one already.

    ``voters``: who votes at first, where that is not fixed by the configuration (KIP-853). A zero
    directory among them is this one's.
    """
    if cluster_id is not None:
        try:
            uuid_from_text(cluster_id)
        except ValueError as wrong:
            raise StorageError(f"the cluster id {wrong}; leave it out to have one made") from None
    try:
        files.mkdir(path)
        if files.exists(_in(path, META_PROPERTIES)):
            held = read_meta(files, path)
            raise StorageError(
                f"{path} is formatted already, for node {held.node_id} of cluster"
                f" {held.cluster_id}; choose another directory"
            )
        directory = directory_id or new_id()
        meta = MetaProperties(cluster_id or uuid_text(new_id()), node_id, directory)
        if voters:
            now = WallMillis(time.time_ns() // 1_000_000)
            write_first_voters(files, path, voters, directory, now)
        files.write(_in(path, META_PROPERTIES), encode_meta_properties(meta))
    except OSError as wrong:
        raise StorageError(f"cannot format {path}: {wrong.strerror or wrong}") from wrong
    return meta


def is_formatted(files: FileSystem, path: str) -> bool:
    return files.exists(_in(path, META_PROPERTIES))


def read_meta(files: FileSystem, path: str) -> MetaProperties:
    try:
        return decode_meta_properties(files.read(_in(path, META_PROPERTIES)))
    except FileNotFoundError:
        raise Unusable(f"{path} is not formatted; run `cotidal format` for it first") from None
    except OSError as wrong:
        raise Unusable(f"cannot read {path}: {wrong.strerror or wrong}") from wrong
    except ValueError as wrong:
        raise StorageError(f"{path}/{wrong}") from None


def open_storage(files: FileSystem, path: str, *, node_id: NodeId) -> Storage:
    """Check that ``path`` is this node's, take its lock and its mark of a clean stop.

    The mark is removed: from now on only another clean stop can say that all is well.
    """
    meta = read_meta(files, path)
    if meta.node_id != node_id:
        raise StorageError(
            f"{path} belongs to node {meta.node_id}, but node.id is {node_id}; correct one of them"
        )
    try:
        lock = files.lock(_in(path, LOCK))
        if lock is None:
            raise StorageError(f"{path} is in use by another process; stop it first")
        mark = _take_clean_mark(files, path)
    except OSError as wrong:
        raise Unusable(f"cannot use {path}: {wrong.strerror or wrong}") from wrong
    clean = mark is not None
    return Storage(path, meta, lock, clean, NO_BROKER_EPOCH if mark is None else mark)


def open_all(
    files: FileSystem, log_dirs: Sequence[str], metadata_dir: str, *, node_id: NodeId
) -> Held:
    """Every directory of a node. StorageError if it cannot start with what there is."""
    opened: dict[str, Storage] = {}
    missing: list[Missing] = []
    try:
        opened[metadata_dir] = open_storage(files, metadata_dir, node_id=node_id)
        for path in log_dirs:
            try:
                if path not in opened:
                    opened[path] = open_storage(files, path, node_id=node_id)
            except Unusable as wrong:
                missing.append(Missing(path, str(wrong)))
        held = Held(
            opened[metadata_dir],
            tuple(opened[path] for path in log_dirs if path in opened),
            tuple(missing),
        )
        _check_together(files, held)
    except StorageError:
        for storage in opened.values():
            storage.lock.release()
        raise
    return held


def _check_together(files: FileSystem, held: Held) -> None:
    home = held.metadata
    if not held.logs:
        raise StorageError("; ".join(missing.reason for missing in held.missing))
    by_id: dict[Uuid, str] = {}
    for storage in held.all:
        if storage.meta.cluster_id != home.meta.cluster_id:
            raise StorageError(
                f"{storage.path} belongs to cluster {storage.meta.cluster_id}, and {home.path} to"
                f" {home.meta.cluster_id}; correct log.dirs or metadata.log.dir"
            )
        other = by_id.setdefault(storage.meta.directory_id, storage.path)
        if other != storage.path:
            raise StorageError(
                f"{storage.path} has the directory.id of {other}: it is a copy; remove one of them"
                " from log.dirs"
            )
        elsewhere = storage is not home and files.exists(_in(storage.path, METADATA_NAME))
        if elsewhere and not files.exists(_in(home.path, METADATA_NAME)):
            # The node would begin a new cluster beside its old logs.
            raise StorageError(
                f"the metadata log is in {storage.path}, not in {home.path}; set metadata.log.dir"
                " to where it is"
            )


def mark_clean(files: FileSystem, path: str, broker_epoch: BrokerEpoch) -> None:
    files.write(_in(path, CLEAN_SHUTDOWN), encode_clean_shutdown(broker_epoch))


def _take_clean_mark(files: FileSystem, path: str) -> BrokerEpoch | None:
    """The broker epoch of a clean stop; None if there was none."""
    mark = _in(path, CLEAN_SHUTDOWN)
    if not files.exists(mark):
        return None
    epoch: BrokerEpoch | None
    try:
        epoch = decode_clean_shutdown(files.read(mark))
    except ValueError:
        epoch = None
    files.unlink(mark)
    files.sync_directory(path)
    return epoch


def _in(path: str, name: str) -> str:
    return f"{path}/{name}"
