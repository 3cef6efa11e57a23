"""A place to keep logs in tests, on either file system, and batches to put there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from cotidal.log.contract import Appended, LogConfig
from cotidal.log.files import OsFiles
from cotidal.log.filesystem import FileSystem
from cotidal.log.log import Log
from cotidal.log.memory import MemoryFiles
from cotidal.messages.batch import BatchHeader, Placed
from cotidal.values import LeaderEpoch, Offset, Uuid, WallMillis
from cotidal.wire.batch import read_batches
from cotidal.wire.records import Record, build_batch

TOPIC_ID = Uuid(bytes(range(16)))
NOW = WallMillis(1_700_000_000_000)
SMALL = LogConfig(segment_bytes=1000, index_interval_bytes=100)


class Shelf:
    """A file system and a directory on it."""

    def __init__(self, filesystem: FileSystem, root: str) -> None:
        self.filesystem = filesystem
        self.root = root
        self.directory = f"{root}/orders-0"

    def restart(self) -> None:
        """As after the death of the process."""
        match self.filesystem:
            case MemoryFiles():
                self.filesystem.crash()
            case _:
                self.filesystem = OsFiles()

    def open(
        self,
        config: LogConfig = SMALL,
        *,
        clean: bool = True,
        recovery_point: int = 0,
        log_start: int = 0,
        cleaned_to: int = 0,
        now: int = NOW,
        topic_id: Uuid = TOPIC_ID,
    ) -> Log:
        return Log.open(
            self.filesystem,
            self.directory,
            config,
            topic_id=topic_id,
            clean=clean,
            recovery_point=Offset(recovery_point),
            log_start=Offset(log_start),
            cleaned_to=Offset(cleaned_to),
            now_wall=WallMillis(now),
        )

    def path(self, name: str) -> str:
        return f"{self.directory}/{name}"

    def names(self) -> list[str]:
        return self.filesystem.listdir(self.directory)

    def logs(self) -> list[str]:
        return [name for name in self.names() if name.endswith(".log")]

    def bytes_of(self, name: str) -> bytes:
        return self.filesystem.read(self.path(name))

    def put(self, name: str, data: bytes) -> None:
        """Replace a file's bytes, as damage or another program would."""
        self.filesystem.write(self.path(name), data)

    def flip(self, name: str, position: int, bit: int = 0) -> None:
        data = bytearray(self.bytes_of(name))
        data[position] ^= 1 << bit
        self.put(name, bytes(data))


def memory_shelf(capacity: int | None = None) -> Shelf:
    files = MemoryFiles(capacity=capacity)
    files.mkdir("/data")
    files.sync_directory("/")
    return Shelf(files, "/data")


def os_shelf(path: Path) -> Shelf:
    return Shelf(OsFiles(), str(path))


def batch(
    records: int = 1,
    *,
    value: bytes = b"v",
    timestamp: int = NOW,
    step: int = 0,
    base_offset: int = 0,
    epoch: int = -1,
    producer_id: int = -1,
    sequence: int = -1,
) -> bytes:
    """A batch whose records are ``step`` milliseconds apart."""
    return build_batch(
        [Record(b"k", value, timestamp=timestamp + number * step) for number in range(records)],
        base_offset=base_offset,
        leader_epoch=epoch,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=sequence,
    )


def sized_batch(size: int, **options: int) -> bytes:
    """One record, the batch ``size`` bytes long."""
    for guess in range(max(0, size - 80), size):
        made = batch(value=bytes(guess), **options)
        if len(made) == size:
            return made
    raise ValueError(f"no batch of one record has {size} bytes")


def lead(log: Log, batches: Iterable[bytes], *, epoch: int = 1, now: int = NOW) -> Appended:
    """Append as a leader, one entry a batch."""
    end = log.end_offset
    entries = []
    for each in batches:
        read = read_batches(each)
        assert read.fault is None
        entries.append(Placed(Offset(end), LeaderEpoch(epoch), read))
        end = read.headers[-1].last_offset_delta + 1 + end
    return log.append(entries, WallMillis(now))


def follow(log: Log, data: bytes, *, now: int = NOW) -> Appended:
    read = read_batches(data)
    assert read.fault is None
    return log.append([Placed(None, LeaderEpoch(-1), read)], WallMillis(now))


def everything(log: Log, max_bytes: int = 500) -> bytes:
    """All bytes from the start on, read as a consumer reads."""
    parts = []
    offset = log.start_offset
    while offset < log.end_offset:
        data = bytes(log.read(offset, max_bytes=max_bytes, below=log.end_offset))
        read = read_batches(data)
        assert read.fault is None
        assert read.headers, f"nothing at {offset}"
        offset = read.headers[-1].next_offset
        parts.append(data)
    return b"".join(parts)


def headers(log: Log) -> tuple[BatchHeader, ...]:
    return read_batches(everything(log)).headers


def bases(log: Log) -> list[int]:
    return [header.base_offset for header in headers(log)]


def fill(log: Log, count: int, *, size: int = 100, epoch: int = 1, now: int = NOW) -> None:
    """So many batches of one record, each its own append."""
    each = sized_batch(size, timestamp=now)
    for _ in range(count):
        lead(log, [each], epoch=epoch, now=now)


def stamped(data: Sequence[bytes], *, epoch: int = 1, base: int = 0) -> bytes:
    """What a leader's log holds after these batches."""
    parts = []
    for each in data:
        size = len(each) - 12
        prefix = base.to_bytes(8, "big") + size.to_bytes(4, "big") + epoch.to_bytes(4, "big")
        parts.append(prefix + each[16:])
        base += read_batches(each).headers[0].last_offset_delta + 1
    return b"".join(parts)
