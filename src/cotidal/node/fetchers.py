"""Replica fetchers: this node's followers ask their leaders for what they lack. Pure.

All partitions that follow one leader and are ready are asked for together, in one long poll. A
partition that becomes ready while a poll is under way (a new topic, a leader elsewhere, a back-off
that ended) does not wait for it: a second one runs beside the first, and it is brief, so that
whatever becomes ready next waits for no long poll either. A partition that has nothing to tell
waits until a brief poll has ended; then all are asked for together again. One that is throttled
(throttles.py) is left out for a while.

An answer is taken in by each partition for itself (core.partition.follower); the next question
leaves when the disk has written what came, so that its offset acknowledges it. What has not changed
since the last poll is not said again (replica_sessions.py).
Owns of the state: followed, fetch_due, fetches_under_way, ends_under_way, replica_sessions,
fetcher_wake.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cotidal.api import fetch as api
from cotidal.api import list_offsets as ends_api
from cotidal.core.partition.epochs import EpochEnd
from cotidal.core.partition.follower import (
    Answered,
    LeaderEnds,
    Question,
    asks_again,
    on_answered,
    on_leader_ends,
    question,
    question_of_ends,
)
from cotidal.core.partition.follower import on_appended as follower_appended
from cotidal.errors import ErrorCode
from cotidal.messages.batch import NO_BATCHES
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.fetch import FetchRequest, FetchResponse, PartitionData
from cotidal.messages.rpc.list_offsets import ListOffsetsResponse
from cotidal.node import calls, throttles
from cotidal.node.hosting import Hosted, Said
from cotidal.node.partition_effects import move
from cotidal.node.replica_sessions import Put, ReplicaSession, Wording
from cotidal.node.state import NodeState
from cotidal.values import (
    NO_OFFSET,
    BrokerEpoch,
    LeaderEpoch,
    Millis,
    NodeId,
    Offset,
    TopicPartition,
)

_new: Final = tuple.__new__
UNDER_WAY_MAX: Final = 2
LANES: Final = ("fetch-0", "fetch-1")
BRIEF_MS: Final = 50
"""How long a poll waits beside another one: what becomes ready meanwhile waits for its end."""
TIMEOUT_MS: Final = 3_000
"""A leader that is silent for this long is asked anew; it may be gone."""
ANSWER_MS: Final = 1_000
"""What an answer may take longer than it was asked to wait, however long that is."""
RETRY_MS: Final = 50
"""After a lost or refused connection. The metadata will tell if the leader has moved."""
SESSION_LOST: Final = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)
"""The leader has begun anew, or has given our place to somebody else."""


class FetchCall:
    """A poll under way: which partition asked what, and how that was said."""

    __slots__ = ("is_brief", "lane", "leader", "questions", "session", "wording")

    def __init__(
        self,
        leader: NodeId,
        lane: str,
        questions: dict[TopicPartition, Put],
        session: ReplicaSession,
        broker_epoch: BrokerEpoch,
        *,
        is_brief: bool,
    ) -> None:
        self.leader = leader
        self.lane = lane
        self.is_brief = is_brief
        self.questions = questions
        self.session = session
        self.wording = session.word(questions, broker_epoch)


class EndsCall:
    """Asks a leader where its log ends, then where it begins."""

    __slots__ = ("end_offset", "leader", "partition", "question")

    def __init__(self, leader: NodeId, partition: TopicPartition, asked: Question) -> None:
        self.leader = leader
        self.partition = partition
        self.question = asked
        self.end_offset: Offset | None = None


def follow(state: NodeState, hosted: Hosted) -> None:
    """The partition has taken the role of a follower, or its log has moved."""
    following = hosted.replica.following
    if following is None:
        return
    partition = hosted.replica.partition
    forget(state, partition, but=following.leader)
    state.followed.setdefault(following.leader, {})[partition] = hosted
    state.fetch_due[following.leader] = None


def forget(state: NodeState, partition: TopicPartition, *, but: NodeId | None = None) -> None:
    """It follows nobody (else) any more. Others may have waited for what the disk did for it."""
    for leader, followed in state.followed.items():
        if leader != but and followed.pop(partition, None) is not None:
            state.fetch_due[leader] = None


def pump(state: NodeState) -> None:
    """At the end of a step: ask for everything that is ready."""
    due, state.fetch_due = state.fetch_due, {}
    for leader in due:
        _ask(state, leader)


def on_ticked(state: NodeState) -> None:
    """A back-off has ended, perhaps."""
    if state.fetcher_wake is not None and state.now >= state.fetcher_wake:
        state.fetcher_wake = None
        for leader in state.followed:
            state.fetch_due[leader] = None


def on_fetch_answered(state: NodeState, asked: FetchCall, response: FetchResponse) -> None:
    _end(state, asked)
    state.fetch_due[asked.leader] = None
    error = ErrorCode(response.error_code) if response.error_code else ErrorCode.NONE
    if error is ErrorCode.NONE:
        has_news = bool(response.responses)
        asked.session.on_answered(asked.wording, response.session_id, has_news=has_news)
    else:
        asked.session.end()
        if error in SESSION_LOST and not asked.wording.is_full:
            return  # asked in full at once
    answered = _by_partition(state, response)
    if error is ErrorCode.NONE and asked.wording.is_full:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION  # of those that it passes over
    # Of the others there is no news, where nothing is wrong.
    for partition in answered if error is ErrorCode.NONE else asked.questions:
        put = asked.questions.get(partition)
        hosted = state.hosted.get(partition)
        if put is None or hosted is None:
            continue
        told = answered.get(partition)
        if told is not None and told.records is not None:
            throttles.on_fetched(state, hosted, len(told.records.data))
        move(state, hosted, on_answered, _answer(put.question, told, error), state.now)
        if told is not None and not _has_taken_in(hosted, told):
            asked.session.end()


def _has_taken_in(hosted: Hosted, told: PartitionData) -> bool:
    """The follower knows the marks that the leader will not tell again; after an error it will."""
    following = hosted.replica.following
    return told.error_code != 0 or (
        following is not None
        and following.leader_high_watermark == told.high_watermark
        and following.leader_start == told.log_start_offset
    )


def _by_partition(state: NodeState, response: FetchResponse) -> dict[TopicPartition, PartitionData]:
    names = state.controller.committed.topic_names
    return {
        _new(TopicPartition, (names.get(topic.topic_id, ""), data.partition_index)): data
        for topic in response.responses
        for data in topic.partitions
    }


def on_appended(state: NodeState, hosted: Hosted, end_offset: Offset) -> None:
    """A follower's log has grown: its next question acknowledges that."""
    move(state, hosted, follower_appended, end_offset)
    if hosted.replica.following is not None:
        state.fetch_due[hosted.replica.following.leader] = None


def on_fetch_failed(state: NodeState, asked: FetchCall) -> None:
    """No answer: ask again in a moment, unless metadata says otherwise by then."""
    asked.session.end()
    _end(state, asked)
    _back_off(state)


def on_ends_answered(state: NodeState, asked: EndsCall, response: ListOffsetsResponse) -> None:
    hosted = state.hosted.get(asked.partition)
    found = response.topics[0].partitions[0]
    state.ends_under_way.pop(asked.partition, None)
    if hosted is None:
        return
    if found.error_code != 0:
        refused = _answer(asked.question, None, ErrorCode(found.error_code))
        move(state, hosted, on_answered, refused, state.now)
        state.fetch_due[asked.leader] = None
        return
    if asked.end_offset is None:
        asked.end_offset = Offset(found.offset)
        _send_ends(state, asked, ends_api.EARLIEST)
        return
    ends = LeaderEnds(asked.question, Offset(found.offset), asked.end_offset)
    move(state, hosted, on_leader_ends, ends)
    state.fetch_due[asked.leader] = None


def on_ends_failed(state: NodeState, asked: EndsCall) -> None:
    state.ends_under_way.pop(asked.partition, None)
    _back_off(state)


def _ask(state: NodeState, leader: NodeId) -> None:
    under_way = state.fetches_under_way.setdefault(leader, [])
    endpoint = calls.broker_endpoint(state, leader)
    if len(under_way) >= UNDER_WAY_MAX or endpoint is None:
        return
    questions = _questions(state, leader, under_way[0].questions if under_way else {})
    if not questions:
        return
    taken = {other.lane for other in under_way}
    lane = next(lane for lane in LANES if lane not in taken)
    session = state.replica_sessions.setdefault((leader, lane), ReplicaSession())
    if any(each.is_brief for each in under_way) and not session.has_news(questions):
        return  # its end brings us back
    epoch, is_brief = state.controller.broker_epoch, bool(under_way)
    asked = FetchCall(leader, lane, questions, session, epoch, is_brief=is_brief)
    under_way.append(asked)
    wait_ms = _wait_ms(state, asked)
    calls.call(
        state,
        leader,
        endpoint,
        lane=lane,
        api=ApiKey.FETCH,
        version=api.REPLICA_VERSION,
        message=_request(state, asked.wording, wait_ms),
        timeout_ms=max(TIMEOUT_MS, wait_ms + ANSWER_MS),
        owner=asked,
    )


def _questions(
    state: NodeState, leader: NodeId, elsewhere: Mapping[TopicPartition, Put]
) -> dict[TopicPartition, Put] | None:
    """What every partition that follows this leader and is ready has to ask; ``elsewhere``: what is
    being asked already. None while the disk works for one: what it answers brings us back, and then
    all are asked for together."""
    now = state.now
    questions: dict[TopicPartition, Put] = {}
    for partition, hosted in state.followed.get(leader, {}).items():
        replica = hosted.replica
        following = replica.following
        if following is None or partition in elsewhere:
            continue
        said = hosted.said
        if (
            said is not None
            and said.to is following
            and not hosted.throttled_follower
            and asks_again(replica, said.put.question, now)
        ):
            questions[partition] = said.put
            continue
        if not replica.is_steady and replica.offline_reason is None:
            return None
        put = question(replica, now)
        if put is not None and throttles.postpones(state, hosted):
            state.follower_throttle.held_back += 1
            _wake_at(state, state.follower_throttle.within_at(now))
        elif put is not None:
            is_untold = following.leader_high_watermark == NO_OFFSET
            saying = _new(Put, (replica.topic_id, put, is_untold))
            questions[partition] = saying
            hosted.said = None if is_untold else _new(Said, (following, saying))
        elif following.not_before > now:
            _wake_at(state, following.not_before)
        else:
            lost = question_of_ends(replica, now)
            if lost is not None and partition not in state.ends_under_way:
                _ask_ends(state, leader, partition, lost)
    return questions


def _wait_ms(state: NodeState, asked: FetchCall) -> int:
    terms = state.fetch_terms
    if asked.is_brief:
        return min(BRIEF_MS, terms.wait_ms)
    # A new question has its marks to hear.
    is_quiet = asked.session.is_quiet and not asked.wording.named
    return terms.quiet_wait_ms if is_quiet else terms.wait_ms


def _request(state: NodeState, wording: Wording, wait_ms: int) -> FetchRequest:
    terms = state.fetch_terms
    return api.replica_request(
        [(put.topic_id, at.partition, put.question) for at, put in wording.named.items()],
        [(topic_id, at.partition) for at, topic_id in wording.forgotten.items()],
        session_id=wording.session_id,
        session_epoch=wording.session_epoch,
        node_id=state.config.node_id,
        broker_epoch=state.controller.broker_epoch,
        max_wait_ms=wait_ms,
        min_bytes=terms.min_bytes,
        max_bytes=terms.max_bytes,
        partition_max_bytes=terms.partition_max_bytes,
    )


def _answer(put: Question, told: PartitionData | None, error: ErrorCode) -> Answered:
    if told is None:
        return Answered(put, error, Offset(-1), Offset(-1), None, NO_BATCHES)
    diverging = None
    if told.diverging_epoch.end_offset >= 0:
        diverging = EpochEnd(
            LeaderEpoch(told.diverging_epoch.epoch), Offset(told.diverging_epoch.end_offset)
        )
    batches = told.records or NO_BATCHES
    error = ErrorCode(told.error_code) if told.error_code else ErrorCode.NONE
    if batches.fault is not None and not batches.headers:
        error = ErrorCode.CORRUPT_MESSAGE  # nothing of it can be used: not to be asked at once
    marks = (Offset(told.high_watermark), Offset(told.log_start_offset))
    return _new(Answered, (put, error, *marks, diverging, batches))


def _ask_ends(state: NodeState, leader: NodeId, partition: TopicPartition, put: Question) -> None:
    _send_ends(state, EndsCall(leader, partition, put), ends_api.LATEST)


def _send_ends(state: NodeState, asked: EndsCall, timestamp: int) -> None:
    endpoint = calls.broker_endpoint(state, asked.leader)
    if endpoint is None:
        on_ends_failed(state, asked)
        return
    state.ends_under_way[asked.partition] = None
    calls.call(
        state,
        asked.leader,
        endpoint,
        lane=calls.CONTROL_LANE,
        api=ApiKey.LIST_OFFSETS,
        version=ends_api.REPLICA_VERSION,
        message=ends_api.replica_request(
            asked.partition,
            timestamp,
            node_id=state.config.node_id,
            leader_epoch=asked.question.leader_epoch,
        ),
        timeout_ms=TIMEOUT_MS,
        owner=asked,
    )


def _end(state: NodeState, asked: FetchCall) -> None:
    under_way = state.fetches_under_way.get(asked.leader, [])
    if asked in under_way:
        under_way.remove(asked)


def _back_off(state: NodeState) -> None:
    _wake_at(state, Millis(state.now + RETRY_MS))


def _wake_at(state: NodeState, deadline: Millis) -> None:
    if state.fetcher_wake is None or deadline < state.fetcher_wake:
        state.fetcher_wake = deadline
