"""What a range of a log comes to, whoever holds it."""

from __future__ import annotations

from cotidal.messages.batch import Batches
from cotidal.spark.audit.stretches import Share, lines, measured
from cotidal.wire.batch import read_batches, stamp_prefix
from cotidal.wire.records import Record, build_batch


def batch(base: int, count: int, epoch: int = 0, value: bytes = b"v") -> bytes:
    data = build_batch([Record(None, value, timestamp=1) for _ in range(count)])
    return stamp_prefix(base_offset=base, size=len(data), leader_epoch=epoch) + data[16:]


def share(first: int = 0, below: int = 100, *, compacted: bool = False) -> Share:
    return Share("orders", b"i" * 16, 0, 1, "", True, compacted, first, below)


def pieces(*batches: bytes) -> list[Batches]:
    return [read_batches(b"".join(batches))]


def test_a_batch_belongs_to_the_range_in_which_it_begins() -> None:
    log = pieces(batch(0, 5), batch(5, 10), batch(15, 5))
    early, late = measured(share(0, 10), log), measured(share(10, 20), log)
    assert (early.first_offset, early.end_offset, early.records) == (0, 15, 15)
    assert (late.first_offset, late.end_offset, late.records) == (15, 20, 5)


def test_the_same_batches_have_the_same_digest_however_they_are_read() -> None:
    a, b, c = batch(0, 5), batch(5, 10), batch(15, 5)
    at_once = measured(share(), pieces(a, b, c))
    one_by_one = measured(share(), [read_batches(each) for each in (a, b, c)])
    assert at_once == one_by_one
    assert at_once.digest != measured(share(), pieces(a, b)).digest


def test_an_epoch_is_part_of_what_must_agree() -> None:
    ours, theirs = (measured(share(), pieces(batch(0, 5, epoch=each))) for each in (1, 2))
    assert ours.digest != theirs.digest


def test_missing_offsets_are_a_fault_unless_compaction_may_have_taken_them() -> None:
    log = pieces(batch(0, 5), batch(8, 2))
    found = measured(share(), log)
    assert (found.fault, found.fault_offset) == ("offsets 5 to 7 are missing", 5)
    assert measured(share(compacted=True), log).fault is None


def test_epochs_never_go_back() -> None:
    found = measured(share(), pieces(batch(0, 5, epoch=3), batch(5, 5, epoch=2)))
    assert (found.fault, found.fault_offset) == ("leader epoch 2 after 3", 5)


def test_offsets_never_come_again() -> None:
    found = measured(share(), pieces(batch(0, 5), batch(3, 5)))
    assert (found.fault, found.fault_offset) == ("offset 3 comes again after 4", 3)


def test_a_flipped_bit_is_found_where_it_is() -> None:
    damaged = bytearray(batch(5, 5))
    damaged[-1] ^= 1
    found = measured(share(), pieces(batch(0, 5), bytes(damaged), batch(10, 5)))
    assert found.fault_offset == 5
    assert "checksum" in str(found.fault)
    assert found.end_offset == 5, "nothing behind it is believed"


def test_replicas_of_a_compacted_topic_need_not_be_alike() -> None:
    assert measured(share(compacted=True), pieces(batch(0, 5))).digest == b""


def test_a_close_look_has_a_line_for_each_batch() -> None:
    found = list(lines(share(), pieces(batch(0, 5, epoch=1), batch(5, 10, epoch=2))))
    assert [each[:4] for each in found] == [(0, 4, 1, 5), (5, 14, 2, 10)]
