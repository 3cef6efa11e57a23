"""What a consumer tells a node in a session is what the node lacks."""

from __future__ import annotations

from cotidal.messages.rpc.fetch import FetchPartition
from cotidal.sim.workloads.fetch_session import FetchSession
from cotidal.values import TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


def at(offset: int) -> FetchPartition:
    return FetchPartition(partition=0, fetch_offset=offset)


def begun() -> FetchSession:
    session = FetchSession()
    session.tell({A: at(0), B: at(0)})
    session.on_answer(7)
    return session


def test_the_first_fetch_names_everything() -> None:
    told = FetchSession().tell({A: at(0), B: at(0)})
    assert (told.session_id, told.session_epoch) == (0, 0)
    assert list(told.asked) == [A, B]


def test_later_ones_name_what_changed_and_what_is_forgotten() -> None:
    told = begun().tell({A: at(5)})
    assert (told.session_id, told.session_epoch) == (7, 1)
    assert told.asked == {A: at(5)}
    assert told.forgotten == (B,)


def test_a_node_that_keeps_no_session_is_told_everything_again() -> None:
    session = FetchSession()
    session.tell({A: at(0)})
    session.on_answer(0)
    assert session.tell({A: at(0)}).session_epoch == 0


def test_after_a_refusal_everything_is_told_and_the_old_session_named() -> None:
    session = begun()
    session.forget()
    told = session.tell({A: at(0), B: at(0)})
    assert (told.session_id, told.session_epoch) == (7, 0)
    assert list(told.asked) == [A, B]


def test_what_may_not_have_arrived_is_told_again() -> None:
    session = begun()
    session.tell({A: at(5), B: at(0)})
    session.repeat()
    told = session.tell({A: at(5), B: at(0)})
    assert told.session_epoch == 1
    assert told.asked == {A: at(5)}
