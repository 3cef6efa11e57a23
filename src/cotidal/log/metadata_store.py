"""The metadata log `__cluster_metadata-0`, its snapshots and `quorum-state` on a file system, in
Kafka's formats.

Everything here is done when it returns, and nothing is on the disk before ``flush``, except
``write_quorum_state``, ``cut``, ``start_at`` and the snapshots, which sync. Whoever obeys a Persist
decides in which thread, or at which simulated moment, that happens. Failures are LogError or
OSError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from cotidal.errors import MalformedFrame
from cotidal.log.contract import LogConfig
from cotidal.log.filesystem import FileSystem
from cotidal.log.log import Log
from cotidal.log.metadata_snapshots import (
    FORMATTED,
    LoadedSnapshots,
    MetadataSnapshots,
    SnapshotKey,
)
from cotidal.messages.batch import Batches, Placed
from cotidal.messages.records.quorum import (
    KRaftVersionRecord,
    QuorumStateData,
    VotersRecord,
    VotersRecordVoter,
)
from cotidal.values import ZERO_UUID, LeaderEpoch, Offset, TopicPartition, Uuid, WallMillis
from cotidal.wire.batch import read_batches
from cotidal.wire.metadata_batch import ReadMetadata, decode_metadata_batch
from cotidal.wire.metadata_snapshot import encode_metadata_snapshot
from cotidal.wire.primitives import Buffer
from cotidal.wire.quorum_state import decode_quorum_state, encode_quorum_state

METADATA_PARTITION: Final = TopicPartition("__cluster_metadata", 0)
METADATA_TOPIC_ID: Final = Uuid(bytes(15) + b"\x01")
QUORUM_STATE: Final = "quorum-state"
QUORUM_STATE_VERSION: Final = 1
READ_BYTES: Final = 1 << 20


class MetadataStore:
    """One node's copy of the metadata log, its snapshots, and its vote."""

    __slots__ = ("_directory", "_files", "log", "snapshots")

    def __init__(
        self,
        files: FileSystem,
        path: str,
        config: LogConfig,
        *,
        clean: bool,
        now_wall: WallMillis,
    ) -> None:
        """``path``: the metadata log directory. Reads nothing but what opening needs."""
        self._files = files
        self._directory = f"{path}/{METADATA_PARTITION}"
        self.log = Log.open(
            files,
            self._directory,
            # What may go is said by ``clean`` alone.
            config._replace(retention_ms=-1, retention_bytes=-1, file_delete_delay_ms=0),
            topic_id=METADATA_TOPIC_ID,
            clean=clean,
            now_wall=now_wall,
        )
        self.snapshots = MetadataSnapshots(files, self._directory)

    # at start

    def load_snapshots(self) -> LoadedSnapshots:
        """DamagedSnapshot if what the log lacks at its beginning is in none of them."""
        return self.snapshots.load(self.log.start_offset)

    def quorum_state(self) -> QuorumStateData | None:
        try:
            return decode_quorum_state(self._files.read(f"{self._directory}/{QUORUM_STATE}"))
        except FileNotFoundError:
            return None

    def batches(
        self, decode: Callable[[Buffer], ReadMetadata] = decode_metadata_batch
    ) -> Iterator[ReadMetadata]:
        """Every batch, in order; MalformedFrame for one that cannot be read."""
        offset, end = self.log.start_offset, self.log.end_offset
        while offset < end:
            data = self.log.read(offset, max_bytes=READ_BYTES, below=end)
            found = read_batches(data)
            if not found.headers:
                raise MalformedFrame(f"the log ends at {offset} before its end at {end}")
            position = 0
            for header in found.headers:
                yield decode(data[position : position + header.size_bytes])
                position += header.size_bytes
                offset = Offset(header.next_offset)

    # while it runs

    def append(self, batch: bytes, leader_epoch: LeaderEpoch, now_wall: WallMillis) -> None:
        """A leader's batch, complete with its offset and epoch."""
        self.log.append((Placed(None, leader_epoch, read_batches(batch)),), now_wall)

    def append_fetched(self, batches: Batches, now_wall: WallMillis) -> None:
        """What a follower fetched, byte for byte."""
        if batches.headers:
            epoch = batches.headers[-1].leader_epoch
            self.log.append((Placed(None, epoch, batches),), now_wall)

    def cut(self, offset: Offset) -> None:
        self.log.truncate_to(offset)

    def finish_snapshot(self, key: SnapshotKey, now_wall: WallMillis) -> int:
        """Its size. The log goes on in a new segment, so that what is summed up can go one day."""
        size = self.snapshots.finish(key)
        self.log.roll(now_wall)
        return size

    def start_at(self, offset: Offset) -> None:
        """A snapshot has taken the place of the log: it begins, empty, where that ends."""
        if (self.log.start_offset, self.log.end_offset) != (offset, offset):
            self.log.truncate_fully_and_start_at(offset)

    def clean(self, offset: Offset, now_wall: WallMillis) -> None:
        """Nothing below ``offset`` is wanted: segments wholly below it go."""
        self.log.advance_start(offset, now_wall)
        self.log.retain(now_wall, below=offset)

    def write_quorum_state(self, state: QuorumStateData) -> None:
        self._files.write(
            f"{self._directory}/{QUORUM_STATE}", encode_quorum_state(state, QUORUM_STATE_VERSION)
        )

    def flush(self) -> None:
        self.log.flush()

    def close(self) -> None:
        self.log.close()


def write_first_voters(
    files: FileSystem,
    path: str,
    voters: tuple[VotersRecordVoter, ...],
    directory_id: Uuid,
    now_wall: WallMillis,
) -> None:
    """Formatting: the checkpoint 0-0, which says nothing but who votes (KIP-853).

    ``path``: the metadata log directory. A zero directory among the voters' is ``directory_id``.
    """
    known = tuple(
        voter._replace(voter_directory_id=directory_id)
        if voter.voter_directory_id == ZERO_UUID
        else voter
        for voter in voters
    )
    pieces = encode_metadata_snapshot(
        (),
        control=(KRaftVersionRecord(kraft_version=1), VotersRecord(voters=known)),
        epoch=FORMATTED.epoch,
        log_wall=now_wall,
        wall=now_wall,
    )
    directory = f"{path}/{METADATA_PARTITION}"
    files.mkdir(directory)
    files.sync_directory(path)
    snapshots = MetadataSnapshots(files, directory)
    snapshots.begin(FORMATTED, pieces)
    snapshots.finish(FORMATTED)
