"""Voters come and go one at a time: every precondition, and when it takes effect."""

from __future__ import annotations

from cotidal.core.quorum import dialogue as said
from cotidal.core.quorum import effects as fx
from cotidal.core.quorum import events as ev
from cotidal.core.quorum.states import Leader
from cotidal.core.quorum.voters import key_of
from cotidal.errors import ErrorCode
from cotidal.messages.records.quorum import Endpoint, KRaftVersionFeature, KRaftVersionRecord
from cotidal.values import LeaderEpoch, NodeId
from quorum_bench import NONE, Bench, batch, hint, key

BOTH = KRaftVersionFeature(0, 1)


def add(node: int, *, life: int = 0, versions: KRaftVersionFeature = BOTH) -> said.AddVoter:
    return said.AddVoter(key(node, life), (), versions, 1_000)


def remove(node: int, *, life: int = 0) -> said.RemoveVoter:
    return said.RemoveVoter(key(node, life), 1_000)


def update(node: int, *, epoch: int = 1, life: int = 0) -> said.UpdateVoter:
    endpoints = (Endpoint("CONTROLLER", "here", 9093),)
    return said.UpdateVoter(LeaderEpoch(epoch), key(node, life), endpoints, BOTH, 1_000)


def ready() -> Bench:
    """A leader of three that has committed in its epoch; node 4 is an observer, caught up."""
    bench = Bench().start().lead()
    bench.fetch(2)
    bench.fetch(4)
    return bench


def error(bench: Bench, change: said.MemberChange) -> ErrorCode:
    reply = bench.ask(change)
    assert isinstance(reply, said.MemberReply)
    assert bool(reply.text) is (reply.error != NONE)
    return reply.error


def test_a_new_voter_counts_from_the_append_and_is_told_at_the_commit() -> None:
    bench = ready()
    assert bench.ask(add(4)) is None
    asked = bench.requests
    assert bench.q.voter_set.ids == (1, 2, 3, 4)
    bench.fetch(2)
    assert bench.reply_in(bench.effects, asked) is None  # two of four are no majority
    bench.fetch(4)
    reply = bench.reply_in(bench.effects, asked)
    assert reply == said.MemberReply(NONE, "", hint(1, 1))
    assert bench.of(fx.VotersChanged)[-1].voters.ids == (1, 2, 3, 4)
    assert {peer for peer, _ in bench.of(fx.KeepConnected)[-1].peers} == {2, 3, 4}


def test_who_is_content_with_the_leaders_disk_is_told_then() -> None:
    bench = ready()
    bench.hold = True
    assert bench.ask(add(4)._replace(ack_when_committed=False)) is None
    reply = bench.reply_in(bench.release())
    assert isinstance(reply, said.MemberReply)
    assert reply.error == NONE
    bench.hold = False
    bench.fetch(2)
    bench.fetch(4)
    assert len([e for e in bench.of(fx.Answer) if isinstance(e.message, said.MemberReply)]) == 1


def test_one_change_at_a_time() -> None:
    bench = ready()
    bench.ask(add(4))
    assert error(bench, remove(3)) == ErrorCode.REQUEST_TIMED_OUT
    bench.fetch(2)
    bench.fetch(4)
    assert bench.ask(remove(3)) is None


def test_a_change_that_is_late_is_told_so_and_still_blocks_others() -> None:
    bench = ready()
    bench.ask(add(4))
    late = bench.reply_in(bench.wait(1_000))
    assert isinstance(late, said.MemberReply)
    assert late.error == ErrorCode.REQUEST_TIMED_OUT
    assert error(bench, remove(3)) == ErrorCode.REQUEST_TIMED_OUT
    assert bench.q.voter_set.ids == (1, 2, 3, 4)


def test_no_change_before_the_leader_has_committed_in_its_epoch() -> None:
    bench = Bench().start().lead()
    assert error(bench, remove(3)) == ErrorCode.REQUEST_TIMED_OUT


def test_static_voters_do_not_change() -> None:
    bench = Bench(version=0).start().lead()
    bench.fetch(2)
    for change in (add(4), remove(3), update(3)):
        assert error(bench, change) == ErrorCode.UNSUPPORTED_VERSION


def raise_to(
    level: int, *, old: int | None = None, unknown: int | None = None
) -> said.RaiseVersion:
    """``old``, ``unknown``: a voter that supports less, or that has not said what it supports."""
    supported = tuple(
        (NodeId(node), KRaftVersionFeature(0, 0) if node == old else BOTH)
        for node in (2, 3)
        if node != unknown
    )
    return said.RaiseVersion(level, supported, 1_000)


def static() -> Bench:
    """A leader of three static voters; both others have fetched from it."""
    bench = Bench(version=0).start().lead()
    bench.fetch(2)
    bench.fetch(3, life=5)
    return bench


def test_raising_the_version_makes_each_voter_the_disk_that_it_fetched_to() -> None:
    bench = static()
    assert bench.ask(raise_to(1)) is None
    asked = bench.requests
    latest = bench.q.voters.latest
    assert latest.kraft_version == 1
    assert [key_of(voter) for voter in latest.voters.voters] == [key(1), key(2), key(3, 5)]
    raised = bench.written[-1]
    assert isinstance(raised, fx.AppendControl)
    assert raised.records == (KRaftVersionRecord(kraft_version=1), latest.voters.record())
    assert bench.reply_in(bench.effects, asked) is None
    bench.fetch(3, life=0)  # a wiped disk: it was a voter a moment ago, and is none now
    assert bench.reply_in(bench.effects, asked) is None
    bench.fetch(2)
    assert bench.reply_in(bench.effects, asked) == said.MemberReply(NONE, "", hint(1, 1))
    assert bench.ask(remove(3, life=5)) is None


def test_what_a_leader_knows_of_its_voters_outlives_the_raise() -> None:
    bench = static()
    bench.propose()
    bench.fetch(2)
    before = bench.q.high_watermark
    bench.ask(raise_to(1))
    assert bench.q.high_watermark == before
    assert bench.state == "Leader"
    role = bench.q.role
    assert isinstance(role, Leader)
    assert role.progress.keys() == {key(2), key(3, 5)}
    assert role.progress[key(2)].end_offset == before


def test_a_raise_taken_back_leaves_the_voters_static() -> None:
    bench = static()
    end = bench.q.log.end_offset
    bench.ask(raise_to(1))
    assert bench.q.voters.latest.kraft_version == 1
    bench.q.voters.cut_from(end)
    assert bench.q.voters.latest.kraft_version == 0
    assert bench.q.voter_set.has(key(3, life=9))


def test_nothing_is_raised_that_is_there_already_or_only_asked_about() -> None:
    for bench, ask in (
        (static(), raise_to(0)),
        (ready(), raise_to(1)),
        (static(), raise_to(1)._replace(validate_only=True)),
    ):
        before = bench.q.log.end_offset
        assert error(bench, ask) == NONE
        assert bench.q.log.end_offset == before


def test_a_version_that_some_voter_does_not_know_is_not_raised_to() -> None:
    for ask in (raise_to(2), raise_to(1, old=3), raise_to(1, unknown=2)):
        assert error(static(), ask) == ErrorCode.INVALID_UPDATE_VERSION
    assert error(ready(), raise_to(0)) == ErrorCode.INVALID_UPDATE_VERSION


def test_a_voter_whose_disk_is_not_known_keeps_the_version_from_being_raised() -> None:
    bench = Bench(version=0).start().lead()
    bench.fetch(2)
    assert error(bench, raise_to(1)) == ErrorCode.REQUEST_TIMED_OUT
    bench.fetch(3)
    assert bench.ask(raise_to(1)) is None


def test_an_id_votes_once_whatever_its_directory() -> None:
    assert error(ready(), add(3)) == ErrorCode.DUPLICATE_VOTER
    assert error(ready(), add(3, life=1)) == ErrorCode.DUPLICATE_VOTER


def test_a_new_voter_supports_the_version_in_force() -> None:
    old = KRaftVersionFeature(0, 0)
    assert error(ready(), add(4, versions=old)) == ErrorCode.INVALID_REQUEST


def test_a_new_voter_has_caught_up_lately() -> None:
    bench = ready()
    assert error(bench, add(5)) == ErrorCode.REQUEST_TIMED_OUT
    bench.fetch(5, offset=1)
    assert error(bench, add(5)) == ErrorCode.REQUEST_TIMED_OUT
    bench.fetch(5)
    assert bench.ask(add(5)) is None


def test_who_caught_up_long_ago_does_not_become_a_voter() -> None:
    bench = Bench(config={"caught_up_within_ms": 1_000}).start().lead()
    bench.fetch(2)
    bench.fetch(4)
    bench.wait(1_001)
    assert error(bench, add(4)) == ErrorCode.REQUEST_TIMED_OUT


def test_only_a_voter_of_that_directory_is_removed_or_updated() -> None:
    for change in (remove(4), remove(3, life=1), update(4), update(3, life=1)):
        assert error(ready(), change) == ErrorCode.VOTER_NOT_FOUND


def test_the_only_voter_is_not_removed() -> None:
    bench = Bench(size=1).start()
    assert error(bench, remove(1)) == ErrorCode.INVALID_REQUEST


def test_a_change_asked_of_a_follower_is_sent_to_the_leader() -> None:
    reply = Bench().start().follow(2).ask(add(4))
    assert isinstance(reply, said.MemberReply)
    assert (reply.error, reply.hint) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, hint(2, 1))


def test_an_update_of_another_epoch_is_refused() -> None:
    assert error(ready(), update(3, epoch=0)) == ErrorCode.FENCED_LEADER_EPOCH
    assert error(ready(), update(3, epoch=2)) == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_an_update_changes_where_a_voter_is_found() -> None:
    bench = ready()
    bench.ask(update(3))
    found = bench.q.voter_set.find(key(3).node_id)
    assert found is not None
    assert found.endpoints == (Endpoint("CONTROLLER", "here", 9093),)
    assert bench.q.voter_set.ids == (1, 2, 3)


def test_a_removed_voter_is_still_served() -> None:
    bench = ready()
    bench.ask(remove(3))
    bench.fetch(2)
    assert bench.q.voter_set.ids == (1, 2)
    reply = bench.fetch(3, offset=0, last_epoch=0)
    assert reply is not None
    assert reply.records is not None
    observers = bench.node.view(bench.q.role.since).observers
    assert [replica.key for replica in observers] == [key(3), key(4)]


def test_a_removed_leader_leads_uncounted_until_the_commit_and_resigns() -> None:
    bench = ready()
    assert bench.ask(remove(1)) is None
    asked = bench.requests
    assert bench.state == "Leader"
    bench.fetch(2)
    assert bench.state == "Leader"  # of two voters one is no majority, and we do not count
    bench.propose()
    bench.fetch(3, offset=4)
    assert bench.state == "Resigned"
    reply = bench.reply_in(bench.effects, asked)
    assert isinstance(reply, said.MemberReply)
    assert reply.error == NONE
    bench.wait(10_000)
    assert bench.state == "Unattached"
    assert bench.q.epoch == 1


def test_a_leader_deposed_during_a_change_says_that_it_does_not_know() -> None:
    bench = ready()
    bench.ask(add(4))
    asked = bench.requests
    bench.vote(3, epoch=5, last_epoch=9)
    reply = bench.reply_in(bench.effects, asked)
    assert isinstance(reply, said.MemberReply)
    assert reply.error == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_the_time_of_a_new_voter_in_the_check_of_the_quorum_begins_when_it_is_added() -> None:
    bench = Bench(size=1).start()
    bench.fetch(2)
    bench.wait(60_000)
    bench.ask(add(2))
    assert bench.state == "Leader"
    bench.wait(2_999)
    assert bench.state == "Leader"
    bench.wait(1)
    assert bench.state == "Resigned"
    assert bench.step(ev.Ticked()) is not None


# controllers that join by themselves


def newcomer(node: int = 4, *, life: int = 0, **config: object) -> Bench:
    """A controller that is no voter; 1, 2 and 3 are, and 2 leads."""
    bench = Bench(node, life=life, config={"joins": True, **config})
    return bench.start().follow(leader=2, epoch=1)


def test_a_controller_that_has_caught_up_asks_to_vote() -> None:
    bench = newcomer()
    effects = bench.fetched(batch(0, 1, count=3), high_watermark=2)
    assert bench.asked(said.AddVoter, effects) == {}
    effects = bench.fetched(high_watermark=3)
    asked = bench.asked(said.AddVoter, effects)[2]
    assert (asked.key, asked.ack_when_committed) == (bench.q.me, False)
    effects = bench.answer(2, said.MemberReply(ErrorCode.REQUEST_TIMED_OUT, "busy", said.Hint()))
    assert set(bench.asked(said.Fetch, effects)) == {2}
    assert bench.asked(said.AddVoter, bench.fetched(high_watermark=3)) == {}  # not so soon again
    bench.now += bench.q.config.fetch_timeout_ms
    assert set(bench.asked(said.AddVoter, bench.fetched(high_watermark=3))) == {2}


def test_a_controller_that_votes_already_or_must_not_does_not_ask() -> None:
    for bench in (newcomer(joins=False), newcomer(can_vote=False), newcomer(1)):
        bench.fetched(batch(0, 1, count=3), high_watermark=3)
        bench.fetched(high_watermark=3)
        assert bench.asked(said.AddVoter, bench.effects) == {}


def test_a_controller_with_a_new_disk_has_its_old_vote_removed_first() -> None:
    bench = newcomer(1, life=9)
    bench.fetched(batch(0, 1, count=3), high_watermark=3)
    effects = bench.fetched(high_watermark=3)
    assert bench.asked(said.RemoveVoter, effects)[2].key == key(1)
