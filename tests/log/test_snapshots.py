"""Producer snapshots and aborted transactions: stored, found again, and survived without."""

from __future__ import annotations

import pytest

from cotidal.log.contract import Opened
from cotidal.log.log import Log
from cotidal.log.memory import MemoryFiles
from cotidal.log.producer_snapshot import decode_snapshot, encode_snapshot
from cotidal.messages.batch import Marker
from cotidal.messages.producers import AbortedTransaction, ProducerEntry, ProducerSnapshot
from cotidal.messages.records.transaction import EndTxnMarker
from cotidal.values import Offset, ProducerEpoch, ProducerId, Sequence, WallMillis
from cotidal.wire.records import ControlType, Record, build_batch, control_record
from tests.log.shelf import NOW, SMALL, Shelf, batch, fill, lead, memory_shelf

ENTRY = ProducerEntry(
    ProducerId(1000),
    ProducerEpoch(2),
    Sequence(77),
    Offset(123),
    4,
    WallMillis(NOW),
    9,
    Offset(120),
)


def aborted(first: int, last: int, stable: int, producer: int = 8) -> AbortedTransaction:
    return AbortedTransaction(ProducerId(producer), Offset(first), Offset(last), Offset(stable))


def end_transaction(log: Log, kind: ControlType, producer_id: int = 8) -> None:
    record = control_record(kind, EndTxnMarker(coordinator_epoch=5), timestamp=NOW)
    lead(
        log,
        [build_batch([record], producer_id=producer_id, producer_epoch=0, transactional=True,
                     control=True)],
    )  # fmt: skip


def test_snapshot_has_kafkas_bytes() -> None:
    data = encode_snapshot(ProducerSnapshot(Offset(124), (ENTRY,)))
    assert data[:2] == b"\x00\x01"
    assert data[6:10] == b"\x00\x00\x00\x01"
    assert data[10:].hex() == (
        "00000000000003e8" "0002" "0000004d" "000000000000007b" "00000004"
        f"{NOW:016x}" "00000009" "0000000000000078"
    )  # fmt: skip
    assert decode_snapshot(Offset(124), data) == ProducerSnapshot(Offset(124), (ENTRY,))


def test_damaged_snapshot_is_refused_wherever_the_damage_is() -> None:
    data = encode_snapshot(ProducerSnapshot(Offset(124), (ENTRY, ENTRY)))
    for position in range(len(data)):
        flipped = bytearray(data)
        flipped[position] ^= 0x10
        with pytest.raises(ValueError, match="snapshot"):
            decode_snapshot(Offset(124), bytes(flipped))
        with pytest.raises(ValueError, match="snapshot"):
            decode_snapshot(Offset(124), data[:position])


def test_newest_readable_snapshot_is_taken(shelf: Shelf) -> None:
    log = shelf.open()
    for sequence in range(12):
        lead(log, [batch(producer_id=8, sequence=sequence)])
        if sequence in (3, 7):
            log.save_producers(ProducerSnapshot(log.end_offset, (ENTRY,)))
    log.close()
    opened = shelf.open().opened
    assert taken(opened) == ProducerSnapshot(Offset(8), (ENTRY,))
    assert [header.base_offset for header in opened.headers_after] == [8, 9, 10, 11]
    shelf.flip(f"{8:020d}.snapshot", 20)
    opened = shelf.open().opened
    assert taken(opened) == ProducerSnapshot(Offset(4), (ENTRY,))
    assert [header.base_offset for header in opened.headers_after] == list(range(4, 12))
    assert opened.repaired == (
        f"orders-0: removed {8:020d}.snapshot: the producer snapshot fails its crc",
    )


def taken(opened: Opened) -> ProducerSnapshot:
    """As its file has it."""
    assert opened.producer_snapshot is not None
    return opened.producer_snapshot._replace(before=())


def test_batches_before_a_snapshot_are_told_with_it(shelf: Shelf) -> None:
    log = shelf.open()
    for sequence in range(40):  # some ten to a segment
        lead(log, [batch(producer_id=8, sequence=sequence), batch()])
    log.save_producers(ProducerSnapshot(Offset(71), (ENTRY,)))
    log.close()
    snapshot = shelf.open().opened.producer_snapshot
    assert snapshot is not None
    assert [header.base_sequence for header in snapshot.before] == list(range(36))


@pytest.mark.plain
def test_not_more_is_read_before_a_snapshot_than_its_bound(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cotidal.log.snapshots.PRODUCER_WINDOW_ENTRIES", 12)
    log = shelf.open()
    for sequence in range(100):
        lead(log, [batch(producer_id=8, sequence=sequence)])
    log.save_producers(ProducerSnapshot(log.end_offset, (ENTRY,)))
    assert len(log.segment_bases) > 3
    log.close()
    snapshot = shelf.open().opened.producer_snapshot
    assert snapshot is not None
    sequences = [header.base_sequence for header in snapshot.before]
    assert sequences == list(range(100 - len(sequences), 100))
    assert 5 < len(sequences) < 40


def test_damage_before_a_snapshot_does_not_keep_a_log_from_opening(shelf: Shelf) -> None:
    log = shelf.open()
    for sequence in range(40):
        lead(log, [batch(producer_id=8, sequence=sequence)])
    log.save_producers(ProducerSnapshot(log.end_offset, (ENTRY,)))
    log.close()
    shelf.flip(shelf.logs()[-2], 16, 7)  # the magic of its first batch
    opened = shelf.open().opened
    assert taken(opened) == ProducerSnapshot(Offset(40), (ENTRY,))
    assert opened.producer_snapshot is not None
    assert opened.producer_snapshot.before


def test_snapshot_past_the_end_of_a_torn_log_is_not_taken() -> None:
    shelf = memory_shelf()
    log = shelf.open()
    fill(log, 5)
    log.save_producers(ProducerSnapshot(Offset(3), ()))
    log.save_producers(ProducerSnapshot(Offset(5), ()))
    data = shelf.bytes_of(f"{0:020d}.log")
    shelf.restart()
    shelf.put(f"{0:020d}.log", data[:450])
    assert shelf.open(clean=False).opened.producer_snapshot == ProducerSnapshot(Offset(3), ())
    assert f"{5:020d}.snapshot" not in shelf.names()


def test_old_snapshots_go_with_their_segments_but_the_newest_stays(shelf: Shelf) -> None:
    log = shelf.open()
    for _ in range(3):
        fill(log, 10)
        log.save_producers(ProducerSnapshot(log.end_offset, ()))
    log.advance_start(Offset(25), NOW)
    assert [name for name in shelf.names() if "snapshot" in name] == [f"{30:020d}.snapshot"]


def test_ends_of_transactions_are_told_when_the_log_is_opened(shelf: Shelf) -> None:
    log = shelf.open()
    lead(log, [batch(2, producer_id=8, sequence=0)])
    end_transaction(log, ControlType.ABORT)
    lead(log, [batch(2, producer_id=8, sequence=2)])
    end_transaction(log, ControlType.COMMIT)
    log.close()
    opened = shelf.open().opened
    assert opened.markers == (Marker(Offset(2), False, 5), Marker(Offset(5), True, 5))
    assert [header.is_control for header in opened.headers_after] == [False, True, False, True]


def test_reader_is_told_the_aborted_transactions_it_will_meet(shelf: Shelf) -> None:
    log = shelf.open()
    fill(log, 25)
    first, second, third = aborted(0, 4, 5), aborted(3, 12, 6), aborted(14, 22, 23)
    log.save_aborted([first, second, third])
    log.save_aborted([second])  # handed over again after a crash: passed over
    for _ in range(2):
        assert log.aborted_between(Offset(0), Offset(25)) == (first, second, third)
        assert log.aborted_between(Offset(5), Offset(25)) == (second, third)
        assert log.aborted_between(Offset(5), Offset(14)) == (second,)
        assert log.aborted_between(Offset(23), Offset(25)) == ()
        assert log.aborted_between(Offset(0), Offset(3)) == (first,)
        assert log.aborted_beside(Offset(0), Offset(25)) == (first, second), "a read ends earlier"
        assert log.aborted_beside(Offset(0), Offset(1)) == (first,)
        log.close()
        log = shelf.open()
    # one record of version 0, in the segment that holds its marker
    assert shelf.bytes_of(f"{10:020d}.txnindex").hex() == (
        "0000" "0000000000000008" "0000000000000003" "000000000000000c" "0000000000000006"
    )  # fmt: skip


def test_truncation_forgets_aborted_transactions(shelf: Shelf) -> None:
    log = shelf.open()
    fill(log, 25)
    log.save_aborted([aborted(0, 4, 5), aborted(3, 12, 6), aborted(14, 18, 19)])
    log.truncate_to(Offset(15))
    assert [each.last_offset for each in log.aborted_between(Offset(0), Offset(15))] == [4, 12]
    log.truncate_to(Offset(12))
    assert [each.last_offset for each in log.aborted_between(Offset(0), Offset(15))] == [4]


@pytest.mark.parametrize("cut", [1, 17, 33])
def test_torn_transaction_index_sends_the_core_back_to_an_older_snapshot(
    shelf: Shelf, cut: int
) -> None:
    log = shelf.open()
    fill(log, 9)
    log.save_aborted([aborted(0, 2, 3)])
    log.save_producers(ProducerSnapshot(Offset(3), ()))
    log.save_aborted([aborted(4, 6, 7)])
    log.save_producers(ProducerSnapshot(Offset(9), ()))
    name = f"{0:020d}.txnindex"
    data = shelf.bytes_of(name)
    shelf.restart()
    shelf.put(name, data[:-cut])
    log = shelf.open(clean=False)
    assert log.opened.producer_snapshot == ProducerSnapshot(Offset(3), ())
    assert [each.last_offset for each in log.aborted_between(Offset(0), Offset(9))] == [2]
    assert (
        f"orders-0: cut {name}: its length is not a whole number of entries" in log.opened.repaired
    )


def test_aborted_transactions_below_a_snapshot_survive_a_power_cut() -> None:
    """Nobody would hand them over again: the core begins at the snapshot."""
    for seed in range(40):
        shelf = memory_shelf()
        files = shelf.filesystem
        assert isinstance(files, MemoryFiles)
        log = shelf.open(SMALL)
        fill(log, 12)
        log.flush()
        log.save_aborted([aborted(0, 2, 3), aborted(4, 11, 12)])
        log.save_producers(ProducerSnapshot(Offset(12), ()))
        state = seed

        def draw(n: int) -> int:
            nonlocal state
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            return (state >> 33) % n

        files.crash(draw)
        log = shelf.open(SMALL, clean=False, recovery_point=12)
        assert log.end_offset == 12
        if log.opened.producer_snapshot is not None:
            assert len(log.aborted_between(Offset(0), Offset(12))) == 2


def test_control_batch_that_ends_no_transaction_has_no_marker(shelf: Shelf) -> None:
    log = shelf.open()
    strange = Record(b"\x00\x00\x00\x63", b"\x00", timestamp=NOW)
    lead(log, [build_batch([strange], producer_id=8, producer_epoch=0, control=True)])
    log.close()
    opened = shelf.open().opened
    assert len(opened.headers_after) == 1
    assert opened.markers == ()
