"""What a consumer tells a node in a session is what the node lacks."""

from __future__ import annotations

import pytest

from cotidal.messages.rpc.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchResponse,
    PartitionData,
)
from cotidal.sim.violation import Violation
from cotidal.sim.workloads.fetch_session import FetchSession
from cotidal.values import TopicPartition
from simulated import calm_run

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


def test_an_epoch_that_was_skipped_is_out_of_turn() -> None:
    session = begun()
    session.skip()
    session.tell({A: at(5), B: at(0)})
    assert session.is_out_of_turn


def test_where_an_answer_was_lost_nobody_can_tell_which_epoch_is_due() -> None:
    session = begun()
    session.tell({A: at(5), B: at(0)})
    session.repeat()
    session.skip()
    session.tell({A: at(5), B: at(0)})
    assert not session.is_sure
    assert not session.is_out_of_turn
    session.forget()
    session.tell({A: at(5), B: at(0)})
    assert session.is_sure


def test_a_consumer_that_is_served_out_of_turn_says_so() -> None:
    consumer = next(each for each in calm_run().consumers if each._sessions)
    assert consumer._sessions is not None
    address, session = next(iter(consumer._sessions.items()))
    session.skip()
    with pytest.raises(Violation, match="skipped an epoch"):
        consumer._on_reply(address, {}, FetchResponse(session_id=session._id))


def test_a_consumer_that_is_told_of_what_it_did_not_ask_for_says_so() -> None:
    consumer = calm_run().consumers[0]
    told = FetchableTopicResponse(topic="orders", partitions=(PartitionData(partition_index=0),))
    with pytest.raises(Violation, match="is told of orders-0"):
        consumer._on_reply(consumer.anyone(), {}, FetchResponse(responses=(told,)))
