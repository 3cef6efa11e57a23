"""Batches of the coordinators' topics: keyed records to bytes and back. Pure.

Record keys of a later version are stepped over, as is whatever cannot be read: who loads a log must
come to its end. How much that was is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from cotidal.errors import MalformedFrame
from cotidal.messages.batch import Batches, BatchHeader
from cotidal.messages.records.transaction import EndTxnMarker
from cotidal.values import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    Offset,
    ProducerId,
    WallMillis,
)
from cotidal.wire.batch import read_batches, read_header
from cotidal.wire.primitives import Buffer
from cotidal.wire.record_framing import (
    Coordinator,
    RecordReader,
    coordinator_readers,
    decode_coordinator_record,
    encode_key,
    encode_value,
)
from cotidal.wire.records import (
    ControlType,
    Record,
    build_batch,
    control_record,
    read_pairs,
)


class MarkerAsk(Protocol):
    """What is to be said of a transaction's end."""

    @property
    def producer_id(self) -> int: ...

    @property
    def producer_epoch(self) -> int: ...

    @property
    def committed(self) -> bool: ...

    @property
    def coordinator_epoch(self) -> int: ...


class TransactionOf(Protocol):
    """Whose transaction records are part of."""

    @property
    def producer_id(self) -> int: ...

    @property
    def epoch(self) -> int: ...


class ReadBatch(NamedTuple):
    """Records, or the end of a transaction."""

    records: tuple[tuple[Any, Any | None], ...]
    producer_id: ProducerId = NO_PRODUCER_ID
    """In whose transaction, or whose has ended."""
    committed: bool | None = None
    """How it has ended; None: this is no end."""


class ReadCoordinator(NamedTuple):
    """What some batches of a coordinator's log hold."""

    next_offset: Offset
    """After the last of them."""
    batches: tuple[ReadBatch, ...]
    unreadable: int


def encode_coordinator_batch(
    records: Iterable[tuple[Any, Any | None]],
    wall: WallMillis,
    transaction: TransactionOf | None = None,
) -> Batches:
    """One batch, as a leader takes it from a producer.

    In a transaction every batch has sequence 0, as Kafka's have: nobody sends one twice.
    """
    in_one = transaction is not None
    data = build_batch(
        (
            Record(encode_key(key), None if value is None else encode_value(value), timestamp=wall)
            for key, value in records
        ),
        producer_id=NO_PRODUCER_ID if transaction is None else transaction.producer_id,
        producer_epoch=NO_PRODUCER_EPOCH if transaction is None else transaction.epoch,
        base_sequence=0 if in_one else NO_SEQUENCE,
        transactional=in_one,
    )
    return Batches((read_header(data),), data)


_WHOSE: Final = {
    "__consumer_offsets": Coordinator.GROUP,
    "__transaction_state": Coordinator.TRANSACTION,
}


def read_coordinator_log(topic: str, data: Buffer) -> ReadCoordinator:
    """What batches of a coordinator's topic hold."""
    return read_coordinator_batches(_WHOSE[topic], data)


def encode_marker(ask: MarkerAsk, wall: WallMillis) -> Batches:
    """The end of a transaction, as a leader writes it."""
    kind = ControlType.COMMIT if ask.committed else ControlType.ABORT
    data = build_batch(
        [control_record(kind, EndTxnMarker(ask.coordinator_epoch), timestamp=wall)],
        producer_id=ask.producer_id,
        producer_epoch=ask.producer_epoch,
        transactional=True,
        control=True,
    )
    return Batches((read_header(data),), data)


def read_coordinator_batches(coordinator: Coordinator, data: Buffer) -> ReadCoordinator:
    """All whole batches at the beginning of these bytes; at least one."""
    readers = coordinator_readers(coordinator)
    batches = read_batches(data)
    ends = {marker.offset: marker for marker in batches.markers}
    found: list[ReadBatch] = []
    unreadable = 0
    at = 0
    view = memoryview(batches.data)
    for header in batches.headers:
        if header.is_control:
            marker = ends.get(header.base_offset)
            if marker is not None:
                found.append(ReadBatch((), header.producer_id, marker.committed))
        else:
            known, unknown = _read_batch(readers, header, view, at)
            producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
            found.append(ReadBatch(tuple(known), producer_id))
            unreadable += unknown
        at += header.size_bytes
    end = batches.headers[-1].next_offset if batches.headers else Offset(-1)
    return ReadCoordinator(end, tuple(found), unreadable)


def _read_batch(
    readers: Mapping[int, RecordReader], header: BatchHeader, view: memoryview, at: int
) -> tuple[list[tuple[Any, Any | None]], int]:
    """The records that can be read, and how many cannot."""
    try:
        pairs = read_pairs(header, view, at)
    except MalformedFrame:
        return [], header.record_count
    found: list[tuple[Any, Any | None]] = []
    unreadable = 0
    for key, value in pairs:
        try:
            known = decode_coordinator_record(readers, key or b"", value)
        except MalformedFrame:
            unreadable += 1
            continue
        if known is not None:
            found.append(known)
    return found, unreadable
