"""Snapshots of the metadata log as files: whole or not there, and the newest that can be read."""

from __future__ import annotations

import pytest

from cotidal.log.contract import LogConfig
from cotidal.log.failure import DamagedSnapshot
from cotidal.log.memory import MemoryFiles
from cotidal.log.metadata_snapshots import FORMATTED, SnapshotKey, key_of
from cotidal.log.metadata_store import MetadataStore
from cotidal.messages.records.metadata import TopicRecord
from cotidal.messages.records.quorum import VotersRecord
from cotidal.values import LeaderEpoch, Offset, Uuid, WallMillis
from cotidal.wire.metadata_batch import encode_metadata_batch
from cotidal.wire.metadata_snapshot import encode_metadata_snapshot
from tests.log.shelf import NOW, Shelf, memory_shelf


def key(end: int, epoch: int = 1) -> SnapshotKey:
    return SnapshotKey(Offset(end), LeaderEpoch(epoch))


def pieces(name: str = "orders", epoch: int = 1) -> list[bytes]:
    return list(
        encode_metadata_snapshot(
            [TopicRecord(name, Uuid(b"t" * 16))],
            control=(),
            epoch=LeaderEpoch(epoch),
            log_wall=WallMillis(1),
            wall=WallMillis(2),
        )
    )


def open_store(shelf: Shelf) -> MetadataStore:
    return MetadataStore(shelf.filesystem, shelf.root, LogConfig(), clean=False, now_wall=NOW)


def append(store: MetadataStore, count: int) -> None:
    for _ in range(count):
        batch = encode_metadata_batch(
            [TopicRecord("t", Uuid(b"t" * 16))],
            base_offset=store.log.end_offset,
            leader_epoch=LeaderEpoch(1),
            control=False,
            wall=NOW,
        )
        store.append(batch, LeaderEpoch(1), NOW)
    store.flush()


def write(store: MetadataStore, at: SnapshotKey, name: str = "orders") -> int:
    store.snapshots.begin(at, pieces(name))
    return store.finish_snapshot(at, NOW)


def damage(shelf: Shelf, at: SnapshotKey) -> None:
    path = f"{shelf.root}/__cluster_metadata-0/{at.name}.checkpoint"
    data = bytearray(shelf.filesystem.read(path))
    data[-3] ^= 1
    shelf.filesystem.write(path, bytes(data))


def test_names_are_kafkas():
    assert key(4711, 12).name == "00000000000000004711-0000000012"
    assert key_of("00000000000000004711-0000000012.checkpoint") == key(4711, 12)
    for other in (
        "00000000000000004711-0000000012.checkpoint.part",
        "leader-epoch-checkpoint",
        "00000000000000004711.log",
        "00000000000000004711.checkpoint",
    ):
        assert key_of(other) is None


def test_a_snapshot_is_read_back_after_a_restart(shelf):
    store = open_store(shelf)
    append(store, 5)
    size = write(store, key(4))
    shelf.restart()
    found = open_store(shelf).load_snapshots()
    (snapshot,) = found.snapshots
    assert (snapshot.key, snapshot.size_bytes, found.damaged) == (key(4), size, ())
    assert snapshot.batches[1].records == (TopicRecord("orders", Uuid(b"t" * 16)),)


def test_only_the_newest_is_read_and_what_formatting_left(shelf):
    store = open_store(shelf)
    append(store, 9)
    for at in (FORMATTED, key(3), key(7)):
        write(store, at)
    found = store.load_snapshots().snapshots
    assert [each.key for each in found] == [FORMATTED, key(3), key(7)]
    assert [bool(each.batches) for each in found] == [True, False, True]


def test_one_that_is_being_written_is_not_there_and_is_swept_away(shelf):
    store = open_store(shelf)
    append(store, 5)
    store.snapshots.begin(key(4), pieces())
    store.snapshots.keep_piece(key(5), 0, b"half of it")
    shelf.restart()
    store = open_store(shelf)
    assert store.load_snapshots() == ((), ())
    names = shelf.filesystem.listdir(f"{shelf.root}/__cluster_metadata-0")
    assert not [name for name in names if name.endswith(".part")]


def test_a_finished_one_survives_the_machine_and_an_unfinished_one_is_whole_or_not_there():
    for lost in range(40):
        shelf = memory_shelf()
        store = open_store(shelf)
        append(store, 9)
        write(store, key(4))
        store.snapshots.begin(key(7), pieces())
        assert isinstance(shelf.filesystem, MemoryFiles)
        shelf.filesystem.crash(lambda n, lost=lost: min(n - 1, lost))
        found = open_store(shelf).load_snapshots()
        assert ([each.key for each in found.snapshots], found.damaged) == ([key(4)], ())


def test_pieces_in_their_order_become_a_snapshot(shelf):
    store = open_store(shelf)
    whole = b"".join(pieces("theirs"))
    store.snapshots.keep_piece(key(9), 0, b"of an attempt that was given up")
    for position in range(0, len(whole), 10):
        store.snapshots.keep_piece(key(9), position, whole[position : position + 10])
    adopted = store.snapshots.adopt(key(9))
    assert adopted.size_bytes == len(whole)
    assert adopted == store.snapshots.read(key(9)) == store.snapshots.adopt(key(9))
    assert store.snapshots.piece(key(9), 10, 7) == whole[10:17]
    assert store.snapshots.piece(key(9), len(whole) - 2, 7) == whole[-2:]


def test_a_gap_between_pieces_is_refused(shelf):
    store = open_store(shelf)
    store.snapshots.keep_piece(key(9), 0, b"0123")
    with pytest.raises(DamagedSnapshot, match="ends at 4 before 5"):
        store.snapshots.keep_piece(key(9), 5, b"5678")


def test_pieces_that_make_no_snapshot_never_get_its_name(shelf):
    store = open_store(shelf)
    store.snapshots.keep_piece(key(9), 0, b"".join(pieces())[:-1])
    with pytest.raises(DamagedSnapshot, match="is damaged"):
        store.snapshots.adopt(key(9))
    assert store.snapshots.listed() == []


def test_a_damaged_one_is_named_and_passed_over_while_the_log_reaches_back(shelf):
    store = open_store(shelf)
    append(store, 9)
    write(store, key(3), "old")
    write(store, key(7), "new")
    damage(shelf, key(7))
    found = store.load_snapshots()
    assert [each.key for each in found.snapshots] == [key(3)]
    assert found.snapshots[0].batches[1].records[0].name == "old"
    (sentence,) = found.damaged
    assert "00000000000000000007-0000000001.checkpoint is damaged" in sentence
    assert store.load_snapshots().damaged == ()  # it is put aside


def test_a_damaged_one_that_is_needed_is_an_error_that_says_what_to_do(shelf):
    store = open_store(shelf)
    append(store, 9)
    write(store, key(3))
    write(store, key(7))
    store.clean(Offset(7), NOW)
    damage(shelf, key(7))
    with pytest.raises(DamagedSnapshot, match=r"begins at 7.*is damaged.*format it"):
        store.load_snapshots()
    assert key(7) in store.snapshots.listed()  # left where it is


def test_a_damaged_one_of_formatting_is_an_error_unless_a_newer_one_is_there(shelf):
    store = open_store(shelf)
    append(store, 9)
    write(store, FORMATTED)
    damage(shelf, FORMATTED)
    with pytest.raises(DamagedSnapshot, match="is damaged"):
        store.load_snapshots()
    write(store, key(3))
    assert [each.key for each in store.load_snapshots().snapshots] == [key(3)]


def test_what_formatting_left_is_never_dropped(shelf):
    store = open_store(shelf)
    for at in (FORMATTED, key(3)):
        store.snapshots.begin(at, pieces())
        store.snapshots.finish(at)
        store.snapshots.forget(at)
    store.snapshots.forget(key(4))
    assert store.snapshots.listed() == [FORMATTED]


def test_the_log_goes_on_in_a_new_segment_so_that_the_old_one_can_go(shelf):
    store = open_store(shelf)
    for end in (3, 6, 9):
        append(store, 3)
        write(store, key(end))
    assert store.log.segment_bases == (0, 3, 6, 9)
    store.clean(Offset(6), NOW)
    assert (store.log.start_offset, store.log.segment_bases) == (6, (6, 9))
    shelf.restart()
    names = shelf.filesystem.listdir(f"{shelf.root}/__cluster_metadata-0")
    assert [name for name in names if name.endswith(".log")] == [
        "00000000000000000006.log",
        "00000000000000000009.log",
    ]
    again = open_store(shelf)
    assert (again.log.start_offset, again.log.end_offset) == (6, 9)
    assert [batch.base_offset for batch in again.batches()] == [6, 7, 8]


def test_a_snapshot_takes_the_place_of_the_log(shelf):
    store = open_store(shelf)
    append(store, 5)
    store.start_at(Offset(40))
    assert (store.log.start_offset, store.log.end_offset) == (40, 40)
    append(store, 1)
    shelf.restart()
    again = open_store(shelf)
    assert (again.log.start_offset, again.log.end_offset) == (40, 41)


def test_formatting_says_who_votes(shelf):
    store = open_store(shelf)
    data = encode_metadata_snapshot(
        (),
        control=(VotersRecord(),),
        epoch=LeaderEpoch(0),
        log_wall=NOW,
        wall=NOW,
    )
    store.snapshots.begin(FORMATTED, data)
    store.snapshots.finish(FORMATTED)
    (found,) = store.load_snapshots().snapshots
    assert VotersRecord() in found.batches[0].records
