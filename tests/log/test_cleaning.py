"""What compaction leaves of a log, and that it survives whatever happens meanwhile."""

from __future__ import annotations

import random

import pytest

from cotidal.log import cleaning
from cotidal.log.compaction import CompactionRules
from cotidal.log.failure import CorruptLog
from cotidal.log.log import Log
from cotidal.log.memory import MemoryFiles
from cotidal.messages.batch import Placed
from cotidal.messages.producers import AbortedTransaction
from cotidal.messages.records.transaction import EndTxnMarker
from cotidal.values import LeaderEpoch, Offset, ProducerId, WallMillis
from cotidal.wire.batch import crc32c, read_batches, read_header
from cotidal.wire.compression import Compression
from cotidal.wire.records import ControlType, build_batch, control_record
from tests.log.keyed import (
    DAY_MS,
    KEYED,
    batch_at,
    compact,
    kept,
    keyed_batch,
    latest,
    put,
    roll,
    values,
)
from tests.log.shelf import NOW, Shelf, bases, everything, follow, headers, lead, memory_shelf

# What stays


def test_of_each_key_the_newest_record_stays_at_its_offset(shelf: Shelf) -> None:
    log = shelf.open(KEYED)
    put(log, (b"a", b"1"), (b"b", b"1"))
    put(log, (b"a", b"2"), (b"c", b"1"))
    put(log, (b"b", b"2"))
    roll(log)
    compact(log)
    assert values(log) == [(2, b"a", b"2"), (3, b"c", b"1"), (4, b"b", b"2")]
    assert (log.start_offset, log.end_offset) == (0, 5)
    assert log.verify() == ()


def test_record_keeps_its_timestamp_and_its_place_in_its_batch(shelf: Shelf) -> None:
    log = shelf.open(KEYED)
    put(log, (b"a", b"1"), (b"b", b"1"), (b"c", b"1"))
    put(log, (b"a", b"2"), (b"c", b"2"))
    roll(log)
    before = latest(kept(log))
    compact(log)
    assert latest(kept(log)) == before
    thin = read_header(batch_at(log, 0))
    assert (thin.base_offset, thin.last_offset, thin.record_count) == (0, 2, 1)


@pytest.mark.parametrize("codec", list(Compression))
def test_compressed_batch_stays_compressed(shelf: Shelf, codec: Compression) -> None:
    log = shelf.open(KEYED)
    lead(log, [keyed_batch([(b"a", b"1" * 50), (b"b", b"1" * 50)], compression=codec)])
    lead(log, [keyed_batch([(b"a", b"2")], compression=codec)])
    roll(log)
    compact(log)
    assert values(log) == [(1, b"b", b"1" * 50), (2, b"a", b"2")]
    assert read_header(batch_at(log, 0)).compression == codec


def test_records_of_the_active_segment_stay(shelf: Shelf) -> None:
    log = shelf.open(KEYED)
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    roll(log)
    put(log, (b"a", b"3"))
    put(log, (b"a", b"4"))
    compact(log)
    assert values(log) == [(1, b"a", b"2"), (2, b"a", b"3"), (3, b"a", b"4")]


def test_nothing_above_the_high_watermark_is_cleaned_or_counts(shelf: Shelf) -> None:
    log = shelf.open(KEYED)
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    roll(log)
    put(log, (b"a", b"3"))
    roll(log)
    compact(log, below=2)
    assert values(log) == [(1, b"a", b"2"), (2, b"a", b"3")]


def test_nothing_that_is_not_on_the_disk_supersedes_what_is(shelf: Shelf) -> None:
    log = shelf.open(KEYED)
    put(log, (b"a", b"1"))
    roll(log)
    put(log, (b"a", b"2"))
    log.roll(NOW)  # and not flushed
    assert compact(log) is not None
    assert values(log) == [(0, b"a", b"1"), (1, b"a", b"2")]


def test_records_without_a_key_go(shelf: Shelf) -> None:
    log = shelf.open(KEYED)
    put(log, (None, b"1"), (b"a", b"1"))
    roll(log)
    compact(log)
    assert values(log) == [(1, b"a", b"1")]


def test_batch_whose_records_cannot_be_read_stays_as_it_is(shelf: Shelf) -> None:
    log = shelf.open(KEYED)
    odd = bytearray(keyed_batch([(b"a", b"1"), (b"b", b"1")]))
    odd[61:65] = b"\xff\xff\xff\xff"
    odd[17:21] = crc32c(memoryview(odd)[21:]).to_bytes(4, "big")
    lead(log, [bytes(odd)])
    put(log, (b"a", b"2"))
    roll(log)
    compact(log)
    assert batch_at(log, 0)[21:] == bytes(odd)[21:]


def test_damaged_batch_ends_the_cleaning_and_is_named(shelf: Shelf) -> None:
    log = shelf.open(KEYED)
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    roll(log)
    log.close()
    shelf.flip("00000000000000000000.log", 66)
    shelf.restart()
    log = shelf.open(KEYED, recovery_point=2)
    with pytest.raises(CorruptLog, match=r"orders-0: 0{20}\.log is damaged at byte 0"):
        compact(log)
    assert not [name for name in shelf.names() if "cleaned" in name]


# Tombstones


def test_tombstone_stays_for_its_time_and_goes_then_with_what_it_deleted(shelf: Shelf) -> None:
    log = shelf.open(KEYED)
    put(log, (b"a", b"1"), (b"b", b"1"))
    put(log, (b"a", None))
    roll(log)
    compact(log)
    assert values(log) == [(1, b"b", b"1"), (2, b"a", None)]
    stamped = read_header(batch_at(log, 2))
    assert stamped.delete_horizon == NOW + DAY_MS
    put(log, (b"c", b"1"))
    roll(log)
    compact(log, now=NOW + DAY_MS - 1)
    assert values(log) == [(1, b"b", b"1"), (2, b"a", None), (3, b"c", b"1")]
    assert read_header(batch_at(log, 2)).delete_horizon == NOW + DAY_MS
    put(log, (b"d", b"1"))
    roll(log)
    compact(log, now=NOW + DAY_MS)
    assert values(log) == [(1, b"b", b"1"), (3, b"c", b"1"), (4, b"d", b"1")]


def test_horizon_does_not_change_timestamps(shelf: Shelf) -> None:
    log = shelf.open(KEYED)
    put(log, (b"a", b"1"), (b"b", None), (b"c", b"1"))
    roll(log)
    before = kept(log)
    compact(log)
    assert kept(log) == before
    assert read_header(batch_at(log, 0)).max_timestamp == NOW + 2


# What others rest on


def test_last_batch_of_a_known_producer_stays_emptied(shelf: Shelf) -> None:
    log = shelf.open(KEYED)
    put(log, (b"z", b"0"))
    for sequence in range(3):
        lead(log, [keyed_batch([(b"a", b"1")], producer_id=7, sequence=sequence)])
    lead(log, [keyed_batch([(b"a", b"1")], producer_id=8, sequence=0)])
    put(log, (b"a", b"2"))
    roll(log)
    compact(log, producers=frozenset({7}))
    assert bases(log) == [0, 3, 5]
    stayed = read_header(batch_at(log, 3))
    assert (stayed.producer_id, stayed.last_sequence, stayed.record_count) == (7, 2, 0)
    log.close()
    shelf.restart()
    log = shelf.open(KEYED, recovery_point=6)
    assert [each.last_sequence for each in log.opened.headers_after] == [2]


def test_last_batch_of_a_producer_is_found_in_the_clean_part_too(shelf: Shelf) -> None:
    log = shelf.open(KEYED)
    put(log, (b"z", b"0"))
    lead(log, [keyed_batch([(b"a", b"1")], producer_id=7, sequence=0)])
    put(log, (b"y", b"0"))
    roll(log)
    compact(log, producers=frozenset({7}))
    put(log, (b"a", b"2"))
    roll(log)
    compact(log, producers=frozenset({7}))
    assert bases(log) == [0, 1, 2, 3]
    assert read_header(batch_at(log, 1)).record_count == 0


def test_first_batch_of_each_epoch_stays_emptied(shelf: Shelf) -> None:
    """Without it a replica that copied or recovered this log would not know where epoch 2 began."""
    log = shelf.open(KEYED)
    put(log, (b"a", b"1"), epoch=1)
    put(log, (b"a", b"2"), epoch=2)
    put(log, (b"a", b"3"), epoch=2)
    put(log, (b"b", b"1"), epoch=3)
    put(log, (b"a", b"4"), epoch=3)
    roll(log)
    epochs = log.epochs
    compact(log)
    assert bases(log) == [0, 1, 3, 4]
    copy = memory_shelf().open(KEYED)
    follow(copy, everything(log))
    assert copy.epochs == epochs
    log.close()
    shelf.restart()
    shelf.filesystem.unlink(shelf.path("leader-epoch-checkpoint"))
    assert shelf.open(KEYED, clean=False).epochs == epochs


def test_segment_ends_where_the_next_begins(shelf: Shelf) -> None:
    log = shelf.open(KEYED._replace(segment_bytes=200))
    for number in range(8):
        put(log, (b"a", b"%d" % number))
    roll(log)
    compact(log)
    ends = [header.next_offset for header in headers(log)]
    for base in log.segment_bases[1:]:
        assert base in ends
    log.close()
    shelf.restart()
    log = shelf.open(KEYED, clean=False)
    assert not log.opened.repaired
    assert values(log)[-1] == (7, b"a", b"7")


def test_small_segments_are_laid_together(shelf: Shelf) -> None:
    log = shelf.open(KEYED._replace(segment_bytes=10_000))
    for number in range(6):
        put(log, (b"%d" % number, b"1"))
        roll(log)
    assert len(log.segment_bases) == 7
    compact(log)
    assert log.segment_bases == (0, 6)
    assert len(values(log)) == 6


def test_no_new_segment_exceeds_segment_bytes(shelf: Shelf) -> None:
    log = shelf.open(KEYED)
    for number in range(60):
        put(log, (b"%d" % number, b"v" * 20))
    roll(log)
    compact(log)
    sizes = [shelf.filesystem.size(shelf.path(name)) for name in shelf.logs()]
    assert max(sizes) <= KEYED.segment_bytes
    assert len(values(log)) == 60


# Transactions


def marker(log: Log, kind: ControlType, producer_id: int) -> None:
    data = build_batch(
        [control_record(kind, EndTxnMarker(coordinator_epoch=0), timestamp=NOW)],
        producer_id=producer_id,
        producer_epoch=0,
        control=True,
        transactional=True,
    )
    log.append([Placed(log.end_offset, LeaderEpoch(1), read_batches(data))], WallMillis(NOW))


def transaction(log: Log, producer_id: int, *records: tuple[bytes, bytes], commits: bool) -> None:
    first = log.end_offset
    batch = keyed_batch(records, producer_id=producer_id, sequence=0, transactional=True)
    lead(log, [batch])
    marker(log, ControlType.COMMIT if commits else ControlType.ABORT, producer_id)
    if not commits:
        last = Offset(log.end_offset - 1)
        log.save_aborted([AbortedTransaction(ProducerId(producer_id), first, last, log.end_offset)])


def test_aborted_records_go_and_supersede_nothing(shelf: Shelf) -> None:
    log = shelf.open(KEYED)
    put(log, (b"a", b"1"))
    transaction(log, 5, (b"a", b"no"), commits=False)
    roll(log)
    compact(log)
    assert [each for each in values(log) if each[1] == b"a"] == [(0, b"a", b"1")]


def test_abort_marker_outlives_the_data_by_the_retention_of_deletes(shelf: Shelf) -> None:
    log = shelf.open(KEYED)
    put(log, (b"z", b"1"))
    transaction(log, 5, (b"a", b"no"), commits=False)
    put(log, (b"b", b"1"))
    roll(log)
    compact(log)
    assert bases(log) == [0, 2, 3]
    assert len(log.aborted_between(Offset(0), Offset(4))) == 1
    put(log, (b"c", b"1"))
    roll(log)
    compact(log, now=NOW + 1)  # nothing of it is left: its time begins
    assert read_header(batch_at(log, 2)).delete_horizon == NOW + 1 + DAY_MS
    assert log.aborted_between(Offset(0), Offset(4)) == ()
    put(log, (b"d", b"1"))
    roll(log)
    compact(log, now=NOW + 1 + DAY_MS)
    assert bases(log) == [0, 3, 4, 5]


def test_commit_marker_stays_as_long_as_its_data(shelf: Shelf) -> None:
    log = shelf.open(KEYED)
    transaction(log, 5, (b"a", b"1"), commits=True)
    roll(log)
    for number in range(3):
        put(log, (b"b", b"%d" % number))
        roll(log)
        compact(log, now=NOW + number * DAY_MS)
    assert bases(log)[:2] == [0, 1]
    assert read_header(batch_at(log, 1)).delete_horizon is None


def test_last_sequence_of_a_producer_outlives_its_transaction(shelf: Shelf) -> None:
    """A marker comes after the data, and has no sequence."""
    log = shelf.open(KEYED)
    put(log, (b"z", b"1"))
    transaction(log, 5, (b"a", b"1"), commits=True)
    marker(log, ControlType.COMMIT, 6)
    put(log, (b"a", b"2"))
    roll(log)
    for round_ in range(3):
        put(log, (b"%d" % round_, b"1"))
        roll(log)
        compact(log, now=NOW + 2 * DAY_MS * round_, producers=frozenset({5, 6}))
    assert read_header(batch_at(log, 1)).producer_id == 5
    assert read_header(batch_at(log, 1)).record_count == 0
    assert read_header(batch_at(log, 3)).producer_id == 6, "known by a marker alone"


# Beside other work


def begun(log: Log) -> tuple[cleaning.Cleaning, cleaning.Cleaned]:
    plan = log.begin_cleaning(NOW, below=log.end_offset)
    assert plan is not None
    return plan, cleaning.run(plan, keys_max=1000, now_wall=NOW, breathe=lambda _: None)


def two_values(shelf: Shelf) -> Log:
    log = shelf.open(KEYED)
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    roll(log)
    return log


def test_log_is_written_and_read_while_it_is_cleaned(shelf: Shelf) -> None:
    log = two_values(shelf)
    plan, done = begun(log)
    put(log, (b"a", b"3"))
    roll(log)
    put(log, (b"b", b"1"))
    assert len(values(log)) == 4
    assert log.end_cleaning(plan, done, NOW) is not None
    assert values(log) == [(1, b"a", b"2"), (2, b"a", b"3"), (3, b"b", b"1")]


def test_cleaning_of_a_log_that_was_cut_meanwhile_is_thrown_away(shelf: Shelf) -> None:
    log = two_values(shelf)
    plan, done = begun(log)
    log.truncate_to(Offset(1))
    assert log.end_cleaning(plan, done, NOW) is None
    assert values(log) == [(0, b"a", b"1")]
    assert not [name for name in shelf.names() if "cleaned" in name]


def test_cleaning_of_segments_that_retention_took_is_thrown_away(shelf: Shelf) -> None:
    log = two_values(shelf)
    plan, done = begun(log)
    log.advance_start(Offset(2), NOW)
    assert log.end_cleaning(plan, done, NOW) is None
    assert values(log) == []


def test_cleaning_that_is_ended_leaves_nothing(shelf: Shelf) -> None:
    log = two_values(shelf)
    plan = log.begin_cleaning(NOW, below=log.end_offset)
    assert plan is not None

    def enough(_: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        cleaning.run(plan, keys_max=1000, now_wall=NOW, breathe=enough)
    assert not [name for name in shelf.names() if "cleaned" in name]
    assert len(values(log)) == 2


def test_old_files_are_unlinked_after_the_delay(shelf: Shelf) -> None:
    log = two_values(shelf)
    compact(log)
    assert any(name.endswith(".deleted") for name in shelf.names())
    assert not log.must_sweep(WallMillis(NOW + 999))
    assert log.must_sweep(WallMillis(NOW + 1000))
    log.sweep(WallMillis(NOW + 1000))
    assert not any(name.endswith(".deleted") for name in shelf.names())


def test_clean_log_is_not_cleaned_again(shelf: Shelf) -> None:
    log = two_values(shelf)
    compact(log)
    assert log.cleaned_to == 2
    assert compact(log) is None


def test_cut_makes_the_rest_dirty_again(shelf: Shelf) -> None:
    log = two_values(shelf)
    compact(log)
    log.truncate_to(Offset(1))
    assert log.cleaned_to <= 1


def test_map_that_is_full_cleans_what_it_holds_and_goes_on_from_there(shelf: Shelf) -> None:
    log = shelf.open(KEYED)
    for number in range(40):
        put(log, (b"%d" % (number % 20), b"%d" % number))
    roll(log)
    rounds = 0
    while compact(log, keys_max=6) is not None:
        rounds += 1
        assert len(latest(kept(log))) == 20
    assert rounds > 3
    assert [each.offset for each in kept(log)] == list(range(20, 40))


def test_offsets_that_are_gone_are_read_from_the_next_record_on(shelf: Shelf) -> None:
    log = shelf.open(KEYED)
    for number in range(30):
        put(log, (b"a", b"%d" % number))
    roll(log)
    compact(log)
    for offset in range(30):
        data = log.read(Offset(offset), max_bytes=1000, below=log.end_offset)
        assert read_header(data).last_offset >= offset


def test_records_are_found_by_time_in_a_compacted_log(shelf: Shelf) -> None:
    log = shelf.open(KEYED)
    for number in range(20):
        each = [(b"%d" % (number % 3), b"%d" % number)]
        lead(log, [keyed_batch(each, timestamp=NOW + number)])
    roll(log)
    compact(log)
    end = log.end_offset
    found = log.offset_for_time(WallMillis(NOW + 3), below=end)
    assert found is not None
    assert (found.offset, found.timestamp) == (17, NOW + 17)
    youngest = log.max_timestamp(end)
    assert youngest is not None
    assert youngest.offset == 19


# Any life


class Life:
    """Random batches of a few keys; what must be left of them by any compaction."""

    def __init__(self, seed: int, shelf: Shelf | None = None) -> None:
        self.random = random.Random(seed)
        self.shelf = shelf or memory_shelf()
        self.now = NOW
        self.log = self.shelf.open(self.config)
        self.epoch = 1

    config = KEYED._replace(
        compaction=CompactionRules(min_dirty_ratio=0.0, delete_retention_ms=500)
    )

    def write(self, batches: int) -> None:
        for _ in range(batches):
            records: list[tuple[bytes | None, bytes | None]] = []
            for _ in range(self.random.randint(1, 4)):
                key = b"%d" % self.random.randrange(8)
                self.now = WallMillis(self.now + 1)
                value = None if self.random.random() < 0.2 else b"%d" % self.now
                records.append((key, value))
            codec = self.random.choice((Compression.NONE, Compression.ZSTD))
            lead(
                self.log,
                [keyed_batch(records, timestamp=self.now, compression=codec)],
                epoch=self.epoch,
                now=self.now,
            )
            if self.random.random() < 0.1:
                self.epoch += 1
        self.log.flush()


@pytest.mark.parametrize("seed", range(30))
def test_newest_record_of_every_key_survives_any_compaction_in_its_order(seed: int) -> None:
    life = Life(seed)
    log = life.log
    written: list[tuple[int, bytes | None, bytes | None, int]] = []
    for _ in range(12):
        life.write(life.random.randint(1, 12))
        written += [
            tuple(each) for each in kept(log) if not written or each.offset > written[-1][0]
        ]
        below = life.random.randint(0, log.end_offset)
        if life.random.random() < 0.7:
            compact(log, below=below, now=life.now, keys_max=life.random.choice((3, 1000)))
        life.now = WallMillis(life.now + life.random.choice((0, 300, 1000)))
        left = kept(log)
        assert [each.offset for each in left] == sorted({each.offset for each in left})
        assert {tuple(each) for each in left} <= set(written)
        newest = {key: (offset, value) for offset, key, value, _ in written}
        found = {each.key: (each.offset, each.value) for each in left}
        for key, (offset, value) in newest.items():
            assert found.get(key) == (offset, value) or (value is None and key not in found)
        assert log.end_offset == written[-1][0] + 1
        assert log.verify() == ()


class PowerCut(BaseException):
    """Not an Exception: nobody handles it."""


class FragileFiles(MemoryFiles):
    """The machine dies before the operation with this number."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        super().__init__()
        self.left = 1 << 60

    def account(self, operation: str, path: str) -> None:
        if self.left == 0:
            raise PowerCut
        self.left -= 1
        super().account(operation, path)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("machine", [False, True], ids=["process dies", "machine dies"])
@pytest.mark.plain
def test_crash_before_any_operation_of_a_compaction_loses_nothing(seed: int, machine: bool) -> None:
    """Also before any operation of the recovery that follows."""
    operation = 0
    finished = False
    while not finished:
        files = FragileFiles()
        files.mkdir("/data")
        files.sync_directory("/")
        shelf = Shelf(files, "/data")
        life = Life(seed, shelf)
        life.write(25)
        life.now = WallMillis(life.now + 1000)
        compact(life.log, below=life.log.end_offset // 2, now=life.now)  # so that tombstones expire
        life.now = WallMillis(life.now + 1000)
        before = kept(life.log)
        end = life.log.end_offset
        newest = latest(before)
        files.left = operation
        try:
            compact(life.log, now=life.now)
            finished = True
        except PowerCut:
            pass
        for in_recovery in (operation % 23, 1 << 60):
            files.crash(life.random.randrange if machine else None)
            files.left = in_recovery
            try:
                log = shelf.open(life.config, clean=False, recovery_point=end, now=life.now)
            except PowerCut:
                continue
            files.left = 1 << 60
            left = kept(log)
            assert set(left) <= set(before)
            assert log.end_offset == end
            found = latest(left)
            for key, record in newest.items():
                assert found.get(key) == record or (record.value is None and key not in found)
            assert log.verify() == ()
            assert not [name for name in shelf.names() if name.endswith((".cleaned", ".swap"))]
        operation += 1
    assert operation > 40


def test_others_get_their_turn_within_a_batch_too(shelf: Shelf) -> None:
    log = shelf.open(KEYED)
    lead(log, [keyed_batch([(b"%d" % number, b"1") for number in range(1_000)])])
    roll(log)
    plan = log.begin_cleaning(NOW, below=log.end_offset)
    assert plan is not None
    breaths: list[int] = []
    cleaning.run(plan, keys_max=2_000, now_wall=NOW, breathe=breaths.append)
    assert breaths.count(0) == 4 * 10  # both walks find the records, and look at them
    log.close()
