"""The gist of a request or an answer, in a few words. Pure.

What replication and elections are made of is told in full: produce, fetch, ISR proposals,
heartbeats, and what quorum nodes say (in the words of ``core.trace``). Of every other message its
name is told, and the errors in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from cotidal.api import quorum_talk
from cotidal.core.trace import line, spans
from cotidal.core.trace.cluster import NO_NAMES, Names
from cotidal.core.trace.told import ids, named
from cotidal.errors import Refusal
from cotidal.messages.batch import Batches
from cotidal.messages.rpc import alter_partition as alter
from cotidal.messages.rpc import begin_quorum_epoch as begin
from cotidal.messages.rpc import broker_heartbeat as heartbeat
from cotidal.messages.rpc import broker_registration as registration
from cotidal.messages.rpc import end_quorum_epoch as end
from cotidal.messages.rpc import fetch, produce, vote
from cotidal.messages.rpc import list_offsets as offsets
from cotidal.values import ZERO_UUID, Uuid, uuid_text
from cotidal.words import counted

SHOWN: Final = 6
"""Partitions of one message that are told; the rest is counted."""


def gist(message: object, names: Names = NO_NAMES) -> str:
    """``names``: topics by their ids, as far as the reader knows them."""
    match message:
        case produce.ProduceRequest():
            return f"acks={message.acks} {_listed(_produced(message, names))}"
        case produce.ProduceResponse():
            return _listed(_written(message, names))
        case (
            vote.VoteRequest()
            | begin.BeginQuorumEpochRequest()
            | end.EndQuorumEpochRequest()
            | vote.VoteResponse()
            | begin.BeginQuorumEpochResponse()
            | end.EndQuorumEpochResponse()
        ):
            return _quorum(message)
        case fetch.FetchRequest():
            return _listed(_asked(message, names), by=message.replica_state.replica_id)
        case fetch.FetchResponse():
            return _listed(_fetched(message, names), error=message.error_code)
        case alter.AlterPartitionRequest():
            return _listed(_proposed(message, names), by=message.broker_id)
        case alter.AlterPartitionResponse():
            return _listed(_altered(message, names), error=message.error_code)
        case heartbeat.BrokerHeartbeatRequest() | registration.BrokerRegistrationRequest():
            return _alive(message)
        case heartbeat.BrokerHeartbeatResponse():
            return _beaten(message)
        case offsets.ListOffsetsRequest() | offsets.ListOffsetsResponse():
            return _listed(_listed_offsets(message))
        case _:
            return _anything(message)


def _listed(items: Iterable[str], *, by: int = -1, error: int = 0) -> str:
    every = list(items)
    shown = [f"by {by}:"] if by >= 0 else []
    shown += [named(error)] if error else []
    shown += [", ".join(every[:SHOWN])] if every else []
    shown += [f"and {counted(len(every) - SHOWN, 'more partition')}"] if len(every) > SHOWN else []
    return " ".join(shown)


def _name(topic: str, topic_id: Uuid, names: Names) -> str:
    if topic or topic_id == ZERO_UUID:
        return topic
    if topic_id == quorum_talk.METADATA_TOPIC_ID:
        return quorum_talk.METADATA.topic
    return names.get(topic_id) or uuid_text(topic_id)


def _produced(message: produce.ProduceRequest, names: Names) -> Iterator[str]:
    for topic in message.topic_data:
        name = _name(topic.name, topic.topic_id, names)
        for each in topic.partition_data:
            headers = () if each.records is None else each.records.headers
            records = sum(header.record_count for header in headers)
            yield f"{name}-{each.partition_index} {counted(records, 'record')}"


def _written(message: produce.ProduceResponse, names: Names) -> Iterator[str]:
    for topic in message.responses:
        name = _name(topic.name, topic.topic_id, names)
        for each in topic.partition_responses:
            outcome = named(each.error_code) if each.error_code else f"at {each.base_offset}"
            yield f"{name}-{each.partition_index} {outcome}"


def _asked(message: fetch.FetchRequest, names: Names) -> Iterator[str]:
    for topic in message.topics:
        name = _name(topic.topic, topic.topic_id, names)
        for each in topic.partitions:
            epoch = f" epoch={each.current_leader_epoch}" if each.current_leader_epoch >= 0 else ""
            yield f"{name}-{each.partition} offset={each.fetch_offset}{epoch}"


def _fetched(message: fetch.FetchResponse, names: Names) -> Iterator[str]:
    for topic in message.responses:
        name = _name(topic.topic, topic.topic_id, names)
        for each in topic.partitions:
            yield f"{name}-{each.partition_index} {_fetched_words(each)}"


def _fetched_words(each: fetch.PartitionData) -> str:
    leader = each.current_leader.leader_id
    if each.error_code:
        return named(each.error_code) + (f", broker {leader} leads" if leader >= 0 else "")
    if each.snapshot_id.end_offset >= 0:
        return f"snapshot={each.snapshot_id.end_offset}@{each.snapshot_id.epoch}"
    diverging = each.diverging_epoch
    if diverging.end_offset >= 0:
        return f"diverging epoch={diverging.epoch} end={diverging.end_offset}"
    if each.preferred_read_replica >= 0:
        return f"read from broker {each.preferred_read_replica}"
    return f"{_records(each.records)} hw={each.high_watermark}"


def _records(batches: Batches | None) -> str:
    """Those that are on their way out are bytes only: nobody has looked inside."""
    if batches is None or not len(batches.data):
        return "nothing"
    return spans(batches.headers) or counted(len(batches.data), "byte")


def _proposed(message: alter.AlterPartitionRequest, names: Names) -> Iterator[str]:
    for topic in message.topics:
        for each in topic.partitions:
            members = [member.broker_id for member in each.new_isr_with_epochs] or each.new_isr
            where = f"{_name('', topic.topic_id, names)}-{each.partition_index}"
            yield f"{where} isr={ids(members)} epoch={each.leader_epoch}"


def _altered(message: alter.AlterPartitionResponse, names: Names) -> Iterator[str]:
    for topic in message.topics:
        for each in topic.partitions:
            where = f"{_name('', topic.topic_id, names)}-{each.partition_index}"
            if each.error_code:
                yield f"{where} {named(each.error_code)}"
            else:
                yield f"{where} isr={ids(each.isr)} epoch={each.leader_epoch}"


def _alive(
    message: heartbeat.BrokerHeartbeatRequest | registration.BrokerRegistrationRequest,
) -> str:
    if isinstance(message, registration.BrokerRegistrationRequest):
        return f"broker {message.broker_id} previous-epoch={message.previous_broker_epoch}"
    words = [f"broker {message.broker_id}", f"metadata={message.current_metadata_offset}"]
    words += ["wants fence"] if message.want_fence else []
    words += ["wants shutdown"] if message.want_shut_down else []
    return " ".join(words)


def _beaten(message: heartbeat.BrokerHeartbeatResponse) -> str:
    if message.error_code:
        return named(message.error_code)
    words = ["fenced" if message.is_fenced else "unfenced"]
    words += ["may stop"] if message.should_shut_down else []
    return ", ".join(words)


def _listed_offsets(
    message: offsets.ListOffsetsRequest | offsets.ListOffsetsResponse,
) -> Iterator[str]:
    for topic in message.topics:
        for each in topic.partitions:
            where = f"{topic.name}-{each.partition_index}"
            if isinstance(each, offsets.ListOffsetsPartition):
                yield f"{where} time={each.timestamp}"
            elif each.error_code:
                yield f"{where} {named(each.error_code)}"
            else:
                yield f"{where} offset={each.offset}"


def _quorum(message: Any) -> str:
    """In the words of the quorum itself. A message that it would refuse is told by its name."""
    if type(message).__name__.endswith("Request"):
        question = quorum_talk.from_request(message)
        return _anything(message) if isinstance(question, Refusal) else line(question)
    reply = quorum_talk.from_response(message, lambda _: ())
    return _anything(message) if isinstance(reply, Refusal) else line(reply)


def _anything(message: object) -> str:
    errors = sorted(set(_errors(message)))
    return " ".join(named(error) for error in errors)


def _errors(value: object) -> Iterator[int]:
    """Every error code in a message, wherever it stands."""
    if not isinstance(value, tuple):
        return
    names: tuple[str, ...] = getattr(value, "_fields", ())
    for place, each in enumerate(value):
        if names and names[place].endswith("error_code") and each:
            yield int(each)
        else:
            yield from _errors(each)
