"""When a node asks its leaders for what its followers lack."""

from __future__ import annotations

from asking import node_with
from cotidal.core.partition.follower import follow, stop_following
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from cotidal.node import fetchers
from cotidal.node.effects import Call
from cotidal.node.hosting import Hosted
from cotidal.node.replica_sessions import Terms
from cotidal.node.state import NodeState
from cotidal.values import BrokerEpoch, LeaderEpoch, NodeId, Offset, TopicPartition

LEADER = NodeId(2)
OTHER = NodeId(3)


def two_followers() -> tuple[NodeState, Hosted, Hosted]:
    """Node 1 follows node 2 in two partitions; the disk writes for the first of them."""
    state = node_with(partitions=2).node._state
    brokers = state.controller.committed.brokers
    for node_id in (LEADER, OTHER):
        brokers[node_id] = brokers[NodeId(1)]._replace(node_id=node_id, epoch=BrokerEpoch(9))
    first, second = (state.hosted[TopicPartition("orders", number)] for number in (0, 1))
    for hosted in (first, second):
        follow(hosted.replica, leader=LEADER, epoch=LeaderEpoch(9))
        fetchers.follow(state, hosted)
    first.replica.next_offset = Offset(3)
    return state, first, second


def asked(state: NodeState) -> dict[int, list[int]]:
    """Partitions that are asked for at the end of this step, by leader."""
    fetchers.pump(state)
    calls = [effect for effect in state.out if isinstance(effect, Call)]
    state.out.clear()
    return {
        call.peer: [each.partition for topic in call.message.topics for each in topic.partitions]
        for call in calls
        if isinstance(call.message, FetchRequest)
    }


def test_all_that_follow_a_leader_wait_for_the_disk_and_are_asked_for_together() -> None:
    state, first, _ = two_followers()
    assert asked(state) == {}
    first.replica.end_offset = first.replica.next_offset
    fetchers.follow(state, first)
    assert asked(state) == {LEADER: [0, 1]}


def test_who_waited_for_a_replica_that_is_taken_away_is_asked_for() -> None:
    state, first, _ = two_followers()
    assert asked(state) == {}
    fetchers.forget(state, first.replica.partition)
    assert asked(state) == {LEADER: [1]}


def test_who_waited_for_a_replica_that_follows_another_leader_now_is_asked_for() -> None:
    state, first, _ = two_followers()
    assert asked(state) == {}
    follow(first.replica, leader=OTHER, epoch=LeaderEpoch(10))
    fetchers.follow(state, first)
    assert asked(state) == {LEADER: [1]}


def asking() -> tuple[NodeState, Hosted, Hosted]:
    """Both partitions are asked for, in full."""
    state, first, second = two_followers()
    first.replica.end_offset = first.replica.next_offset
    fetchers.follow(state, first)
    assert asked(state) == {LEADER: [0, 1]}
    return state, first, second


def told(
    state: NodeState, *partitions: PartitionData, session_id: int = 77, error: int = 0
) -> None:
    """The leader answers what is under way."""
    topic_id = state.hosted[TopicPartition("orders", 0)].replica.topic_id
    topics = (FetchableTopicResponse(topic_id=topic_id, partitions=partitions),)
    response = FetchResponse(error_code=error, session_id=session_id, responses=topics)
    (under_way,) = state.fetches_under_way[LEADER]
    fetchers.on_fetch_answered(state, under_way, response)


def marks(partition: int, high_watermark: int) -> PartitionData:
    return PartitionData(
        partition_index=partition, high_watermark=high_watermark, log_start_offset=0
    )


def said(state: NodeState) -> FetchRequest:
    """The one fetch that leaves at the end of this step."""
    fetchers.pump(state)
    (call,) = (effect for effect in state.out if isinstance(effect, Call))
    state.out.clear()
    assert isinstance(call.message, FetchRequest)
    return call.message


def test_what_has_not_changed_is_not_asked_for_again() -> None:
    state, _, _ = asking()
    told(state, marks(0, 0), marks(1, 0))
    again = said(state)
    assert (again.session_id, again.session_epoch, again.topics) == (77, 1, ())


def test_a_partition_of_which_there_is_no_news_goes_on_as_before() -> None:
    state, first, second = asking()
    told(state, marks(0, 0), marks(1, 0))
    said(state)
    told(state, marks(0, 2))
    assert first.replica.following is not None
    assert second.replica.following is not None
    assert first.replica.high_watermark == 2
    assert second.replica.following.refusals == 0
    assert said(state).session_epoch == 2


def test_in_a_full_answer_a_partition_that_is_passed_over_is_unknown_there() -> None:
    state, _, second = asking()
    told(state, marks(0, 0))
    assert second.replica.following is not None
    assert second.replica.following.refusals == 1


def test_whoever_has_lost_the_session_is_asked_in_full_at_once() -> None:
    state, first, _ = asking()
    told(state, marks(0, 0), marks(1, 0))
    said(state)
    told(state, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, session_id=0)
    again = said(state)
    assert (again.session_id, again.session_epoch) == (77, 0)
    assert [each.partition for topic in again.topics for each in topic.partitions] == [0, 1]
    assert first.replica.following is not None
    assert first.replica.following.refusals == 0


def test_marks_that_were_not_taken_in_are_asked_for_again() -> None:
    state, first, _ = asking()
    told(state, marks(0, 0), marks(1, 0))
    said(state)
    first.replica.epochs.assign(LeaderEpoch(9), start_offset=Offset(1))  # another log than asked
    told(state, marks(0, 2))
    assert first.replica.high_watermark == 0
    assert said(state).session_epoch == 0


def test_a_role_in_another_epoch_begins_without_what_was_told_before() -> None:
    state, first, _ = asking()
    told(state, marks(0, 0), marks(1, 0))
    follow(first.replica, leader=LEADER, epoch=LeaderEpoch(10))
    fetchers.follow(state, first)
    assert said(state).session_epoch == 0


def test_who_had_no_leader_in_between_begins_without_what_was_told_before() -> None:
    state, first, _ = asking()
    told(state, marks(0, 0), marks(1, 0))
    said(state)
    told(state)
    stop_following(first.replica)
    follow(first.replica, leader=LEADER, epoch=LeaderEpoch(9))
    assert said(state).session_epoch == 0


def test_who_is_throttled_since_it_last_asked_thinks_it_over() -> None:
    state, first, _ = asking()
    told(state, marks(0, 0), marks(1, 0))
    said(state)
    told(state, marks(0, 7))
    first.throttled_follower = True
    state.follower_throttle.bound = 1
    state.follower_throttle.rate.record(1_000, state.now)
    forgotten = said(state).forgotten_topics_data
    assert [each.partitions for each in forgotten] == [(0,)]


def test_after_a_lost_call_everything_is_said() -> None:
    state, _, _ = asking()
    told(state, marks(0, 0), marks(1, 0))
    said(state)
    (under_way,) = state.fetches_under_way[LEADER]
    fetchers.on_fetch_failed(state, under_way)
    state.fetch_due[LEADER] = None
    assert said(state).session_epoch == 0


def test_a_fetch_waits_longer_after_an_answer_that_told_nothing() -> None:
    state, first, _ = asking()
    told(state, marks(0, 0), marks(1, 0))
    assert said(state).max_wait_ms == 500, "there were marks"
    told_nothing(state)
    assert said(state).max_wait_ms == 2_000
    told(state, marks(0, 3))
    assert said(state).max_wait_ms == 500
    told_nothing(state)
    first.replica.end_offset = first.replica.next_offset = Offset(4)
    assert said(state).max_wait_ms == 500, "what it asks is new, and its marks are to be heard"


def beside() -> tuple[NodeState, Hosted, Hosted]:
    """The first partition is asked for in a long poll, the second in a brief one beside it."""
    state, first, second = asking()
    told(state, marks(0, 0), marks(1, 0))
    fetchers.forget(state, second.replica.partition)
    assert said(state).max_wait_ms == 500
    fetchers.follow(state, second)
    brief = said(state)
    assert [each.partition for topic in brief.topics for each in topic.partitions] == [1]
    assert brief.max_wait_ms == fetchers.BRIEF_MS
    return state, first, second


def end(state: NodeState, which: int) -> None:
    """One of the polls that are under way ends, with the marks that it has not told yet."""
    under_way = state.fetches_under_way[LEADER][which]
    topic_id = state.hosted[TopicPartition("orders", 0)].replica.topic_id
    news = tuple(marks(each.partition, 0) for each in under_way.wording.named)
    topics = (FetchableTopicResponse(topic_id=topic_id, partitions=news),) if news else ()
    response = FetchResponse(session_id=77 + which, responses=topics)
    fetchers.on_fetch_answered(state, under_way, response)


def test_what_becomes_ready_waits_for_no_long_poll_however_often() -> None:
    state, _, _ = beside()
    for _ in range(3):
        end(state, 1)
        assert said(state).max_wait_ms == fetchers.BRIEF_MS, "the long one is still under way"


def test_who_has_nothing_to_tell_waits_for_the_brief_poll_and_then_one_asks_for_all() -> None:
    state, _, _ = beside()
    end(state, 0)
    assert asked(state) == {}
    end(state, 0)
    assert said(state).max_wait_ms == 500
    (under_way,) = state.fetches_under_way[LEADER]
    assert [each.partition for each in under_way.questions] == [0, 1]


def test_what_was_written_is_acknowledged_at_once_beside_a_brief_poll() -> None:
    state, first, _ = beside()
    end(state, 0)
    first.replica.end_offset = first.replica.next_offset = Offset(4)
    assert said(state).max_wait_ms == fetchers.BRIEF_MS
    end(state, 0)
    assert asked(state) == {}, "the other one is brief now"


def test_a_follower_asks_for_what_the_settings_say() -> None:
    state, _, _ = asking()
    state.fetch_terms = Terms(90, 360, 2, 3_000, 1_000)
    told(state, marks(0, 0), marks(1, 0))
    request = said(state)
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (90, 2, 3_000)
    told(state, marks(0, 3), session_id=0)
    (topic,) = said(state).topics
    assert {each.partition_max_bytes for each in topic.partitions} == {1_000}


def told_nothing(state: NodeState) -> None:
    (under_way,) = state.fetches_under_way[LEADER]
    fetchers.on_fetch_answered(state, under_way, FetchResponse(session_id=77))
