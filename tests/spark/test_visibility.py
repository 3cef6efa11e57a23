from __future__ import annotations

from typing import Any

from cotidal.messages.records.transaction import EndTxnMarker
from cotidal.messages.rpc.fetch import AbortedTransaction
from cotidal.spark.visibility import visible_batches
from cotidal.wire.batch import read_batches
from cotidal.wire.records import ControlType, Record, build_batch, control_record


def data(offset: int, producer: int = -1, *, transactional: bool = False) -> bytes:
    return build_batch(
        [Record(None, b"v")], base_offset=offset, producer_id=producer, transactional=transactional
    )


def marker(offset: int, producer: int, kind: ControlType) -> bytes:
    record = control_record(kind, EndTxnMarker(coordinator_epoch=0))
    return build_batch(
        [record], base_offset=offset, producer_id=producer, transactional=True, control=True
    )


def seen(*log: bytes, aborted: Any = ()) -> list[int]:
    whole = b"".join(log)
    found = list(visible_batches(read_batches(whole), aborted))
    for header, begin in found:
        assert read_batches(whole[begin : begin + header.size_bytes]).headers == (header,)
    return [header.base_offset for header, _ in found]


LOG = (
    data(0, 7, transactional=True),
    data(1),
    data(2, 8, transactional=True),
    marker(3, 7, ControlType.ABORT),
    data(4, 7, transactional=True),
    marker(5, 8, ControlType.COMMIT),
    marker(6, 7, ControlType.COMMIT),
)


def test_markers_are_never_seen() -> None:
    assert seen(*LOG) == [0, 1, 2, 4]


def test_an_aborted_transaction_lasts_until_its_producers_marker() -> None:
    assert seen(*LOG, aborted=(AbortedTransaction(7, 0),)) == [1, 2, 4]


def test_one_that_begins_later_does_not_hide_what_its_producer_committed_before() -> None:
    log = (*LOG, data(7, 7, transactional=True), marker(8, 7, ControlType.ABORT))
    aborted = (AbortedTransaction(7, 7), AbortedTransaction(7, 0))
    assert seen(*log, aborted=aborted) == [1, 2, 4]


def test_records_without_a_transaction_of_an_aborting_producer_are_seen() -> None:
    assert seen(data(0, 7), aborted=(AbortedTransaction(7, 0),)) == [0]
