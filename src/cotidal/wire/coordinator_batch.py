"""Batches of the coordinators' topics: keyed records to bytes and back. Pure.

Record keys of a later version are stepped over, as is whatever cannot be read: who loads a log must
come to its end. How much that was is told.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple, Protocol

from cotidal.errors import MalformedFrame
from cotidal.messages.batch import Batches
from cotidal.messages.records.transaction import EndTxnMarker
from cotidal.values import Offset, WallMillis
from cotidal.wire.batch import read_batches, read_header
from cotidal.wire.primitives import Buffer
from cotidal.wire.record_framing import (
    Coordinator,
    decode_coordinator_record,
    encode_key,
    encode_value,
)
from cotidal.wire.records import (
    ControlType,
    Record,
    build_batch,
    control_record,
    read_records,
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


class ReadCoordinator(NamedTuple):
    """What some batches of a coordinator's log hold."""

    next_offset: Offset
    """After the last of them."""
    records: tuple[tuple[Any, Any | None], ...]
    unreadable: int


def encode_coordinator_batch(
    records: Iterable[tuple[Any, Any | None]], wall: WallMillis
) -> Batches:
    """One batch, as a leader takes it from a producer."""
    data = build_batch(
        Record(encode_key(key), None if value is None else encode_value(value), timestamp=wall)
        for key, value in records
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
    batches = read_batches(data)
    found: list[tuple[Any, Any | None]] = []
    unreadable = 0
    at = 0
    view = memoryview(batches.data)
    for header in batches.headers:
        if not header.is_control:
            try:
                records = read_records(view, at)
            except MalformedFrame:
                unreadable += header.record_count
                records = []
            for record in records:
                try:
                    known = decode_coordinator_record(coordinator, record.key or b"", record.value)
                except MalformedFrame:
                    unreadable += 1
                    continue
                if known is not None:
                    found.append(known)
        at += header.size_bytes
    end = batches.headers[-1].next_offset if batches.headers else Offset(-1)
    return ReadCoordinator(end, tuple(found), unreadable)
