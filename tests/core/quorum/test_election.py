"""Who votes for whom, who leads, and how soon: one test per rule."""

from __future__ import annotations

import pytest

from cotidal.core.quorum import dialogue as said
from cotidal.core.quorum import effects as fx
from cotidal.core.quorum import events as ev
from cotidal.core.quorum.states import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Unattached,
)
from cotidal.errors import ErrorCode
from cotidal.messages.records.quorum import Endpoint
from cotidal.values import LeaderEpoch, NodeId
from quorum_bench import NONE, STATES, Bench, hint, key, log, stored
from quorum_world import World

# votes


def test_a_vote_goes_to_a_candidate_whose_log_reaches_as_far() -> None:
    reply = Bench().start(None, log(1, 1)).vote(epoch=2)
    assert reply == said.VoteReply(NONE, hint(-1, 2), True)


@pytest.mark.parametrize(("last_epoch", "end"), [(2, 3), (1, 9)])
def test_a_shorter_log_gets_no_vote(last_epoch: int, end: int) -> None:
    bench = Bench().start(None, log(1, 2, 2, 2))
    reply = bench.vote(epoch=3, last_epoch=last_epoch, end=end)
    assert reply is not None
    assert not reply.granted
    assert bench.q.epoch == 3


def test_a_later_last_epoch_beats_a_longer_log() -> None:
    reply = Bench().start(None, log(1, 2, 2, 2)).vote(epoch=4, last_epoch=3, end=1)
    assert reply is not None
    assert reply.granted


def test_a_vote_is_on_disk_before_it_is_told() -> None:
    bench = Bench().start()
    bench.hold = True
    assert bench.vote(epoch=1) is None
    persist = bench.pending[0]
    assert persist.writes[-1] == fx.WriteState(stored(1, voted=2))
    reply = bench.reply_in(bench.release())
    assert isinstance(reply, said.VoteReply)
    assert reply.granted


def test_one_vote_an_epoch_and_the_same_one_again() -> None:
    bench = Bench().start()
    for candidate, granted in ((2, True), (3, False), (2, True)):
        reply = bench.vote(candidate, epoch=1)
        assert reply is not None
        assert reply.granted is granted
    later = bench.vote(3, epoch=2)
    assert later is not None
    assert later.granted


def test_a_vote_outlives_a_restart() -> None:
    for candidate, granted in ((2, True), (3, False)):
        bench = Bench().start(stored(5, voted=2))
        reply = bench.vote(candidate, epoch=5)
        assert reply is not None
        assert reply.granted is granted


def test_a_vote_outlives_following_and_prospecting_in_its_epoch() -> None:
    bench = Bench().start()
    bench.vote(2, epoch=1)
    bench.follow(2, epoch=1)
    bench.wait(2_000)
    assert bench.state == "Prospective"
    assert bench.q.voted == key(2)
    assert [w for w in bench.written if isinstance(w, fx.WriteState)][-1].state.voted_id == 2


def test_a_stale_epoch_is_fenced_and_told_who_leads() -> None:
    bench = Bench().start().follow(3, epoch=4)
    assert bench.vote(epoch=3) == said.VoteReply(ErrorCode.FENCED_LEADER_EPOCH, hint(3, 4), False)


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_a_higher_epoch_ends_every_state(state: type) -> None:
    bench = STATES[state]()
    reply = bench.vote(3, epoch=9)
    assert reply is not None
    assert reply.granted
    assert (bench.state, bench.q.epoch) == ("Unattached", 9)


def test_a_vote_meant_for_another_directory_is_an_invalid_key() -> None:
    bench = Bench().start()
    reply = bench.vote(epoch=1, voter=key(1, life=7))
    assert reply == said.VoteReply(ErrorCode.INVALID_VOTER_KEY, hint(-1, 1), False)
    assert bench.q.voted is None
    wrong_node = bench.vote(epoch=1, voter=key(3))
    assert wrong_node is not None
    assert wrong_node.error == ErrorCode.INVALID_VOTER_KEY


@pytest.mark.parametrize("state", [Candidate, Leader, Follower, Resigned])
def test_no_vote_in_an_epoch_that_has_ones_own_or_a_leader(state: type) -> None:
    bench = STATES[state]()
    reply = bench.vote(3, epoch=bench.q.epoch)
    assert reply is not None
    assert not reply.granted


def test_a_prospective_gives_its_vote_and_stops_prospecting() -> None:
    bench = Bench().start(stored(3)).prospect()
    reply = bench.vote(3, epoch=3)
    assert reply is not None
    assert reply.granted
    assert bench.state == "Unattached"


def test_a_prospective_that_knows_a_leader_of_the_epoch_does_not_vote_in_it() -> None:
    bench = Bench().start().follow(2, epoch=3)
    bench.wait(2_000)
    reply = bench.vote(3, epoch=3)
    assert reply is not None
    assert not reply.granted


def test_a_broker_never_votes() -> None:
    reply = Bench(4, config={"can_vote": False}).start().vote(epoch=1)
    assert reply is not None
    assert not reply.granted


# PreVote


@pytest.mark.parametrize("state", [Unattached, Prospective, Candidate, Resigned])
def test_a_pre_vote_is_granted_by_log_and_writes_nothing(state: type) -> None:
    bench = STATES[state]()
    before = list(bench.written)
    for candidate in (2, 3):
        reply = bench.vote(candidate, epoch=bench.q.epoch, pre_vote=True)
        assert reply is not None
        assert reply.granted
    assert bench.written == before
    assert bench.state == state.__name__


def test_a_pre_vote_is_refused_to_a_shorter_log() -> None:
    bench = Bench().start(stored(2), log(1, 2))
    reply = bench.vote(epoch=2, last_epoch=2, end=1, pre_vote=True)
    assert reply is not None
    assert not reply.granted


def test_a_leader_refuses_pre_votes() -> None:
    bench = Bench().start().lead()
    reply = bench.vote(epoch=1, last_epoch=1, end=99, pre_vote=True)
    assert reply == said.VoteReply(NONE, hint(1, 1), False)
    assert bench.state == "Leader"


def test_a_follower_refuses_pre_votes_once_it_has_fetched() -> None:
    bench = Bench().start().follow()
    early = bench.vote(3, epoch=1, pre_vote=True)
    assert early is not None
    assert early.granted
    bench.fetched()
    late = bench.vote(3, epoch=1, pre_vote=True)
    assert late is not None
    assert not late.granted


def test_a_follower_whose_leader_refuses_connections_grants_pre_votes() -> None:
    bench = Bench().start().follow()
    bench.fetched()
    bench.step(ev.PeerUnreachable(NodeId(2), refused=False))
    cut_off = bench.vote(3, epoch=1, pre_vote=True)
    assert cut_off is not None
    assert not cut_off.granted
    bench.step(ev.PeerUnreachable(NodeId(2), refused=True))
    gone = bench.vote(3, epoch=1, pre_vote=True)
    assert gone is not None
    assert gone.granted


def test_a_follower_whose_leader_resigned_grants_pre_votes() -> None:
    bench = Bench().start().follow()
    bench.fetched()
    bench.ask(said.EndEpoch(NodeId(2), LeaderEpoch(1), (key(3), key(1))))
    reply = bench.vote(3, epoch=1, pre_vote=True)
    assert reply is not None
    assert reply.granted


def test_a_voter_that_was_cut_off_does_not_raise_the_epoch() -> None:
    bench = Bench().start().follow(2, epoch=5)
    bench.fetched()
    bench.step(ev.PeerUnreachable(NodeId(2), refused=False))
    bench.wait(60_000)
    assert bench.q.epoch == 5
    assert bench.q.voted is None


def test_only_a_prospective_becomes_candidate() -> None:
    bench = Bench().start(stored(4)).prospect()
    assert bench.q.epoch == 4
    effects = bench.grant(2)
    assert bench.state == "Candidate"
    assert (bench.q.epoch, bench.q.voted) == (5, key(1))
    votes = bench.asked(said.Vote, effects)
    assert [(vote.epoch, vote.pre_vote) for vote in votes.values()] == [(5, False)] * 2
    writes = [effect for effect in effects if isinstance(effect, fx.Persist | fx.Ask)]
    assert isinstance(writes[0], fx.Persist)


def test_a_candidate_whose_time_runs_out_asks_again_before_it_raises_the_epoch() -> None:
    bench = Bench().start().stand()
    bench.wait(2_000)
    assert bench.state == "Prospective"
    assert (bench.q.epoch, bench.q.voted) == (1, key(1))


def test_a_candidate_that_lost_waits_before_it_tries_again() -> None:
    bench = Bench().start().stand()
    bench.grant(2, 3, granted=False)
    assert bench.state == "Candidate"
    deadline = bench.node.next_deadline()
    assert deadline is not None
    assert 1 <= deadline - bench.now <= 1_001
    bench.pass_deadline()
    assert bench.state == "Prospective"


def test_a_prospective_that_lost_goes_back_to_its_leader() -> None:
    bench = Bench().start().follow()
    bench.wait(2_000)
    for peer in (2, 3):
        bench.answer(peer, said.VoteReply(NONE, hint(2, 1), False))
    assert bench.state == "Follower"


def test_an_answer_from_another_state_is_not_counted() -> None:
    bench = Bench().start().prospect()
    old = bench.q.asks[NodeId(3)]
    bench.grant(2)
    assert bench.state == "Candidate"
    bench.step(ev.Answered(NodeId(3), old, said.VoteReply(NONE, hint(-1, 0), True)))
    assert bench.state == "Candidate"


def test_an_answer_counts_once() -> None:
    bench = Bench(size=5).start().prospect()
    ask = bench.q.asks[NodeId(2)]
    for _ in range(3):
        bench.step(ev.Answered(NodeId(2), ask, said.VoteReply(NONE, hint(-1, 0), True)))
    assert bench.state == "Prospective"
    bench.grant(3)
    assert bench.state == "Candidate"


# leading


def test_a_majority_of_votes_makes_the_leader_which_writes_its_epoch_first() -> None:
    bench = Bench().start().lead()
    written = [write for write in bench.written if isinstance(write, fx.AppendControl)]
    assert [type(record).__name__ for record in written[0].records] == [
        "LeaderChangeMessage",
        "KRaftVersionRecord",
        "VotersRecord",
    ]
    assert bench.of(fx.BecameLeader) == [fx.BecameLeader(LeaderEpoch(1), bench.q.log.start_offset)]


def test_later_leaders_do_not_repeat_the_voters() -> None:
    bench = Bench().start().lead()
    control = tuple(
        (offset, record)
        for offset, record in enumerate(
            next(w for w in bench.written if isinstance(w, fx.AppendControl)).records
        )
    )
    again = Bench().start(stored(1, leader=1, voted=1), log(1, 1, 1)._replace(control=control))
    again.lead()
    written = [write for write in again.written if isinstance(write, fx.AppendControl)]
    assert len(written[0].records) == 1


def test_static_voters_are_told_without_directories() -> None:
    bench = Bench(version=0).start().lead()
    records = next(w for w in bench.written if isinstance(w, fx.AppendControl)).records
    assert [record.version for record in records] == [0]


def test_the_only_voter_leads_at_once() -> None:
    bench = Bench(size=1).start()
    assert bench.state == "Leader"


def test_every_voter_is_told_who_leads_and_again_after_half_a_fetch_time_out() -> None:
    bench = Bench().start().stand()
    effects = bench.grant(2)
    assert set(bench.asked(said.BeginEpoch, effects)) == {2, 3}
    assert bench.asked(said.BeginEpoch, bench.wait(999)) == {}
    assert set(bench.asked(said.BeginEpoch, bench.wait(1))) == {2, 3}


def test_who_has_fetched_since_is_not_told_again() -> None:
    bench = Bench().start().lead()
    bench.wait(600)
    bench.fetch(2)
    assert set(bench.asked(said.BeginEpoch, bench.wait(400))) == {3}
    assert set(bench.asked(said.BeginEpoch, bench.wait(1_000))) == {2, 3}


# restarts


def test_who_led_before_a_restart_does_not_lead_that_epoch_again() -> None:
    bench = Bench().start(stored(5, leader=1, voted=1), log(5))
    assert (bench.state, bench.q.epoch) == ("Resigned", 5)
    bench.lead()
    assert bench.q.epoch == 6


def test_the_only_voter_leads_the_next_epoch_after_a_restart() -> None:
    bench = Bench(size=1).start(stored(5, leader=1, voted=1), log(5))
    assert (bench.state, bench.q.epoch) == ("Leader", 6)


def test_who_voted_for_itself_before_a_restart_is_candidate_again() -> None:
    bench = Bench().start(stored(5, voted=1))
    assert (bench.state, bench.q.epoch) == ("Candidate", 5)


def test_a_file_older_than_the_log_is_not_believed() -> None:
    bench = Bench().start(stored(3, leader=1, voted=1), log(4))
    assert (bench.state, bench.q.epoch) == ("Unattached", 4)
    assert bench.q.voted is None


def test_who_followed_before_a_restart_follows_again() -> None:
    bench = Bench().start(stored(5, leader=2))
    assert bench.state == "Follower"
    assert set(bench.asked(said.Fetch, bench.effects)) == {2}


def test_a_wiped_disk_with_the_same_id_is_no_voter() -> None:
    bench = Bench(life=1).start()
    bench.connect(2, 3)
    bench.wait(30_000)
    assert bench.state == "Unattached"
    assert not bench.q.is_voter


def test_an_observer_asks_around_and_never_stands() -> None:
    bench = Bench(4).start()
    effects = bench.wait(5_000)
    assert set(bench.asked(said.Fetch, effects)) == {1, 2, 3}
    assert bench.state == "Unattached"
    assert bench.asked(said.Vote, effects) == {}


# resigning


def test_a_leader_that_resigns_names_its_successors_by_their_logs() -> None:
    bench = Bench(size=4).start().lead()
    bench.propose(5)
    bench.fetch(3, offset=8)
    bench.fetch(4, offset=3)
    effects = bench.step(ev.ShutdownAsked())
    ends = bench.asked(said.EndEpoch, effects)
    assert ends[2].successors == (key(3), key(4), key(2))
    assert bench.state == "Resigned"
    assert bench.of(fx.Stopped) == []
    for peer in (2, 3, 4):
        bench.answer(peer, said.EpochReply(NONE, hint(-1, 1)))
    assert bench.of(fx.Stopped) == [fx.Stopped()]


def test_a_stopping_leader_does_not_wait_for_ever() -> None:
    bench = Bench().start().lead()
    bench.step(ev.ShutdownAsked())
    bench.wait(2_000)
    assert bench.of(fx.Stopped) == [fx.Stopped()]
    bench.wait(60_000)
    assert bench.state == "Unattached"


def test_the_first_successor_tries_at_once_and_the_others_wait_ever_longer() -> None:
    waits = []
    for node in (2, 3, 4, 5):
        bench = Bench(node, size=5).start().follow(1)
        bench.fetched(leader=1)
        bench.ask(said.EndEpoch(NodeId(1), LeaderEpoch(1), tuple(key(n) for n in (2, 3, 4, 5))))
        role = bench.q.role
        waits.append(0 if isinstance(role, Prospective) else role.deadline - bench.now)
    assert waits[0] == 0
    assert 40 <= waits[1] <= 60
    assert 80 <= waits[2] <= 100
    assert 160 <= waits[3] <= 180


def test_the_end_of_an_epoch_is_told_by_its_leader_only() -> None:
    bench = Bench().start().follow(2)
    reply = bench.ask(said.EndEpoch(NodeId(3), LeaderEpoch(1), (key(1),)))
    assert reply == said.EpochReply(ErrorCode.INVALID_REQUEST, hint(2, 1))
    assert bench.state == "Follower"
    stale = bench.ask(said.EndEpoch(NodeId(2), LeaderEpoch(0), ()))
    assert stale == said.EpochReply(ErrorCode.FENCED_LEADER_EPOCH, hint(2, 1))


def test_a_resigned_leader_names_nobody_as_leader() -> None:
    bench = Bench().start().resign()
    assert bench.fetch() == said.FetchReply(ErrorCode.NOT_LEADER_OR_FOLLOWER, hint(-1, 1))


# being told who leads


def test_two_leaders_of_one_epoch_are_not_believed() -> None:
    bench = Bench().start().follow(2)
    begin = said.BeginEpoch(NodeId(3), key(1), LeaderEpoch(1), ())
    assert bench.ask(begin) == said.EpochReply(ErrorCode.INVALID_REQUEST, hint(2, 1))


def test_the_beginning_of_an_old_epoch_is_fenced() -> None:
    bench = Bench().start().follow(2, epoch=4)
    begin = said.BeginEpoch(NodeId(3), key(1), LeaderEpoch(3), ())
    assert bench.ask(begin) == said.EpochReply(ErrorCode.FENCED_LEADER_EPOCH, hint(2, 4))


def test_an_epoch_begun_for_another_directory_is_an_invalid_key() -> None:
    begin = said.BeginEpoch(NodeId(3), key(1, life=2), LeaderEpoch(3), ())
    reply = Bench().start().ask(begin)
    assert isinstance(reply, said.EpochReply)
    assert reply.error == ErrorCode.INVALID_VOTER_KEY


def test_a_refused_pre_vote_that_names_the_leader_is_enough_to_follow_it() -> None:
    bench = Bench().start().prospect()
    bench.answer(3, said.VoteReply(NONE, hint(2, 0), False))
    assert bench.state == "Follower"
    assert bench.of(fx.LeaderKnown)[-1].leader_id == 2


# how soon


def test_a_voter_connected_to_a_majority_does_not_wait_for_its_time_out() -> None:
    bench = Bench().start()
    assert (bench.node.next_deadline() or 0) - bench.now >= 1_000
    bench.connect(2)
    assert (bench.node.next_deadline() or 0) - bench.now <= 20


def test_the_turn_of_a_voter_is_its_rank_by_log_then_id() -> None:
    bench = Bench(2).start(None, log(1, 1))
    bench.vote(3, epoch=1, last_epoch=1, end=5, pre_vote=True)
    bench.connect(1, 3)
    first = (bench.node.next_deadline() or 0) - bench.now
    assert first <= 60  # set when only node 1 was connected: one stride
    later = Bench(2).start(None, log(1, 1))
    later.vote(1, epoch=1, last_epoch=1, end=1, pre_vote=True)
    later.connect(1)
    assert (later.node.next_deadline() or 0) - later.now <= 20  # node 1's log is shorter


def test_who_gave_its_vote_waits_for_the_one_it_gave_it_to() -> None:
    bench = Bench().start()
    bench.vote(2, epoch=1)
    bench.connect(2, 3)
    assert (bench.node.next_deadline() or 0) - bench.now >= 1_000


def test_a_voter_nobody_wants_does_not_ask_without_pause() -> None:
    """Cut off from the leader only: the others refuse its PreVotes for as long as that lasts."""
    bench = Bench().start().follow(2)
    bench.connect(2, 3)
    bench.fetched()
    bench.step(ev.PeerUnreachable(NodeId(2), refused=False))
    tries = 0
    end = bench.now + 60_000
    while bench.now < end:
        bench.pass_deadline()
        if bench.state == "Prospective" and NodeId(3) in bench.q.asks:
            tries += 1
            bench.answer(3, said.VoteReply(NONE, hint(2, 1), False))
    assert 10 < tries < 240
    assert bench.q.epoch == 1


def test_of_two_survivors_that_refused_each_other_none_waits_for_the_dead() -> None:
    bench = Bench().start().stand()
    bench.step(ev.PeerUnreachable(NodeId(3), refused=True))
    assert bench.state == "Candidate"
    asked_at = bench.now
    bench.grant(2, granted=False)
    while bench.state == "Candidate":
        bench.pass_deadline()
    assert bench.now - asked_at < 300


@pytest.mark.parametrize("seed", range(40))
def test_a_cluster_has_a_leader_soon_after_it_starts(seed: int) -> None:
    world = World(seed)
    for machine in world.machines.values():
        world.start(machine)
    assert world.run(400, until=lambda: world.leader() is not None)


@pytest.mark.parametrize("seed", range(40))
def test_a_dead_leader_is_replaced_soon_after_its_port_is_closed(seed: int) -> None:
    world = World(seed)
    world.heal()
    world.settle()
    dead = world.leader()
    assert dead is not None
    world.run(1_000)
    world.crash(dead)
    assert world.run(400, until=lambda: world.leader() is not None)


@pytest.mark.parametrize("seed", range(20))
def test_an_isolated_leader_resigns_and_the_others_elect_one(seed: int) -> None:
    world = World(seed)
    world.heal()
    world.settle()
    isolated = world.leader()
    assert isolated is not None
    world.partition({isolated.id})
    world.run(3_100)
    assert isolated.leads is None
    assert world.run(3_000, until=lambda: world.leader() is not None)
    epoch = isolated.node.state.epoch if isolated.node else 0
    world.run(20_000)
    assert isolated.node is not None
    assert isolated.node.state.epoch == epoch
    world.heal()
    world.settle()


def test_a_voter_that_was_removed_while_away_goes_back_to_a_leader_that_answers() -> None:
    """Nobody tells it of the leader: only voters get BeginEpoch, and it only believes to be one."""
    bench = Bench().start(stored(4), log(1, 4)).follow(leader=2, epoch=5)
    bench.step(ev.PeerUnreachable(NodeId(2), False))  # a question that was not answered in time
    bench.prospect()
    for peer in (2, 3):
        bench.answer(peer, said.VoteReply(NONE, hint(2, 5), False))
    assert bench.state == "Follower"
    assert bench.q.leader_id == 2


def test_a_voter_that_was_removed_while_away_goes_back_to_a_leader_that_it_does_not_know() -> None:
    """A leader that became a voter meanwhile: no connection to it is kept, and none is missed."""
    bench = Bench().start(stored(5, leader=4), log(1, 4))
    bench.step(ev.PeerUnreachable(NodeId(4), True))
    bench.prospect()
    there = (Endpoint("CONTROLLER", "c4", 9093),)
    for peer in (2, 3):
        bench.answer(peer, said.VoteReply(NONE, hint(4, 5)._replace(endpoints=there), False))
    assert bench.state == "Follower"
    ask = bench.of(fx.Ask)[-1]
    assert (ask.peer, ask.endpoints, type(ask.message)) == (4, there, said.Fetch)
