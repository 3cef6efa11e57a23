"""Record batches as values: what the protocol knows of them is their header.

``Batches`` is what a Produce request or a Fetch response carries for one partition. Core and node
read ``headers`` and pass the whole on; only ``wire`` and ``log`` look at ``data``.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from cotidal.errors import ErrorCode, Refusal
from cotidal.values import (
    LeaderEpoch,
    Offset,
    ProducerEpoch,
    ProducerId,
    Sequence,
    WallMillis,
)

HEADER_BYTES: Final = 61
"""Length of a version 2 batch header: an empty batch is exactly this long."""

COMPRESSION_MASK: Final = 0x07
COMPRESSION_MAX: Final = 4
"""None, gzip, snappy, lz4, zstd."""
TIMESTAMP_TYPE_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40
"""The base timestamp is the time from which on tombstones and markers may go (KIP-534)."""


class BatchHeader(NamedTuple):
    """The header of one record batch, version 2."""

    base_offset: Offset
    size_bytes: int
    """Of the whole batch, header included."""
    leader_epoch: LeaderEpoch
    attributes: int
    last_offset_delta: int
    base_timestamp: WallMillis
    max_timestamp: WallMillis
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    base_sequence: Sequence
    record_count: int

    @property
    def last_offset(self) -> Offset:
        return Offset(self.base_offset + self.last_offset_delta)

    @property
    def next_offset(self) -> Offset:
        return Offset(self.base_offset + self.last_offset_delta + 1)

    @property
    def last_sequence(self) -> Sequence:
        """Sequences wrap at 2**31, as Kafka's do."""
        if self.base_sequence < 0:
            return self.base_sequence
        return Sequence((self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def has_log_append_time(self) -> bool:
        return bool(self.attributes & TIMESTAMP_TYPE_BIT)

    @property
    def compression(self) -> int:
        return self.attributes & COMPRESSION_MASK

    @property
    def delete_horizon(self) -> int | None:
        """From when on its tombstones, or its marker, may go; None until compaction has set it."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None


class Marker(NamedTuple):
    """The end of a transaction, as its control batch tells it."""

    offset: Offset
    committed: bool
    coordinator_epoch: int


class Stretch(Protocol):
    """Whole batches that stay in their file until they are sent: the operating system takes them
    from there to the socket. All that is known of them is how many bytes they are."""

    def __len__(self) -> int: ...


class Batches(NamedTuple):
    """Consecutive whole batches of one partition, crc checked, and what was wrong after them.

    ``headers`` describes exactly the bytes of ``data``. ``fault`` is None, or one sentence about
    the batch that follows them and could not be accepted; the bytes of that batch are not in
    ``data``. A batch cut short at the end (a fetch response may do that) is dropped without fault
    and told by ``cut``. ``markers``: what the control batches among them say of transactions.

    In an answer to a fetch, which has no headers, ``data`` may be a Stretch (api.fetch); only its
    length is asked for before it is sent.
    """

    headers: tuple[BatchHeader, ...]
    data: bytes | memoryview
    fault: str | None = None
    cut: bool = False
    markers: tuple[Marker, ...] = ()


NO_BATCHES: Final = Batches((), b"")


def producer_refusal(batches: Batches | None) -> Refusal | None:
    """Why a leader does not take this from a producer; None if it does, as far as headers tell.

    A producer sends one whole batch, and the broker alone writes control batches. Followers do not
    ask: compaction leaves batches whose count is below their offsets, which no producer may send.
    """
    if batches is None or (not batches.headers and batches.fault is None and not batches.cut):
        return Refusal(ErrorCode.INVALID_RECORD, "a partition's data holds no batch")
    if batches.fault is not None:
        return Refusal(ErrorCode.CORRUPT_MESSAGE, batches.fault)
    if batches.cut:
        return Refusal(ErrorCode.CORRUPT_MESSAGE, "the batch is cut short")
    if len(batches.headers) > 1:
        found = len(batches.headers)
        return Refusal(ErrorCode.INVALID_RECORD, f"one batch a partition, not {found}")
    header = batches.headers[0]
    if header.attributes & CONTROL_BIT:
        return Refusal(ErrorCode.INVALID_RECORD, "producers may not write control batches")
    if header.compression > COMPRESSION_MAX:
        sentence = f"there is no compression with number {header.compression}"
        return Refusal(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, sentence)
    count, offsets = header.record_count, header.last_offset_delta + 1
    if count <= 0 or count != offsets:
        sentence = f"the batch has {count} records, but offsets for {offsets}"
        return Refusal(ErrorCode.INVALID_RECORD, sentence)
    if header.is_transactional and header.producer_id < 0:
        return Refusal(ErrorCode.INVALID_RECORD, "a transactional batch has no producer id")
    if header.producer_id >= 0 and header.base_sequence < 0:
        sentence = f"the batch has producer id {header.producer_id}, but no sequence"
        return Refusal(ErrorCode.INVALID_RECORD, sentence)
    return None


class RecordRules(NamedTuple):
    """What a topic asks of the records inside a batch; most topics ask nothing of them."""

    needs_keys: bool = False
    """The topic is compacted."""
    timestamp_before_max_ms: int | None = None
    """None: no record is too old, or its time is the broker's."""
    timestamp_after_max_ms: int | None = None
    """The same of the future. That is seen in a batch's header; set to find out which record."""
    compression: int | None = None
    """None: as the producer has it."""


NO_RECORD_RULES: Final = RecordRules()


class Placed(NamedTuple):
    """Batches with their place in a log.

    A leader gives ``base_offset`` and ``leader_epoch``: each batch in turn gets the next offset,
    and only its first 16 bytes are new. A follower gives None: the leader's bytes stay as they are.
    """

    base_offset: Offset | None
    leader_epoch: LeaderEpoch
    batches: Batches
