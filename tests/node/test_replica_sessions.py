"""What a follower leaves unsaid, and when it says everything anew."""

from __future__ import annotations

from cotidal.core.partition.follower import Question
from cotidal.node.replica_sessions import Put, ReplicaSession, Wording, terms
from cotidal.node.sessions import EPOCH_MAX
from cotidal.values import BrokerEpoch, LeaderEpoch, Offset, TopicPartition, Uuid

ID = Uuid(b"topic id of 16 b")
A, B, C = (TopicPartition("orders", number) for number in range(3))
ME = BrokerEpoch(7)


def put(offset: int, *, is_untold: bool = False) -> Put:
    question = Question(LeaderEpoch(4), Offset(offset), LeaderEpoch(4), Offset(0))
    return Put(ID, question, is_untold)


def begun() -> tuple[ReplicaSession, dict[TopicPartition, Put]]:
    """A session whose first fetch was answered."""
    session = ReplicaSession()
    asked = {A: put(0), B: put(5)}
    session.on_answered(session.word(asked, ME), session_id=77, has_news=True)
    return session, asked


def test_a_session_begins_with_a_full_fetch() -> None:
    asked = {A: put(0, is_untold=True), B: put(5)}
    assert ReplicaSession().word(asked, ME) == Wording(0, 0, asked, {})


def test_then_only_what_has_changed_is_named_and_what_is_not_asked_for_is_forgotten() -> None:
    session, asked = begun()
    assert session.word(asked, ME) == Wording(77, 1, {}, {})
    moved = {A: put(3), C: put(1, is_untold=True)}
    assert session.word(moved, ME) == Wording(77, 2, moved, {B: ID})
    assert session.word({A: put(4), C: put(1)}, ME).named == {A: put(4)}


def test_a_leader_that_gives_no_session_is_told_everything_every_time() -> None:
    session = ReplicaSession()
    asked = {A: put(0)}
    session.on_answered(session.word(asked, ME), session_id=0, has_news=True)
    assert session.word(asked, ME) == Wording(0, 0, asked, {})


def test_a_partition_that_the_leader_takes_for_known_and_we_do_not_ends_the_session() -> None:
    session, asked = begun()
    anew = {**asked, B: put(5, is_untold=True)}
    assert session.word(anew, ME) == Wording(77, 0, anew, {})


def test_whoever_has_registered_anew_says_everything_in_its_own_name() -> None:
    session, asked = begun()
    assert session.word(asked, BrokerEpoch(8)) == Wording(77, 0, asked, {})


def test_after_a_failure_everything_is_said_and_the_old_session_is_named() -> None:
    session, asked = begun()
    session.end()
    full = session.word(asked, ME)
    assert full == Wording(77, 0, asked, {})
    session.on_answered(full, session_id=78, has_news=True)
    assert session.word(asked, ME) == Wording(78, 1, {}, {})


def test_an_answer_of_another_session_ends_this_one() -> None:
    session, asked = begun()
    session.on_answered(session.word(asked, ME), session_id=0, has_news=True)
    assert session.word(asked, ME).is_full


def test_epochs_of_a_session_begin_again_at_one() -> None:
    session, asked = begun()
    session._epoch = EPOCH_MAX
    assert session.word(asked, ME).session_epoch == EPOCH_MAX
    assert session.word(asked, ME).session_epoch == 1


def waits(*, wait_ms: int, lag_ms: int) -> tuple[int, int]:
    """Of a follower with these settings: usually, and where nothing happens."""
    given = {"replica.fetch.wait.max.ms": wait_ms, "replica.lag.time.max.ms": lag_ms}
    agreed = terms(lambda name: given.get(name, 1))
    return agreed.wait_ms, agreed.quiet_wait_ms


def test_where_nothing_happens_a_fetch_waits_longer_but_far_less_than_a_replica_may_lag() -> None:
    assert waits(wait_ms=500, lag_ms=10_000) == (500, 2_000)
    assert waits(wait_ms=500, lag_ms=4_000) == (500, 1_000)
    assert waits(wait_ms=500, lag_ms=1_000) == (500, 500)


def test_a_session_that_has_ended_is_not_quiet() -> None:
    session, asked = begun()
    session.on_answered(session.word(asked, ME), session_id=77, has_news=False)
    assert session.is_quiet
    session.end()
    assert not session.is_quiet
