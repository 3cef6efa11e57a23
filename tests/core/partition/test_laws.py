"""Every event in every state: something defined happens, and the replica's promises hold.

Where an event belongs to another role it changes nothing and says nothing. Where it is our own
mistake to bring it (an append that was never asked for, a role while the disk cuts), it is a fault.
Peers are not our own: no question, answer or fetch may ever be one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from cotidal.core.partition import follower as follower_side
from cotidal.core.partition import leader as leader_side
from cotidal.core.partition import nearest, reading
from cotidal.core.partition import replica as replica_module
from cotidal.core.partition import resting as resting_module
from cotidal.core.partition.effects import ProposeIsr, StartOver, Truncate
from cotidal.core.partition.epochs import EpochEnd
from cotidal.core.partition.follower import (
    Answered,
    LeaderEnds,
    Question,
    asks_again,
    follow,
    on_answered,
    on_leader_ends,
    on_log_cut,
    question,
    question_of_ends,
    stop_following,
)
from cotidal.core.partition.isr import propose
from cotidal.core.partition.leader import (
    FollowerFetched,
    IsrAnswered,
    MarkerAsk,
    WriteRules,
    acks_outcome,
    admit_batch,
    admit_delete,
    admit_marker,
    become_leader,
    low_watermark,
    needs_verification,
    on_brokers_changed,
    on_follower_fetched,
    on_isr_answered,
    on_partition_changed,
    shrink_isr,
    stop_leading,
    transaction_refusal,
)
from cotidal.core.partition.nearest import select_read_replica
from cotidal.core.partition.progress import Progress
from cotidal.core.partition.reading import (
    Diverged,
    Granted,
    admit_fetch,
    admit_replica_fetch,
    check_leader_epoch,
    latest_offset,
)
from cotidal.core.partition.replica import Replica, on_log_failed, on_rolled, on_start_moved
from cotidal.core.partition.resting import rest
from cotidal.core.trace import Moment, as_json, line, state_json, state_line
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.batch import TRANSACTIONAL_BIT, Batches
from cotidal.values import (
    ZERO_UUID,
    BrokerEpoch,
    LeaderEpoch,
    Millis,
    NodeId,
    Offset,
    PartitionEpoch,
    ProducerEpoch,
    TopicPartition,
    WallMillis,
)
from headers import header, one_batch
from replicas import (
    ACTIVE,
    appointment,
    epochs_of,
    fetched,
    following,
    isr_answer,
    leading,
    opened,
    write,
)

NOW = Millis(50_000)
RULES = WriteRules(1_000, 2_000, 3_600_000, stamps_time=False)


def opening() -> Replica:
    return Replica(TopicPartition("orders", 0), ZERO_UUID)


def idle() -> Replica:
    return opened(start=2, end=10, hw=6, epochs=((1, 2), (3, 8)))


def leads() -> Replica:
    replica = leading(start=2, end=10, hw=6, epochs=((1, 2), (3, 8)), told=appointment(isr=(1, 2)))
    write(replica, 2)
    return replica


def leads_and_writes() -> Replica:
    replica = leads()
    admit_batch(replica, one_batch(records=2), acks=1, rules=RULES, wall=WallMillis(1_000))
    return replica


def leads_and_proposes() -> Replica:
    replica = leads()
    fetched(replica, 3, 12)
    return replica


def follows() -> Replica:
    return following(start=2, end=10, hw=6, epochs=((1, 2), (3, 8)))


def follows_and_writes() -> Replica:
    replica = follows()
    on_answered(replica, _answer(replica, batches=_batches(10, 2, epoch=5)), NOW)
    return replica


def follows_and_cuts() -> Replica:
    replica = follows()
    on_answered(replica, _answer(replica, diverging=(1, 5)), NOW)
    return replica


def follows_and_is_lost() -> Replica:
    replica = follows()
    on_answered(replica, _answer(replica, error=ErrorCode.OFFSET_OUT_OF_RANGE), NOW)
    return replica


def follows_and_is_fenced() -> Replica:
    replica = follows()
    on_answered(replica, _answer(replica, error=ErrorCode.FENCED_LEADER_EPOCH), NOW)
    return replica


def follows_and_backs_off() -> Replica:
    replica = follows()
    on_answered(replica, _answer(replica, error=ErrorCode.NOT_LEADER_OR_FOLLOWER), NOW)
    return replica


def offline() -> Replica:
    replica = leads()
    on_log_failed(replica, "disk full")
    return replica


STATES = (
    opening,
    idle,
    leads,
    leads_and_writes,
    leads_and_proposes,
    follows,
    follows_and_writes,
    follows_and_cuts,
    follows_and_is_lost,
    follows_and_is_fenced,
    follows_and_backs_off,
    offline,
)


def _batches(base: int, records: int, *, epoch: int) -> Batches:
    placed = header(base_offset=base, records=records)._replace(leader_epoch=LeaderEpoch(epoch))
    return Batches((placed,), bytes(placed.size_bytes))


def _asked(offset: int = 10, *, epoch: int = 5, last: int = 3) -> Question:
    return Question(LeaderEpoch(epoch), Offset(offset), LeaderEpoch(last), Offset(2))


def _answer(
    replica: Replica,
    *,
    error: ErrorCode = ErrorCode.NONE,
    diverging: tuple[int, int] | None = None,
    batches: Batches = Batches((), b""),  # noqa: B008 - a value
    hw: int = 7,
    start: int = 3,
) -> Answered:
    asked = question(replica, NOW) or _asked()
    end = None if diverging is None else EpochEnd(LeaderEpoch(diverging[0]), Offset(diverging[1]))
    return Answered(asked, error, Offset(hw), Offset(start), end, batches)


Event = Callable[[Replica], object]


def told_of_a_leader(replica: Replica) -> object:
    return follow(replica, leader=NodeId(2), epoch=LeaderEpoch(9))


def told_to_stop(replica: Replica) -> object:
    return stop_leading(replica, "moved")


def answers(replica: Replica) -> object:
    """Every kind of answer, current and late."""
    kinds = [
        _answer(replica),
        _answer(replica, batches=_batches(10, 3, epoch=5)),
        _answer(replica, batches=_batches(10, 3, epoch=6)),
        _answer(replica, batches=_batches(4, 30, epoch=5)),
        _answer(replica, hw=1 << 60, start=1 << 59),
        _answer(replica, hw=-1, start=-1),
        *(_answer(replica, error=error) for error in ErrorCode if error is not ErrorCode.NONE),
        *(_answer(replica, diverging=(e, o)) for e, o in product((-1, 0, 1, 2, 3, 9), (-1, 0, 99))),
    ]
    kinds += [kind._replace(question=_asked(epoch=4)) for kind in kinds]
    kinds += [kind._replace(question=_asked(offset=1)) for kind in kinds]
    return tuple(effect for kind in kinds for effect in on_answered(replica, kind, NOW))


def ends_of_the_leader(replica: Replica) -> object:
    asked = question_of_ends(replica, NOW) or _asked()
    ends = [LeaderEnds(asked, Offset(a), Offset(b)) for a, b in ((0, 4), (50, 60), (0, 60))]
    return tuple(effect for each in ends for effect in on_leader_ends(replica, each))


def answers_about_the_isr(replica: Replica) -> object:
    leadership = replica.leadership
    nobody = ProposeIsr((), LeaderEpoch(1), PartitionEpoch(1))
    asked = nobody if leadership is None else leadership.proposal or nobody
    granted = IsrAnswered(
        asked, ErrorCode.NONE, LeaderEpoch(5), PartitionEpoch(10), (NodeId(1), NodeId(2), NodeId(3))
    )
    refusals = [IsrAnswered(asked, error) for error in ErrorCode if error is not ErrorCode.NONE]
    kinds = [granted._replace(asked=nobody), *refusals, granted]
    return tuple(effect for kind in kinds for effect in on_isr_answered(replica, kind, NOW))


def time_passes(replica: Replica) -> object:
    question(replica, NOW)
    return shrink_isr(replica, NOW)


def fetches(replica: Replica) -> object:
    """Of consumers and of replicas, at every sort of place; the granted ones are recorded."""
    effects: tuple[object, ...] = ()
    for offset, current, last in product((0, 2, 7, 12, 99), (-1, 4, 5, 9), (-1, 0, 2, 3, 9)):
        verdict = admit_fetch(
            replica,
            offset=Offset(offset),
            current_epoch=LeaderEpoch(current),
            last_fetched_epoch=LeaderEpoch(last),
            isolation_level=offset % 2,
            followers_serve=last < 0,
        )
        assert isinstance(verdict, Granted | Diverged | Refusal)
        for node in (2, 3, 8):
            verdict = admit_replica_fetch(
                replica,
                node_id=NodeId(node),
                broker_epoch=BrokerEpoch(100 + node),
                offset=Offset(offset),
                current_epoch=LeaderEpoch(current),
                last_fetched_epoch=LeaderEpoch(last),
            )
            effects += (verdict,)
            if isinstance(verdict, Granted):
                assert verdict.below == replica.end_offset
                effects += fetched(replica, node, offset)
    return effects


def writes(replica: Replica) -> object:
    verdicts: list[Moment] = []
    for acks in (-1, 0, 1):
        verdicts.append(
            admit_batch(replica, one_batch(), acks=acks, rules=RULES, wall=WallMillis(1_000))
        )
        outcome = acks_outcome(replica, next_offset=Offset(1))
        assert isinstance(outcome, bool | Refusal)
    return tuple(verdicts)


def transactions(replica: Replica) -> object:
    """A batch that was confirmed, one that was not, then both ends, repeated and late ones too."""
    open_ = one_batch(
        attributes=TRANSACTIONAL_BIT, producer_id=7, producer_epoch=1, base_sequence=0
    )
    header = open_.headers[0]
    needs_verification(replica, header)
    transaction_refusal(replica, header, None)
    guard = replica.producers.transactions.guard(
        header.producer_id, header.producer_epoch, header.base_sequence
    )
    for held in (None, guard, guard):
        admit_batch(replica, open_, acks=1, rules=RULES, wall=WallMillis(1_000), guard=held)
    for epoch, committed, raises_epoch in (
        (0, True, False),
        (1, False, False),
        (2, True, True),
        (2, False, True),
    ):
        ask = MarkerAsk(header.producer_id, ProducerEpoch(epoch), committed, 3, raises_epoch)
        admit_marker(replica, ask, WallMillis(1_000))
    return ()


def deletions(replica: Replica) -> object:
    for offset in (-1, 0, 5, 99):
        verdict = admit_delete(replica, Offset(offset))
        if not isinstance(verdict, Refusal):
            on_start_moved(replica, verdict)
        assert low_watermark(replica) <= replica.start_offset
    refusal = check_leader_epoch(replica, LeaderEpoch(5))
    assert refusal is None or isinstance(refusal, Refusal)
    return ()


def disk_fails(replica: Replica) -> object:
    on_log_failed(replica, "disk full")
    return ()


def told_that_nobody_leads(replica: Replica) -> object:
    stop_following(replica)
    return stop_leading(replica, "nobody leads")


def metadata_changes(replica: Replica) -> object:
    """Other settings, another ISR, fewer replicas: what is older than what is known, and newer."""
    effects: tuple[object, ...] = ()
    if replica.leadership is None:
        return effects
    epoch = replica.leadership.epoch
    for partition_epoch, isr, replicas in (
        (1, (1,), (1, 2, 3)),
        (9, (1, 2), (1, 2, 3)),
        (12, (1, 2, 3), (1, 2, 3)),
        (13, (1,), (1, 3)),
    ):
        told = appointment(
            epoch=epoch, partition_epoch=partition_epoch, isr=isr, replicas=replicas, min_isr=2
        )
        effects += on_partition_changed(replica, told, NOW)
    return effects


def brokers_come_and_go(replica: Replica) -> tuple[object, ...]:
    effects: tuple[object, ...] = ()
    for known in ((), (1,), (1, 2), (1, 2, 3)):
        active = {NodeId(node): BrokerEpoch(100 + node) for node in known}
        effects += on_brokers_changed(replica, active, NOW)
    return effects


def disk_answers(replica: Replica) -> object:
    """It has written all that it was given, or cut the log, or opened it."""
    if replica.offline_reason is not None:
        return ()
    if not replica.opened:
        return on_log_cut(
            replica,
            start_offset=Offset(2),
            end_offset=Offset(5),
            epochs=epochs_of((1, 2)),
            producers=None,
            headers_after=(),
        )
    if replica.leadership is not None:
        return leader_side.on_appended(replica, replica.next_offset, NOW)
    return follower_side.on_appended(replica, replica.next_offset)


def segment_rolls(replica: Replica) -> object:
    return on_rolled(replica)


def consumers_look(replica: Replica) -> object:
    """Of a leader only: whoever asks for them has found out that it leads."""
    if replica.leadership is not None:
        for isolation_level in (0, 1):
            latest = latest_offset(replica, isolation_level=isolation_level)
            assert isinstance(latest, Refusal) or latest <= replica.high_watermark
        racks = {NodeId(1): "a", NodeId(2): "b", NodeId(3): "b"}
        for rack, offset in product(("a", "b", "c", ""), (0, 7, 99)):
            chosen = select_read_replica(
                replica, client_rack=rack, racks=racks, offset=Offset(offset)
            )
            assert chosen in racks
    return ()


def records_are_deleted(replica: Replica) -> object:
    """Up to its high watermark, by retention or after its leader's."""
    if replica.opened:
        on_start_moved(replica, Offset(4))
    return ()


EVENTS: tuple[Event, ...] = (
    records_are_deleted,
    told_of_a_leader,
    told_to_stop,
    told_that_nobody_leads,
    metadata_changes,
    brokers_come_and_go,
    disk_answers,
    segment_rolls,
    consumers_look,
    answers,
    ends_of_the_leader,
    answers_about_the_isr,
    time_passes,
    fetches,
    writes,
    transactions,
    deletions,
    disk_fails,
)


def test_no_transition_is_forgotten() -> None:
    """Whatever takes a replica is tried in every state, or its fault is looked for."""
    tried = Path(__file__).read_text(encoding="utf-8")
    for module in (leader_side, follower_side, replica_module, reading, nearest, resting_module):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            parameters = list(inspect.signature(function).parameters)
            is_own = function.__module__ == module.__name__ and not name.startswith("_")
            if is_own and parameters[:1] == ["replica"] and name not in INSIDE:
                assert f"{name}(" in tried, name


INSIDE = {
    "aborted_up_to",
    "advance_high_watermark",
    "move_high_watermark",
    "on_follower_fetched",
    "on_log_opened",
}
"""Part of other transitions; by way of support.replicas, which every state here begins with."""


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.__name__)
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_every_event_is_defined_in_every_state(state: Callable[[], Replica], event: Event) -> None:
    replica = state()
    replica.check()
    effects = event(replica)
    replica.check()
    assert isinstance(effects, tuple)
    for effect in effects:
        assert line(effect)
        assert as_json(effect)["what"]
        if isinstance(effect, Truncate | StartOver):
            assert effect.offset >= 0
    assert state_line(replica)
    assert state_json(replica)["partition"] == "orders-0"


@pytest.mark.parametrize("second", EVENTS, ids=lambda event: event.__name__)
@pytest.mark.parametrize("first", EVENTS, ids=lambda event: event.__name__)
def test_every_two_events_keep_the_promises(first: Event, second: Event) -> None:
    for state in STATES:
        replica = state()
        first(replica)
        second(replica)
        replica.check()


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.__name__)
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_who_asks_again_asks_the_same(state: Callable[[], Replica], event: Event) -> None:
    """Seen at a glance or thought over: the question is the same, or it is another one."""
    replica = state()
    later = Millis(NOW + 2_000)
    said = [asked for now in (NOW, later) if (asked := question(replica, now)) is not None]
    event(replica)
    others = [_asked(epoch=epoch, last=last) for epoch, last in product((5, 9), (2, 3, 5))]
    for asked, now in product((*said, *others), (NOW, later)):
        assert asks_again(replica, asked, now) == (question(replica, now) == asked)


def rests() -> Replica:
    """It leads, and its followers have everything."""
    replica = leading(start=2, end=10, hw=10, epochs=((1, 2), (3, 8)))
    for node in (2, 3):
        on_follower_fetched(replica, _at_the_end(node), NOW)
    return replica


def _at_the_end(node: int) -> FollowerFetched:
    return FollowerFetched(NodeId(node), Offset(10), Offset(2), ACTIVE[NodeId(node)])


def grows(replica: Replica) -> object:
    return write(replica, 1) if replica.leadership is not None else ()


def goes_on_in_a_later_epoch(replica: Replica) -> object:
    told = appointment(epoch=6)
    return become_leader(replica, told, NOW) if replica.leadership is not None else ()


def _fetches_elsewhere(replica: Replica, told: FollowerFetched) -> object:
    """The same follower, in another session."""
    leadership = replica.leadership
    if leadership is None or told.node_id not in leadership.followers:
        return ()
    return on_follower_fetched(replica, told, NOW)


def has_deleted_more(replica: Replica) -> object:
    return _fetches_elsewhere(replica, _at_the_end(2)._replace(start_offset=Offset(4)))


def lives_another_life(replica: Replica) -> object:
    return _fetches_elsewhere(replica, _at_the_end(2)._replace(broker_epoch=BrokerEpoch(77)))


def has_lost_a_record(replica: Replica) -> object:
    return _fetches_elsewhere(replica, _at_the_end(2)._replace(offset=Offset(9)))


def leaves_the_isr(replica: Replica) -> object:
    """Slow in another session, and the controller has agreed."""
    leadership = replica.leadership
    if leadership is None or leadership.proposal is not None:
        return ()
    propose(leadership, tuple(node for node in leadership.isr if node != 2))
    return on_isr_answered(replica, isr_answer(replica), NOW)


DISTURBANCES = (
    *EVENTS,
    grows,
    leaves_the_isr,
    goes_on_in_a_later_epoch,
    has_deleted_more,
    lives_another_life,
    has_lost_a_record,
)


@pytest.mark.parametrize("second", DISTURBANCES, ids=lambda event: event.__name__)
@pytest.mark.parametrize("first", DISTURBANCES, ids=lambda event: event.__name__)
def test_a_fetch_that_is_not_looked_at_would_have_brought_nothing(
    first: Event, second: Event
) -> None:
    """Two replicas live through the same; a follower fetches from both, and one only glances."""
    glanced, looked = rests(), rests()
    resting = rest(glanced, _at_the_end(2))
    assert resting is not None
    for event in (first, second):
        event(glanced)
        event(looked)
    later = Millis(NOW + 500)
    if resting.goes_on(later):
        verdict = admit_replica_fetch(
            looked,
            node_id=NodeId(2),
            broker_epoch=ACTIVE[NodeId(2)],
            offset=Offset(10),
            current_epoch=LeaderEpoch(5),
            last_fetched_epoch=LeaderEpoch(3),
        )
        assert verdict == Granted(Offset(10))
        assert on_follower_fetched(looked, _at_the_end(2), later) == ()
    assert state_json(glanced) == state_json(looked)
    assert _seen(glanced) == _seen(looked)


def _seen(replica: Replica) -> object:
    if replica.leadership is None:
        return None
    return [
        {name: getattr(progress, name) for name in Progress.__slots__}
        for progress in replica.leadership.followers.values()
    ]


@pytest.mark.parametrize(
    "event",
    [
        told_to_stop,
        told_of_a_leader,
        metadata_changes,
        brokers_come_and_go,
        deletions,
        disk_fails,
        grows,
        leaves_the_isr,
        goes_on_in_a_later_epoch,
        has_deleted_more,
        lives_another_life,
        has_lost_a_record,
    ],
    ids=lambda event: event.__name__,
)
def test_whatever_moves_disturbs_a_rest(event: Event) -> None:
    replica = rests()
    resting = rest(replica, _at_the_end(2))
    assert resting is not None
    assert resting.goes_on(NOW)
    event(replica)
    assert not resting.goes_on(NOW)


@pytest.mark.parametrize(
    "told",
    [
        _at_the_end(2)._replace(offset=Offset(9)),
        _at_the_end(2)._replace(start_offset=Offset(1)),
        _at_the_end(3),
    ],
    ids=["behind the end", "begins before us", "outside the ISR"],
)
def test_who_lacks_something_does_not_rest(told: FollowerFetched) -> None:
    outside = leading(start=2, end=10, hw=10, epochs=((1, 2),), told=appointment(isr=(1, 2)))
    assert rest(outside, told) is None
    assert rest(idle(), told) is None


def test_nobody_rests_before_all_is_committed() -> None:
    assert rest(leading(start=2, end=10, hw=9), _at_the_end(2)) is None


NOT_LEADING = [state for state in STATES if not state.__name__.startswith("leads")]
NOT_FOLLOWING = [state for state in STATES if not state.__name__.startswith("follows")]


@pytest.mark.parametrize("state", NOT_LEADING, ids=lambda state: state.__name__)
def test_who_does_not_lead_takes_no_write_and_proposes_nothing(
    state: Callable[[], Replica],
) -> None:
    replica = state()
    assert all(isinstance(verdict, Refusal) for verdict in _tuple(writes(replica)))
    assert time_passes(replica) == ()
    assert answers_about_the_isr(replica) == ()


@pytest.mark.parametrize("state", NOT_FOLLOWING, ids=lambda state: state.__name__)
def test_who_does_not_follow_asks_nothing_and_takes_no_answer(
    state: Callable[[], Replica],
) -> None:
    replica = state()
    assert question(replica, NOW) is None
    assert question_of_ends(replica, NOW) is None
    assert answers(replica) == ()
    assert ends_of_the_leader(replica) == ()


@pytest.mark.parametrize("state", [opening, follows_and_cuts], ids=lambda state: state.__name__)
def test_no_role_is_taken_with_a_log_that_is_not_there(state: Callable[[], Replica]) -> None:
    with pytest.raises(AssertionError):
        become_leader(state(), appointment(epoch=9), NOW)


@pytest.mark.parametrize(
    "state",
    [idle, leads, leads_and_writes, leads_and_proposes, follows, follows_and_writes],
    ids=lambda state: state.__name__,
)
def test_any_replica_with_a_log_may_lead_a_later_epoch(state: Callable[[], Replica]) -> None:
    replica = state()
    become_leader(replica, appointment(epoch=9), NOW)
    replica.check()
    assert (replica.leader_epoch, replica.following) == (9, None)
    assert replica.epochs.entries[-1] == (9, replica.next_offset)


@pytest.mark.parametrize("state", [idle, leads, follows], ids=lambda state: state.__name__)
def test_the_disk_cannot_have_written_what_it_was_not_given(state: Callable[[], Replica]) -> None:
    for on_appended in (
        lambda replica, end: leader_side.on_appended(replica, end, NOW),
        follower_side.on_appended,
    ):
        with pytest.raises(AssertionError, match="exactly at the end"):
            on_appended(state(), Offset(99))


def _tuple(effects: object) -> tuple[object, ...]:
    assert isinstance(effects, tuple)
    return effects
