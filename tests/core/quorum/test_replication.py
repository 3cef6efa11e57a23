"""The leader's log: what is committed, who is answered when, and when it gives up."""

from __future__ import annotations

import pytest

from cotidal.core.quorum import dialogue as said
from cotidal.core.quorum import effects as fx
from cotidal.core.quorum import events as ev
from cotidal.core.quorum.log_view import EpochEnd
from cotidal.errors import ErrorCode
from cotidal.values import LeaderEpoch, NodeId, Offset
from quorum_bench import NONE, Bench, hint, key, log, stored


def committed(bench: Bench) -> list[int]:
    return [effect.high_watermark for effect in bench.of(fx.Committed)]


# the high watermark


def test_a_record_is_committed_when_a_majority_has_fetched_beyond_it() -> None:
    bench = Bench(size=5).start().lead()
    bench.propose(2)
    bench.fetch(2)
    assert committed(bench) == []
    bench.fetch(3)
    assert committed(bench) == [5]


def test_records_of_earlier_epochs_wait_for_one_of_this_epoch() -> None:
    """Raft, figure 8: a full log of an old epoch on a majority is not committed by counting."""
    bench = Bench().start(stored(3), log(1, 1, 2)).lead()
    bench.fetch(2, offset=3)
    bench.fetch(3, offset=3)
    assert committed(bench) == []
    bench.fetch(2)
    assert committed(bench) == [6]


def test_the_high_watermark_does_not_follow_a_voter_backwards() -> None:
    bench = Bench().start().lead()
    bench.propose(4)
    bench.fetch(2)
    bench.fetch(2, offset=3)
    bench.fetch(3, offset=3)
    assert committed(bench) == [7]
    assert bench.q.high_watermark == 7


def test_an_observer_does_not_count() -> None:
    bench = Bench().start().lead()
    bench.fetch(4)
    bench.fetch(2, life=3)  # a voter's id on another disk
    assert committed(bench) == []


def test_the_only_voter_commits_when_its_own_disk_has_it() -> None:
    bench = Bench(size=1).start()
    assert committed(bench) == [3]
    bench.hold = True
    bench.propose(2)
    assert committed(bench) == [3]
    bench.release()
    assert committed(bench) == [3, 5]


def test_the_leaders_own_end_counts_only_as_far_as_its_disk() -> None:
    bench = Bench(size=2).start().lead()
    bench.fetch(2)
    bench.hold = True
    bench.propose(2)
    assert bench.fetch(2, offset=3, max_wait_ms=500) is None
    assert committed(bench) == [3]
    effects = bench.release()
    reply = bench.reply_in(effects)
    assert isinstance(reply, said.FetchReply)
    assert reply.records == said.RecordRange(Offset(3), Offset(5))


def test_a_voter_that_claims_more_than_it_was_given_commits_nothing_by_that() -> None:
    bench = Bench().start().lead()
    bench.fetch(2)
    bench.hold = True
    bench.propose(2)
    bench.fetch(2, offset=5)
    bench.fetch(3, offset=5)
    assert committed(bench) == [3]


# fetches


def test_a_fetch_gets_what_is_durable() -> None:
    bench = Bench().start().lead()
    reply = bench.fetch(2, offset=0, last_epoch=0)
    assert reply is not None
    assert reply.records == said.RecordRange(Offset(0), Offset(3))
    assert reply.hint == hint(1, 1)


def test_a_fetch_is_not_held_up_by_records_that_are_being_written() -> None:
    bench = Bench().start().lead()
    bench.hold = True
    bench.propose()
    reply = bench.fetch(2, offset=0, last_epoch=0)
    assert reply is not None
    assert reply.records == said.RecordRange(Offset(0), Offset(3))


def test_a_fetch_at_the_end_waits_for_a_record() -> None:
    bench = Bench().start().lead()
    assert bench.fetch(2, max_wait_ms=500) is None
    reply = bench.reply_in(bench.propose())
    assert isinstance(reply, said.FetchReply)
    assert reply.records == said.RecordRange(Offset(3), Offset(4))


def test_a_fetch_at_the_end_is_answered_when_its_time_is_over() -> None:
    bench = Bench().start().lead()
    assert bench.fetch(2, max_wait_ms=500) is None
    assert bench.reply_in(bench.wait(499)) is None
    reply = bench.reply_in(bench.wait(1))
    assert isinstance(reply, said.FetchReply)
    assert (reply.error, reply.records) == (NONE, None)


def test_a_fetcher_whose_high_watermark_is_behind_is_answered_at_once() -> None:
    bench = Bench().start().lead()
    bench.fetch(2)
    reply = bench.fetch(3, high_watermark=0, max_wait_ms=500)
    assert reply is not None
    assert (reply.high_watermark, reply.records) == (3, None)
    assert bench.fetch(3, high_watermark=3, max_wait_ms=500) is None


def test_a_parked_fetch_hears_of_the_commit() -> None:
    bench = Bench().start().lead()
    assert bench.fetch(4, high_watermark=0, max_wait_ms=500) is None
    parked = bench.requests
    bench.fetch(2)
    reply = bench.reply_in(bench.effects, parked)
    assert isinstance(reply, said.FetchReply)
    assert reply.high_watermark == 3


def test_a_newer_fetch_of_a_replica_replaces_the_parked_one() -> None:
    bench = Bench().start().lead()
    assert bench.fetch(2, max_wait_ms=500) is None
    first = bench.requests
    assert bench.fetch(2, max_wait_ms=500) is None
    assert bench.reply_in(bench.effects, first) is not None
    bench.propose()
    assert bench.reply_in(bench.effects) is not None


def test_polls_that_are_half_over_end_with_whatever_else_happens() -> None:
    bench = Bench().start().lead()
    for replica in (2, 3):
        assert bench.fetch(replica, max_wait_ms=500) is None
    last = bench.requests
    bench.now += 249
    assert bench.of(fx.Answer, bench.step(ev.Ticked())) == []
    bench.now += 1
    answered = bench.of(fx.Answer, bench.step(ev.Ticked()))
    assert [answer.request for answer in answered] == [last - 1, last]


def test_a_poll_with_which_nothing_else_happens_is_answered_when_its_time_is_up() -> None:
    bench = Bench().start().lead()
    assert bench.fetch(2, max_wait_ms=500) is None
    assert bench.of(fx.Answer, bench.wait(499)) == []
    assert bench.of(fx.Answer, bench.wait(1)) != []


@pytest.mark.parametrize(
    ("epoch", "error"),
    [(0, ErrorCode.FENCED_LEADER_EPOCH), (2, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_a_fetch_of_another_epoch_is_refused(epoch: int, error: ErrorCode) -> None:
    bench = Bench().start().lead()
    assert bench.fetch(2, epoch=epoch) == said.FetchReply(error, hint(1, 1))
    assert committed(bench) == []


def test_a_fetch_from_a_follower_is_told_who_leads() -> None:
    bench = Bench().start().follow(3)
    reply = bench.fetch(2)
    assert reply == said.FetchReply(ErrorCode.NOT_LEADER_OR_FOLLOWER, hint(3, 1))


def test_a_log_that_went_another_way_is_told_where_and_not_counted() -> None:
    bench = Bench().start(stored(5), log(1, 1, 3, 3)).lead()
    reply = bench.fetch(2, offset=4, last_epoch=2)
    assert reply is not None
    assert reply.diverging == EpochEnd(LeaderEpoch(1), Offset(2))
    assert reply.records is None
    longer = bench.fetch(3, offset=9, last_epoch=3)
    assert longer is not None
    assert longer.diverging == EpochEnd(LeaderEpoch(3), Offset(4))
    ends = [replica.end_offset for replica in bench.node.view(bench.q.role.since).voters]
    assert ends == [7, -1, -1]


def test_a_negative_offset_is_refused() -> None:
    bench = Bench().start().lead()
    reply = bench.fetch(2, offset=-1, last_epoch=1)
    assert reply is not None
    assert reply.error == ErrorCode.INVALID_REQUEST


def test_a_leader_that_is_deposed_answers_all_that_wait() -> None:
    bench = Bench().start().lead()
    bench.fetch(2, max_wait_ms=500)
    parked = bench.requests
    bench.vote(3, epoch=7, last_epoch=9)
    reply = bench.reply_in(bench.effects, parked)
    assert reply == said.FetchReply(ErrorCode.NOT_LEADER_OR_FOLLOWER, hint(-1, 1))
    assert bench.of(fx.LostLeadership) == [fx.LostLeadership(LeaderEpoch(1))]


# proposals


def test_a_proposal_is_placed_at_the_end_of_the_log() -> None:
    bench = Bench().start().lead()
    bench.propose(2)
    effects = bench.propose(3)
    placed = bench.of(fx.ProposalPlaced, effects)
    assert placed == [fx.ProposalPlaced(("handle", 3), Offset(5), LeaderEpoch(1))]
    assert bench.written[-1] == fx.AppendOwn(Offset(5), LeaderEpoch(1), ("handle", 3))


def test_a_proposal_for_an_epoch_that_is_over_is_refused() -> None:
    bench = Bench().start().lead()
    effects = bench.step(ev.ProposalMade("late", 1, 1, LeaderEpoch(0)))
    assert effects == [fx.ProposalRefused("late", ErrorCode.NOT_LEADER_OR_FOLLOWER)]
    follower = Bench().start().follow()
    effects = follower.step(ev.ProposalMade("late", 1, 1, LeaderEpoch(1)))
    assert effects == [fx.ProposalRefused("late", ErrorCode.NOT_LEADER_OR_FOLLOWER)]


def test_proposals_made_during_a_persist_share_the_next() -> None:
    bench = Bench().start().lead()
    bench.hold = True
    for _ in range(3):
        bench.propose()
    assert [len(persist.writes) for persist in bench.pending] == [1]
    bench.release()
    assert [len(persist.writes) for persist in bench.pending] == [2]


# the check of the quorum


def test_a_leader_without_a_majority_resigns_after_one_and_a_half_fetch_time_outs() -> None:
    bench = Bench().start().lead()
    bench.wait(2_000)
    bench.fetch(3)
    bench.wait(2_999)
    assert bench.state == "Leader"
    effects = bench.wait(1)
    assert bench.state == "Resigned"
    assert set(bench.asked(said.EndEpoch, effects)) == {2, 3}
    assert bench.q.epoch == 1


def test_a_majority_of_five_takes_two_others() -> None:
    bench = Bench(size=5).start().lead()
    bench.wait(2_000)
    bench.fetch(3)
    bench.fetch(7)  # an observer
    bench.wait(1_000)
    assert bench.state == "Resigned"


def test_asking_for_a_snapshot_counts_as_contact() -> None:
    bench = Bench().start().lead()
    for _ in range(4):
        bench.wait(2_000)
        chunk = said.FetchChunk(key(2), bench.q.epoch, (Offset(9), LeaderEpoch(1)), 0, 1)
        bench.ask(chunk)
    assert bench.state == "Leader"


def test_the_only_voter_never_resigns() -> None:
    bench = Bench(size=1).start()
    assert bench.node.next_deadline() is None
    bench.wait(1_000_000)
    assert bench.state == "Leader"


def test_a_resigned_leader_tries_again_in_a_higher_epoch_only() -> None:
    bench = Bench().start().resign()
    bench.wait(2_000)
    assert (bench.state, bench.q.epoch) == ("Prospective", 1)
    bench.lead()
    assert bench.q.epoch == 2


def test_a_voter_that_connects_is_told_who_leads() -> None:
    bench = Bench().start().lead()
    effects = bench.step(ev.PeerConnected(NodeId(3)))
    assert set(bench.asked(said.BeginEpoch, effects)) == {3}


def test_the_leader_shows_how_far_everybody_is() -> None:
    bench = Bench().start().lead()
    bench.fetch(2)
    bench.fetch(9, offset=0, last_epoch=0)
    view = bench.node.view(bench.q.role.since)
    assert [(replica.key, replica.end_offset) for replica in view.voters] == [
        (key(1), 3),
        (key(2), 3),
        (key(3), -1),
    ]
    assert [(replica.key, replica.end_offset) for replica in view.observers] == [(key(9), 0)]


def test_an_observer_not_heard_of_for_long_is_forgotten() -> None:
    bench = Bench(config={"observer_session_ms": 10_000}).start().lead()
    bench.fetch(9)
    for _ in range(6):
        bench.wait(2_000)
        bench.fetch(2)
    assert bench.node.view(bench.q.role.since).observers == ()
