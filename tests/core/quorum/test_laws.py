"""Every event in every state does something defined and keeps every promise."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from typing import get_args

import pytest

from cotidal.core.machine import Entropy
from cotidal.core.quorum import dialogue as said
from cotidal.core.quorum import effects as fx
from cotidal.core.quorum import events as ev
from cotidal.core.quorum.log_view import EpochEnd, SnapshotId
from cotidal.core.quorum.node import QuorumNode
from cotidal.core.trace import as_json, line, quorum_line
from cotidal.errors import ErrorCode
from cotidal.messages.records.quorum import KRaftVersionFeature
from cotidal.values import LeaderEpoch, Millis, NodeId, Offset
from quorum_bench import NONE, STATES, Bench, batch, hint, key, log, snapshot, stored

PLACES: dict[str, Callable[[], Bench]] = {
    **{state.__name__: make for state, make in STATES.items()},
    "Observer": lambda: Bench(4).start(),
    "FollowingObserver": lambda: Bench(4).start().follow(),
    "OnlyVoter": lambda: Bench(size=1).start(),
    "StaticVoter": lambda: Bench(version=0).start(),
    "LeaderWithLog": lambda: Bench().start(stored(4), log(1, 1, 2, 4)).lead(),
    "FollowerWithSnapshot": lambda: (
        Bench().start(stored(4), log(4, start=7), snapshot(7, 3)).follow(epoch=5)
    ),
    "RestartedLeader": lambda: Bench().start(stored(5, leader=1, voted=1), log(5)),
    "Stopping": lambda: stopping(),
}
EPOCHS = (-1, 0, 1)
"""Relative to the node's own."""


def stopping() -> Bench:
    bench = Bench().start().lead()
    bench.step(ev.ShutdownAsked())
    return bench


def questions(bench: Bench, delta: int) -> list[said.Question]:
    epoch = LeaderEpoch(bench.q.epoch + delta)
    me, other = bench.q.me, key(3)
    both = KRaftVersionFeature(0, 1)
    some = SnapshotId(Offset(7), LeaderEpoch(3))
    return [
        *(
            said.Vote(other, voter, epoch, LeaderEpoch(last), Offset(end), pre_vote)
            for voter, (last, end), pre_vote in product(
                (me, key(9)), ((0, 0), (99, 99)), (False, True)
            )
        ),
        *(said.BeginEpoch(NodeId(node), me, epoch, ()) for node in (2, 3, me.node_id, -1)),
        *(said.EndEpoch(NodeId(node), epoch, (me, other)) for node in (2, 3, me.node_id)),
        *(
            said.Fetch(key(node), epoch, Offset(offset), LeaderEpoch(last), Offset(0), wait)
            for node, offset, last, wait in product((3, 8), (0, 2, 50), (0, 1, 4), (0, 500))
        ),
        *(said.FetchChunk(other, epoch, some, position, 10) for position in (0, 999)),
        said.AddVoter(key(4), (), both, 100),
        said.RemoveVoter(other, 100),
        said.UpdateVoter(epoch, other, (), both, 100),
        *(
            said.RaiseVersion(level, ((NodeId(2), both), (NodeId(3), both)), 100)
            for level in (0, 1, 2)
        ),
    ]


def replies(bench: Bench, delta: int) -> list[said.Reply]:
    epoch = bench.q.epoch + delta
    some = SnapshotId(Offset(50), LeaderEpoch(max(epoch, 0)))
    out: list[said.Reply] = []
    for leader, error in product(
        (-1, 2, 3, bench.config.node_id),
        (NONE, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ):
        here = hint(leader, epoch)
        records = said.FetchedRecords((batch(bench.q.log.end_offset, max(epoch, 0)),))
        end = EpochEnd(LeaderEpoch(1), Offset(1))
        out += [
            said.VoteReply(error, here, True),
            said.VoteReply(error, here, False),
            said.EpochReply(error, here),
            said.FetchReply(error, here, Offset(0), Offset(0)),
            said.FetchReply(error, here, Offset(99), Offset(0), records=records),
            said.FetchReply(error, here, Offset(0), Offset(0), diverging=end),
            said.FetchReply(error, here, Offset(0), Offset(0), snapshot=some),
            said.ChunkReply(error, here, some, 10, 0, said.FetchedChunk(10)),
            said.MemberReply(error, "", here),
        ]
    return out


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("delta", EPOCHS)
def test_every_question_in_every_state_is_answered_in_the_end(place: str, delta: int) -> None:
    for number in range(len(questions(PLACES[place](), delta))):
        bench = PLACES[place]()
        question = questions(bench, delta)[number]
        epoch = bench.q.epoch
        bench.ask(question)
        asked = bench.requests
        bench.wait(5_000)
        answers = [answer for answer in bench.of(fx.Answer) if answer.request == asked]
        assert len(answers) == 1, question
        assert bench.q.epoch >= epoch


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("delta", EPOCHS)
def test_every_answer_in_every_state_keeps_every_promise(place: str, delta: int) -> None:
    for number in range(len(replies(PLACES[place](), delta))):
        bench = PLACES[place]()
        reply = replies(bench, delta)[number]
        bench.installed = {s.id: s for s in (snapshot(50, e) for e in range(9))}
        voted, epoch, high_watermark = bench.q.voted, bench.q.epoch, bench.q.high_watermark
        for peer in (NodeId(2), NodeId(3)):
            if peer in bench.q.asks:
                bench.answer(peer, reply)
        bench.step(ev.Answered(NodeId(3), ev.AskId(-5), reply))
        assert bench.q.high_watermark >= high_watermark
        assert bench.q.epoch > epoch or bench.q.voted == voted or voted is None
        bench.wait(5_000)


@pytest.mark.parametrize("place", PLACES)
def test_every_other_event_in_every_state_keeps_every_promise(place: str) -> None:
    events: list[ev.Event] = [
        ev.Ticked(),
        ev.ShutdownAsked(),
        ev.ProposalMade("handle", 1, 1, LeaderEpoch(1)),
        ev.ProposalMade("handle", 0, 0, LeaderEpoch(1)),
        *(ev.PeerConnected(NodeId(node)) for node in (2, 3, 9)),
        *(
            ev.PeerUnreachable(NodeId(node), refused)
            for node in (2, 9)
            for refused in (True, False)
        ),
    ]
    for first, second in product(events, events):
        bench = PLACES[place]()
        bench.step(first)
        bench.wait(30)
        bench.step(second)
        bench.wait(5_000)
        if place == "Stopping" or any(isinstance(e, ev.ShutdownAsked) for e in (first, second)):
            assert len(bench.of(fx.Stopped)) == 1


def others(bench: Bench) -> list[ev.Event]:
    """Every event that is neither question nor answer and may come at any time."""
    committed = bench.q.high_watermark
    return [
        ev.Ticked(),
        ev.ShutdownAsked(),
        ev.ProposalMade("handle", 1, 1, bench.q.epoch),
        ev.PeerConnected(NodeId(2)),
        ev.PeerUnreachable(NodeId(2), refused=True),
        ev.SnapshotWritten(snapshot(committed, bench.q.log.epoch_before(committed))),
    ]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("number", range(6))
def test_every_event_while_the_disk_is_busy_reveals_nothing_that_is_not_durable(
    place: str, number: int
) -> None:
    bench = PLACES[place]()
    durable_epoch = bench.q.epoch
    bench.hold = True
    bench.step(ev.ProposalMade("handle", 2, 2, bench.q.epoch))
    bench.vote(3, epoch=bench.q.epoch + 1, last_epoch=99, end=99)
    bench.step(others(bench)[number])
    before = len(bench.effects)
    for question in questions(bench, 1):
        bench.ask(question)
    for effect in bench.effects[before:]:
        if isinstance(effect, fx.Answer):
            assert effect.message.hint.epoch <= durable_epoch
        elif isinstance(effect, fx.Ask) and isinstance(effect.message, said.Vote):
            assert effect.message.epoch <= durable_epoch
    bench.hold = False
    while bench.pending:
        bench.release()
    bench.wait(5_000)


def test_no_event_is_forgotten() -> None:
    """Started comes once, and Persisted only to a Persist: the bench brings both."""
    bench = Bench().start()
    tried = {type(event) for event in others(bench)} | {ev.Asked, ev.Answered}
    assert tried | {ev.Started, ev.Persisted} == set(get_args(ev.Event))


def test_no_question_and_no_answer_is_forgotten() -> None:
    bench = Bench().start()
    assert {type(each) for each in questions(bench, 0)} == set(get_args(said.Question))
    assert {type(each) for each in replies(bench, 0)} == set(get_args(said.Reply))


@pytest.mark.parametrize("place", PLACES)
def test_whatever_a_node_wants_in_any_state_can_be_told(place: str) -> None:
    effects: list[fx.Effect] = []
    for number in range(len(questions(PLACES[place](), 1))):
        bench = PLACES[place]()
        bench.ask(questions(bench, 1)[number])
        bench.wait(5_000)
        effects += bench.effects
        assert quorum_line(bench.q)
    for effect in effects:
        assert "\n" not in line(effect)
        told = as_json(effect)
        assert json.loads(json.dumps(told)) == told


@pytest.mark.parametrize("place", PLACES)
def test_a_deadline_lies_ahead_and_its_tick_moves_it(place: str) -> None:
    bench = PLACES[place]()
    for _ in range(200):
        deadline = bench.node.next_deadline()
        if deadline is None:
            break
        assert deadline > bench.now
        bench.pass_deadline()


def test_the_same_events_have_the_same_effects() -> None:
    runs = []
    for _ in range(2):
        bench = Bench().start()
        bench.connect(2, 3)
        bench.lead()
        bench.propose(3)
        bench.fetch(2)
        bench.wait(10_000)
        runs.append(bench.effects)
    assert runs[0] == runs[1]


def test_lots_come_from_the_entropy_that_was_given() -> None:
    deadlines = set()
    for seed in range(20):
        bench = Bench()
        bench.node = QuorumNode(bench.config, Entropy(seed))
        bench.start()
        deadlines.add(bench.node.next_deadline())
    assert len(deadlines) > 10
    assert all(Millis(2_000) <= (deadline or 0) < 3_000 for deadline in deadlines)
