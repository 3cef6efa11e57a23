"""Snapshots: when, to whom, in pieces, and after a crash."""

from __future__ import annotations

from cotidal.core.quorum import dialogue as said
from cotidal.core.quorum import effects as fx
from cotidal.core.quorum import events as ev
from cotidal.core.quorum.log_view import SnapshotId
from cotidal.errors import ErrorCode
from cotidal.values import LeaderEpoch, Offset
from quorum_bench import NONE, Bench, batch, hint, key, log, snapshot, stored
from quorum_world import voters


def id_of(end: int, epoch: int) -> SnapshotId:
    return SnapshotId(Offset(end), LeaderEpoch(epoch))


def leading(*snapshots: tuple[int, int]) -> Bench:
    """A leader of epoch 6 with ten older records, and these snapshots of them."""
    bench = Bench().start(stored(5), log(*[1] * 4, *[3] * 4, *[5] * 2)).lead()
    bench.fetch(2)
    for end, epoch in snapshots:
        bench.step(ev.SnapshotWritten(snapshot(end, epoch)))
    return bench


def test_a_snapshot_is_suggested_once_when_enough_was_written() -> None:
    bench = Bench(size=1, config={"snapshot_after_bytes": 10}).start()
    bench.propose(9)
    assert bench.of(fx.TakeSnapshot) == []
    bench.propose(1)
    bench.propose(9)
    assert bench.of(fx.TakeSnapshot) == [fx.TakeSnapshot(id_of(13, 1))]
    bench.step(ev.SnapshotWritten(snapshot(13, 1)))
    bench.propose(9)
    assert len(bench.of(fx.TakeSnapshot)) == 1
    bench.propose(1)
    assert len(bench.of(fx.TakeSnapshot)) == 2


def test_a_snapshot_is_suggested_after_a_while() -> None:
    bench = Bench(size=1, config={"snapshot_after_ms": 5_000}).start()
    bench.wait(5_000)
    bench.propose()
    assert bench.of(fx.TakeSnapshot) == [fx.TakeSnapshot(id_of(4, 1))]


def test_the_log_is_kept_from_the_snapshot_before_the_last_one_on() -> None:
    bench = leading((4, 1))
    assert bench.q.log.start_offset == 0
    bench.step(ev.SnapshotWritten(snapshot(7, 3)))
    assert bench.wrote(fx.CleanTo(Offset(4)))
    assert (bench.q.log.start_offset, bench.q.log.start_epoch) == (4, 1)
    bench.step(ev.SnapshotWritten(snapshot(9, 5)))
    assert bench.q.log.start_offset == 7
    assert bench.of(fx.ForgetSnapshot) == [fx.ForgetSnapshot(id_of(4, 1))]


def test_who_asks_below_the_start_is_given_the_newest_snapshot() -> None:
    bench = leading((4, 1), (7, 3))
    reply = bench.fetch(3, offset=2, last_epoch=1)
    assert reply is not None
    assert (reply.snapshot, reply.diverging) == (id_of(7, 3), None)


def test_who_has_nothing_is_given_a_snapshot_though_the_log_is_whole() -> None:
    reply = leading((4, 1)).fetch(3, offset=0, last_epoch=0)
    assert reply is not None
    assert reply.snapshot == id_of(4, 1)


def test_who_is_of_an_older_epoch_than_the_start_is_given_a_snapshot() -> None:
    bench = leading((8, 3), (9, 5))
    reply = bench.fetch(3, offset=11, last_epoch=2)
    assert reply is not None
    assert reply.snapshot == id_of(9, 5)
    other = bench.fetch(3, offset=8, last_epoch=4)
    assert other is not None
    assert other.snapshot == id_of(9, 5)


def test_who_is_exactly_at_the_start_is_given_records() -> None:
    reply = leading((8, 3), (9, 5)).fetch(3, offset=8, last_epoch=3)
    assert reply is not None
    assert reply.records == said.RecordRange(Offset(8), Offset(13))


def chunk(bench: Bench, id_: SnapshotId, position: int, epoch: int = 6) -> said.ChunkReply:
    reply = bench.ask(said.FetchChunk(key(3), LeaderEpoch(epoch), id_, position, 4))
    assert isinstance(reply, said.ChunkReply)
    return reply


def test_a_chunk_is_read_from_where_it_is_asked_for() -> None:
    reply = chunk(leading((4, 1)), id_of(4, 1), 8)
    assert (reply.error, reply.size_bytes, reply.position) == (NONE, 10, 8)
    assert reply.chunk == said.ChunkRange(8, 4)


def test_a_chunk_of_no_snapshot_and_one_past_its_end_are_refused() -> None:
    bench = leading((4, 1))
    assert chunk(bench, id_of(4, 2), 0).error == ErrorCode.SNAPSHOT_NOT_FOUND
    assert chunk(bench, id_of(4, 1), 10).error == ErrorCode.POSITION_OUT_OF_RANGE
    assert chunk(bench, id_of(4, 1), -1).error == ErrorCode.POSITION_OUT_OF_RANGE
    assert chunk(bench, id_of(4, 1), 0, epoch=5).error == ErrorCode.FENCED_LEADER_EPOCH
    assert chunk(bench, id_of(4, 1), 0, epoch=7).error == ErrorCode.UNKNOWN_LEADER_EPOCH


def loading() -> Bench:
    """A follower with an old line of its own that is told to load a snapshot."""
    bench = Bench(config={"chunk_bytes": 4}).start(stored(2), log(1, 2)).follow(epoch=6)
    reply = said.FetchReply(NONE, hint(2, 6), Offset(9), Offset(4), snapshot=id_of(7, 3))
    bench.answer(2, reply)
    return bench


def chunked(bench: Bench, position: int, size: int) -> list[fx.Effect]:
    reply = said.ChunkReply(
        NONE, hint(2, 6), id_of(7, 3), 10, position, said.FetchedChunk(size, f"at {position}")
    )
    return bench.answer(2, reply)


def test_a_snapshot_is_fetched_in_pieces_installed_and_loaded() -> None:
    bench = loading()
    bench.installed[id_of(7, 3)] = snapshot(7, 3, record=voters(1, 2, 3, 4).record())
    for position, size in ((0, 4), (4, 4)):
        effects = chunked(bench, position, size)
        assert bench.asked(said.FetchChunk, effects)[2].position == position + size
    effects = chunked(bench, 8, 2)
    assert [keep.position for keep in bench.of(fx.KeepChunk)] == [0, 4, 8]
    assert bench.wrote(fx.InstallSnapshot(id_of(7, 3)))
    assert bench.of(fx.LoadSnapshot, effects) == [fx.LoadSnapshot(id_of(7, 3))]
    fetch = bench.asked(said.Fetch, effects)[2]
    assert (fetch.offset, fetch.last_epoch) == (7, 3)
    assert bench.q.high_watermark == 7
    assert bench.q.voter_set.ids == (1, 2, 3, 4)


def test_nothing_is_fetched_before_the_snapshot_is_durable() -> None:
    bench = loading()
    bench.hold = True
    effects = chunked(bench, 0, 10)
    assert bench.of(fx.LoadSnapshot, effects) == []
    assert bench.asked(said.Fetch, effects + bench.wait(1_500)) == {}
    bench.installed[id_of(7, 3)] = snapshot(7, 3)
    effects = bench.release()
    assert bench.of(fx.LoadSnapshot, effects) != []
    assert set(bench.asked(said.Fetch, effects)) == {2}


def test_a_snapshot_that_is_gone_is_asked_for_anew() -> None:
    bench = loading()
    chunked(bench, 0, 4)
    gone = said.ChunkReply(ErrorCode.SNAPSHOT_NOT_FOUND, hint(2, 6), id_of(7, 3))
    bench.answer(2, gone)
    assert set(bench.asked(said.Fetch, bench.wait(20))) == {2}
    assert bench.q.log.end_offset == 2


def test_a_snapshot_below_what_is_committed_is_fatal() -> None:
    bench = Bench().start().follow()
    bench.fetched(batch(0, 1, count=9), high_watermark=9)
    reply = said.FetchReply(NONE, hint(2, 1), Offset(9), Offset(4), snapshot=id_of(7, 1))
    effects = bench.answer(2, reply)
    assert len(bench.of(fx.Fatal, effects)) == 1


def test_a_snapshot_overtaken_by_a_fetched_one_is_dropped() -> None:
    bench = loading()
    bench.installed[id_of(7, 3)] = snapshot(7, 3)
    chunked(bench, 0, 10)
    effects = bench.step(ev.SnapshotWritten(snapshot(1, 1)))
    assert bench.of(fx.ForgetSnapshot, effects) == [fx.ForgetSnapshot(id_of(1, 1))]


# after a restart


def test_a_node_starts_from_its_snapshot() -> None:
    facts = snapshot(7, 3, record=voters(1, 2).record())
    bench = Bench().start(stored(3), log(3, 4, start=7), facts)
    assert (bench.q.log.start_offset, bench.q.log.start_epoch) == (7, 3)
    assert bench.q.high_watermark == 7
    assert bench.q.voter_set.ids == (1, 2)
    assert bench.q.voters.is_from_log


def test_a_log_cleaned_by_whole_segments_starts_where_its_snapshot_ends() -> None:
    bench = Bench().start(stored(3), log(1, 1, 3, 3, start=5), snapshot(7, 1), snapshot(8, 3))
    assert (bench.q.log.start_offset, bench.q.log.start_epoch) == (7, 1)
    assert bench.q.high_watermark == 8


def test_an_install_cut_short_by_a_crash_is_done_again() -> None:
    for facts in (log(1, 2), log(1, 1, 1, 1, 1, 1, 2, 2, 2)):
        bench = Bench()
        bench.installed[id_of(7, 3)] = snapshot(7, 3)
        bench.start(stored(3), facts, snapshot(7, 3))
        assert bench.wrote(fx.InstallSnapshot(id_of(7, 3)))
        assert bench.of(fx.LoadSnapshot) == [fx.LoadSnapshot(id_of(7, 3))]
        assert bench.of(fx.ForgetSnapshot) == []
        assert bench.q.log.reach == (3, 7)


def test_time_alone_never_asks_for_a_snapshot_where_the_interval_is_0() -> None:
    bench = Bench(size=1, config={"snapshot_after_ms": 0}).start()
    bench.wait(100_000_000)
    bench.propose()
    assert bench.of(fx.TakeSnapshot) == []


def test_a_node_that_restarts_remembers_how_much_is_in_no_snapshot() -> None:
    facts = log(1, 1)._replace(size_bytes=9)
    bench = Bench(size=1, config={"snapshot_after_bytes": 10}).start(stored(1), facts)
    assert bench.of(fx.TakeSnapshot) == []
    bench.propose(1)
    assert len(bench.of(fx.TakeSnapshot)) == 1


def test_a_snapshot_that_was_fetched_while_it_was_written_is_kept() -> None:
    bench = loading()
    bench.installed[id_of(7, 3)] = snapshot(7, 3)
    chunked(bench, 0, 10)
    effects = bench.step(ev.SnapshotWritten(snapshot(7, 3)))
    assert bench.of(fx.ForgetSnapshot, effects) == []
    assert [facts.id for facts in bench.q.snapshots] == [id_of(7, 3)]


def test_a_snapshot_is_loaded_before_what_was_written_after_it_is_durable() -> None:
    bench = loading()
    bench.hold = True
    chunked(bench, 0, 10)
    bench.vote(3, epoch=9)
    bench.installed[id_of(7, 3)] = snapshot(7, 3)
    effects = bench.release()
    assert bench.of(fx.LoadSnapshot, effects) == [fx.LoadSnapshot(id_of(7, 3))]
    assert bench.pending != []


def test_a_candidate_whose_snapshot_names_other_voters_asks_them_instead() -> None:
    bench = loading()
    bench.hold = True
    chunked(bench, 0, 10)
    bench.wait(2_000)
    assert bench.state == "Prospective"
    bench.installed[id_of(7, 3)] = snapshot(7, 3, record=voters(1, 4, 5).record())
    bench.release()
    assert bench.state == "Unattached"
    bench.hold = False
    bench.pass_deadline()
    assert set(bench.asked(said.Vote, bench.effects[-5:])) == {4, 5}
