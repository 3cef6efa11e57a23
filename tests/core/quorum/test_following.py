"""The follower's log: fetched, cut and committed."""

from __future__ import annotations

from cotidal.core.quorum import dialogue as said
from cotidal.core.quorum import effects as fx
from cotidal.core.quorum import events as ev
from cotidal.core.quorum.log_view import EpochEnd
from cotidal.errors import ErrorCode
from cotidal.messages.records.quorum import Endpoint
from cotidal.values import LeaderEpoch, NodeId, Offset
from quorum_bench import NONE, Bench, batch, hint, key, log, stored
from quorum_world import voters


def diverged(bench: Bench, epoch: int, end: int) -> list[fx.Effect]:
    found = EpochEnd(LeaderEpoch(epoch), Offset(end))
    here = hint(2, bench.q.epoch)
    return bench.answer(2, said.FetchReply(NONE, here, Offset(99), Offset(0), diverging=found))


def refused(bench: Bench, error: ErrorCode, leader: int = -1) -> list[fx.Effect]:
    return bench.answer(2, said.FetchReply(error, hint(leader, bench.q.epoch)))


def test_what_was_fetched_is_on_disk_before_the_next_fetch() -> None:
    bench = Bench().start().follow()
    bench.hold = True
    effects = bench.fetched(batch(0, 1, count=4))
    assert bench.asked(said.Fetch, effects) == {}
    fetch = bench.asked(said.Fetch, bench.release())[2]
    assert (fetch.offset, fetch.last_epoch) == (4, 1)
    assert bench.wrote(fx.AppendFetched(Offset(0), Offset(4), "handle"))


def test_the_high_watermark_reaches_as_far_as_our_own_disk() -> None:
    bench = Bench().start().follow()
    bench.fetched(batch(0, 1, count=4), high_watermark=2)
    bench.hold = True
    bench.fetched(batch(4, 1, count=4), high_watermark=8)
    assert bench.q.high_watermark == 4
    bench.release()
    assert [effect.high_watermark for effect in bench.of(fx.Committed)] == [2, 4, 8]


def test_the_high_watermark_never_moves_back() -> None:
    bench = Bench().start().follow()
    bench.fetched(batch(0, 1, count=4), high_watermark=4)
    bench.fetched(high_watermark=1)
    assert bench.q.high_watermark == 4


def test_a_batch_of_a_later_epoch_is_not_taken() -> None:
    bench = Bench().start().follow(epoch=3)
    bench.fetched(batch(0, 2), batch(1, 3), batch(2, 4), batch(3, 3))
    assert bench.q.log.end_offset == 2


def test_a_batch_that_does_not_follow_is_not_taken() -> None:
    bench = Bench().start().follow(epoch=3)
    bench.fetched(batch(1, 3))
    assert bench.q.log.end_offset == 0
    bench.fetched(batch(0, 3), batch(1, 2))
    assert bench.q.log.end_offset == 1


def test_a_late_answer_of_another_epoch_is_not_taken() -> None:
    bench = Bench().start().follow(2, epoch=1)
    old = bench.q.asks[NodeId(2)]
    bench.follow(2, epoch=2)
    reply = said.FetchReply(
        NONE, hint(2, 1), Offset(1), Offset(0), records=said.FetchedRecords((batch(0, 1),))
    )
    bench.step(ev.Answered(NodeId(2), old, reply))
    assert bench.q.log.end_offset == 0


def test_an_answer_that_comes_twice_is_taken_once() -> None:
    bench = Bench().start().follow()
    ask = bench.q.asks[NodeId(2)]
    bench.fetched(batch(0, 1))
    reply = said.FetchReply(NONE, hint(2, 1), Offset(0), Offset(0), diverging=EpochEnd(0, 0))
    bench.step(ev.Answered(NodeId(2), ask, reply))
    assert bench.q.log.end_offset == 1


def test_a_log_that_went_another_way_is_cut_where_it_parted() -> None:
    bench = Bench().start(stored(3), log(1, 1, 2, 2)).follow(epoch=4)
    effects = diverged(bench, 1, 2)
    assert bench.wrote(fx.TruncateTo(Offset(2)))
    fetch = bench.asked(said.Fetch, effects)[2]
    assert (fetch.offset, fetch.last_epoch) == (2, 1)
    assert bench.q.high_watermark == 0  # the leader's is not ours before we are on its line


def test_a_leader_that_would_cut_what_is_committed_is_fatal() -> None:
    bench = Bench().start().follow()
    bench.fetched(batch(0, 1, count=4), high_watermark=4)
    effects = diverged(bench, 1, 2)
    assert len(bench.of(fx.Fatal, effects)) == 1
    assert not bench.wrote(fx.TruncateTo(Offset(2)))
    assert bench.step(ev.Ticked()) == []
    assert bench.node.next_deadline() is None


def test_voters_that_were_not_committed_go_with_their_record() -> None:
    bench = Bench().start().follow(epoch=1)
    bench.fetched(batch(0, 1), batch(1, 1, voters(1, 2, 3, 4).record()))
    assert bench.q.voter_set.ids == (1, 2, 3, 4)
    bench.follow(3, epoch=2)
    found = EpochEnd(LeaderEpoch(1), Offset(1))
    bench.answer(3, said.FetchReply(NONE, hint(3, 2), Offset(0), Offset(0), diverging=found))
    assert bench.q.voter_set.ids == (1, 2, 3)
    assert bench.of(fx.VotersChanged)[-1].voters.ids == (1, 2, 3)


def test_a_follower_that_has_not_fetched_for_long_prospects() -> None:
    bench = Bench().start().follow()
    bench.wait(1_500)
    bench.fetched()
    bench.wait(1_999)
    assert bench.state == "Follower"
    bench.wait(1)
    assert bench.state == "Prospective"


def test_a_lost_answer_costs_a_question_and_not_an_election() -> None:
    bench = Bench().start().follow()
    assert not bench.asked(said.Fetch, bench.wait(1_499)), "a poll, and a slow link besides"
    assert set(bench.asked(said.Fetch, bench.wait(1))) == {2}
    bench.fetched()
    assert bench.state == "Follower"


def test_a_leader_whose_port_is_closed_is_given_up_at_once() -> None:
    bench = Bench().start().follow()
    bench.fetched()
    bench.step(ev.PeerUnreachable(NodeId(2), refused=True))
    bench.wait(60)
    assert bench.state == "Prospective"


def test_a_leader_that_says_it_is_none_has_resigned() -> None:
    bench = Bench().start().follow()
    bench.fetched()
    refused(bench, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    bench.wait(60)
    assert bench.state == "Prospective"


def test_a_leader_that_is_busy_is_asked_again_a_little_later() -> None:
    bench = Bench().start().follow()
    effects = refused(bench, ErrorCode.UNKNOWN_LEADER_EPOCH)
    assert bench.asked(said.Fetch, effects) == {}
    assert set(bench.asked(said.Fetch, bench.wait(20))) == {2}


def test_a_follower_told_of_a_later_leader_goes_there() -> None:
    bench = Bench().start().follow()
    here = said.Hint(NodeId(3), LeaderEpoch(8), ())
    bench.answer(2, said.FetchReply(ErrorCode.FENCED_LEADER_EPOCH, here))
    assert (bench.state, bench.q.epoch, bench.q.leader_id) == ("Follower", 8, 3)


def test_an_observer_follows_whom_it_is_told_of_and_asks_around_when_that_one_is_gone() -> None:
    bench = Bench(4).start()
    bench.wait(20)
    (peer,) = bench.q.asks
    here = said.Hint(NodeId(2), LeaderEpoch(3), ())
    effects = bench.answer(peer, said.FetchReply(ErrorCode.FENCED_LEADER_EPOCH, here))
    assert bench.state == "Follower"
    assert bench.asked(said.Fetch, effects)[2].replica == key(4)
    bench.step(ev.PeerUnreachable(NodeId(2), refused=True))
    assert bench.state == "Unattached"
    assert bench.asked(said.Fetch, bench.wait(5_000)) != {}


def test_an_observer_that_learns_of_no_leader_asks_the_next_one_soon() -> None:
    bench = Bench(4).start()
    bench.wait(20)
    asked = list(bench.q.asks)
    bench.answer(asked[0], said.FetchReply(ErrorCode.NOT_LEADER_OR_FOLLOWER, hint(-1, 0)))
    (second,) = bench.asked(said.Fetch, bench.wait(bench.q.config.ask_around_ms))
    assert second != asked[0]
    bench.step(ev.PeerUnreachable(NodeId(second), refused=True))
    (third,) = bench.asked(said.Fetch, bench.wait(bench.q.config.ask_around_ms))
    assert {asked[0], second, third} == {1, 2, 3}
    assert bench.asked(said.Fetch, bench.wait(bench.q.config.ask_around_ms)) == {}, "no answer yet"


def test_a_voter_with_other_endpoints_than_its_record_tells_the_leader() -> None:
    mine = (Endpoint("CONTROLLER", "new-host", 9093),)
    bench = Bench(config={"endpoints": mine}).start().follow()
    effects = bench.fetched()
    update = bench.asked(said.UpdateVoter, effects)[2]
    assert (update.key, update.endpoints) == (key(1), mine)
    effects = bench.answer(2, said.MemberReply(NONE, "", hint(2, 1)))
    assert set(bench.asked(said.Fetch, effects)) == {2}
    changed = bench.voters.with_voter(bench.voters.voters[0]._replace(endpoints=mine))
    bench.fetched(batch(0, 1, changed.record()))
    bench.wait(1_900)
    effects = bench.fetched()
    assert bench.asked(said.UpdateVoter, effects) == {}
