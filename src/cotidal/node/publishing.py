"""From committed metadata to what this node hosts. Pure.

After each committed batch the partitions that it touched are compared with what is hosted: logs
are opened, roles taken and given up, settings handed on, logs of deleted topics removed. A topic
that was deleted and created again under its name has another id: the old log goes first.
Owns of the state: hosted, opening, fenced_since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from cotidal.core.cluster.image import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    Image,
    MetadataRecord,
    Partition,
    Topic,
)
from cotidal.core.partition import follower
from cotidal.core.partition.effects import PartitionEffect
from cotidal.core.partition.follower import on_log_cut
from cotidal.core.partition.leader import (
    WriteRules,
    become_leader,
    on_brokers_changed,
    on_partition_changed,
    stop_leading,
)
from cotidal.core.partition.replica import Appointment, Replica, on_log_opened
from cotidal.messages.batch import NO_RECORD_RULES, RecordRules
from cotidal.messages.producers import ProducerSnapshot
from cotidal.messages.records.metadata import (
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    FenceBrokerRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from cotidal.node import coordination, fetchers, housing, offline, proposals, quotas, throttles
from cotidal.node.effects import ConfigureLog, DeleteLog, OpenLog, PutStraysAside
from cotidal.node.events import LogOpened
from cotidal.node.hosting import Hosted
from cotidal.node.partition_effects import move
from cotidal.node.state import NodeState
from cotidal.settings import topic_settings
from cotidal.values import BrokerEpoch, NodeId, TopicPartition, Uuid

NO_BOUND: Final = 2**63 - 1
COMPRESSIONS: Final = {"uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
"""By their numbers in a batch. "producer" is none of them: batches are stored as they come."""


def publish(state: NodeState, records: Sequence[MetadataRecord]) -> None:
    """These records have just been replayed into the committed image.

    Settings first: a partition is brought to what the image says in the end, and that was decided
    upon the settings of then. A leader that knew the new ISR and the old min.insync.replicas could
    commit what those who are eligible by the new one do not have.
    """
    image = state.controller.committed
    for record in records:
        if isinstance(record, ConfigRecord):
            is_topic = record.resource_type == TOPIC_RESOURCE
            _reconfigure(state, record.resource_name if is_topic else None)
    for record in records:
        match record:
            case PartitionRecord() | PartitionChangeRecord():
                name = image.topic_names.get(record.topic_id)
                if name is not None:
                    host(state, TopicPartition(name, record.partition_id))
            case ClearElrRecord(topic_name=name):
                for at in tuple(state.hosted):
                    if name in ("", at.topic) and at.topic in image.topics:
                        host(state, at)  # it has a new epoch, or ours of the ISR is refused
            case RemoveTopicRecord():
                _drop_topic(state, record.topic_id)
                coordination.on_topic_deleted(state, record.topic_id)
            case _:
                pass
    if any(isinstance(record, _ABOUT_BROKERS) for record in records):
        _refresh_brokers(state)
    if any(isinstance(record, ClientQuotaRecord) for record in records):
        quotas.configure(state)


def publish_difference(state: NodeState, before: Image) -> None:
    """Another image has taken the place of ``before``: change what is hosted by the difference."""
    image = state.controller.committed
    _reconfigure(state, None)
    _drop_what_is_gone(state)
    for topic in image.topics.values():
        for number, told in topic.partitions.items():
            if before.partition(topic.name, number) != told or _is_other(before, topic):
                host(state, TopicPartition(topic.name, number))
    _refresh_brokers(state)
    quotas.configure(state)


def _drop_what_is_gone(state: NodeState) -> None:
    image = state.controller.committed
    for partition, hosted in list(state.hosted.items()):
        topic = image.topics.get(partition.topic)
        if topic is None or topic.topic_id != hosted.replica.topic_id:
            _drop(state, hosted)


def _is_other(before: Image, topic: Topic) -> bool:
    """A topic of this name was another one."""
    return before.topic_names.get(topic.topic_id) != topic.name


def publish_everything(state: NodeState) -> None:
    """At start: host all that the committed image gives this node, and nothing else.

    One that has to register again heard nothing of what was decided meanwhile: topics that it
    hosts may be gone, and settings others.
    """
    quotas.configure(state)
    _note_fenced(state)
    _reconfigure(state, None)
    _drop_what_is_gone(state)
    for topic in state.controller.committed.topics.values():
        for partition in topic.partitions:
            host(state, TopicPartition(topic.name, partition))
    state.out.append(PutStraysAside())


def host(state: NodeState, partition: TopicPartition) -> None:
    """Bring one partition to what the committed image says."""
    image = state.controller.committed
    topic = image.topics[partition.topic]
    told = topic.partitions[partition.partition]
    hosted = state.hosted.get(partition)
    if hosted is not None and hosted.replica.topic_id != topic.topic_id:
        _drop(state, hosted)
        hosted = None
    if state.config.node_id not in told.replicas:
        if hosted is not None:
            _drop(state, hosted)
        return
    if hosted is None:
        _open(state, partition, topic.topic_id, told.directory(state.config.node_id))
    elif hosted.replica.offline_reason is not None:
        offline.go_on(state, hosted, told)
    elif hosted.replica.opened:
        housing.check(state, hosted, told)
        _take_role(state, hosted, told)


def on_opened(state: NodeState, event: LogOpened) -> None:
    hosted = state.hosted_of(event.partition, event.topic_id)
    if hosted is None:  # deleted while it was being opened
        return
    state.opening.pop(event.partition, None)
    producers = event.producers
    assert producers is None or isinstance(producers, ProducerSnapshot)
    hosted.directory = event.directory
    cut, hosted.cutting = hosted.cutting, False
    if cut:
        offline.on_cut(hosted)
    elif hosted.replica.offline_reason is not None:
        return  # it has failed while the disk was at work
    move(state, hosted, _rebuild, event, producers, cut=cut)
    housing.say(state, hosted, event.directory)
    told = state.controller.committed.partition(*event.partition)
    if told is not None:
        _take_role(state, hosted, told)
    fetchers.follow(state, hosted)


def _rebuild(
    replica: Replica, event: LogOpened, producers: ProducerSnapshot | None, *, cut: bool
) -> tuple[PartitionEffect, ...]:
    """What the core knows of the log, from what the disk found in it."""
    if cut:
        return on_log_cut(
            replica,
            start_offset=event.start_offset,
            end_offset=event.end_offset,
            epochs=event.epochs,
            producers=producers,
            headers_after=event.headers_after,
            markers=event.markers,
        )
    return on_log_opened(
        replica,
        start_offset=event.start_offset,
        end_offset=event.end_offset,
        high_watermark=event.high_watermark,
        epochs=event.epochs,
        producers=producers,
        headers_after=event.headers_after,
        markers=event.markers,
    )


def topic_values(state: NodeState, image: Image, topic: str) -> Mapping[str, str]:
    """A topic's effective settings on this node."""
    return topic_settings(
        image.config(TOPIC_RESOURCE, topic),
        broker=image.config(BROKER_RESOURCE, str(state.config.node_id)),
        cluster=image.cluster_config,
        static=state.config.settings,
    )


def _open(state: NodeState, partition: TopicPartition, topic_id: Uuid, directory: Uuid) -> None:
    hosted = state.hosted[partition] = Hosted(partition, topic_id)
    _apply_settings(state, hosted, _shared_values(state, partition))
    state.opening[partition] = None
    state.out.append(OpenLog(partition, topic_id, hosted.settings, directory))


def _shared_values(state: NodeState, partition: TopicPartition) -> Mapping[str, str]:
    """All partitions of a topic share one mapping: 27 look-ups a topic, not a partition."""
    neighbour = state.hosted.get(TopicPartition(partition.topic, partition.partition - 1))
    if neighbour is not None and neighbour.settings:
        return neighbour.settings
    return topic_values(state, state.controller.committed, partition.topic)


def _apply_settings(state: NodeState, hosted: Hosted, values: Mapping[str, str]) -> None:
    hosted.settings = values
    throttles.mark(state, hosted, values)
    hosted.rules = WriteRules(
        max_message_bytes=int(values["max.message.bytes"]),
        segment_bytes=int(values["segment.bytes"]),
        timestamp_after_max_ms=int(values["message.timestamp.after.max.ms"]),
        stamps_time=values["message.timestamp.type"] == "LogAppendTime",
    )
    asked = _record_rules(values)
    hosted.record_rules = None if asked == NO_RECORD_RULES else asked


def _record_rules(values: Mapping[str, str]) -> RecordRules:
    oldest = int(values["message.timestamp.before.max.ms"])
    bounded = oldest < NO_BOUND and values["message.timestamp.type"] == "CreateTime"
    return RecordRules(
        needs_keys="compact" in values["cleanup.policy"].split(","),
        timestamp_before_max_ms=oldest if bounded else None,
        compression=COMPRESSIONS.get(values["compression.type"]),
    )


def _take_role(state: NodeState, hosted: Hosted, told: Partition) -> None:
    replica = hosted.replica
    if replica.offline_reason is not None:
        return
    if told.leader != state.config.node_id:
        _stop_leading(state, hosted, told)
        return
    fetchers.forget(state, replica.partition)
    appointment = Appointment(
        node_id=state.config.node_id,
        epoch=told.leader_epoch,
        partition_epoch=told.partition_epoch,
        replicas=told.replicas,
        isr=told.isr,
        min_isr=int(hosted.settings["min.insync.replicas"]),
        lag_max_ms=proposals.lag_max_ms(state),
        active=active_brokers(state),
    )
    leads = replica.leadership is not None and replica.leader_epoch >= told.leader_epoch
    take = on_partition_changed if leads else become_leader
    move(state, hosted, take, appointment, state.now)
    if hosted.coordinated:
        state.coordinators_due[replica.partition] = None


def _stop_leading(state: NodeState, hosted: Hosted, told: Partition) -> None:
    replica = hosted.replica
    if told.leader < 0:
        move(state, hosted, stop_leading, f"{replica.partition} has no leader")
        follower.stop_following(replica)
        fetchers.forget(state, replica.partition)
        return
    move(state, hosted, follower.follow, leader=told.leader, epoch=told.leader_epoch)
    fetchers.follow(state, hosted)


def active_brokers(state: NodeState) -> Mapping[NodeId, BrokerEpoch]:
    """Who may be in an ISR, with the epoch of each incarnation."""
    brokers = state.controller.committed.brokers.values()
    return {broker.node_id: broker.epoch for broker in brokers if broker.active}


def _refresh_brokers(state: NodeState) -> None:
    """Leaders must know who may be in an ISR; a follower may have got its leader back."""
    _note_fenced(state)
    active = active_brokers(state)
    for hosted in state.hosted.values():
        move(state, hosted, on_brokers_changed, active, state.now)
    for leader in state.followed:
        state.fetch_due[leader] = None


def _note_fenced(state: NodeState) -> None:
    """Since when, as far as this node knows: nothing in the metadata tells the time."""
    fenced = [each.node_id for each in state.controller.committed.brokers.values() if each.fenced]
    state.fenced_since = {node_id: state.fenced_since.get(node_id, state.now) for node_id in fenced}


_ABOUT_BROKERS = (
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
    FenceBrokerRecord,
    UnfenceBrokerRecord,
    BrokerRegistrationChangeRecord,
)


def _reconfigure(state: NodeState, only: str | None) -> None:
    """Settings of one topic may have changed, or of all."""
    image = state.controller.committed
    if only is None:
        throttles.configure(state)
    values: dict[str, Mapping[str, str]] = {}
    for partition, hosted in state.hosted.items():
        if only not in (None, partition.topic):
            continue
        topic = image.topics.get(partition.topic)
        if topic is None or topic.topic_id != hosted.replica.topic_id:
            continue  # deleted, perhaps created again, further on in what was just committed
        if partition.topic not in values:
            values[partition.topic] = topic_values(state, image, partition.topic)
        if values[partition.topic] == hosted.settings:
            continue
        _apply_settings(state, hosted, values[partition.topic])
        state.out.append(ConfigureLog(partition, hosted.settings))
        told = image.partition(*partition)
        if told is not None and hosted.replica.opened:
            _take_role(state, hosted, told)


def _drop_topic(state: NodeState, topic_id: Uuid) -> None:
    gone = [hosted for hosted in state.hosted.values() if hosted.replica.topic_id == topic_id]
    for hosted in gone:
        _drop(state, hosted)


def _drop(state: NodeState, hosted: Hosted) -> None:
    replica = hosted.replica
    move(state, hosted, stop_leading, f"{replica.partition} is no longer here")
    fetchers.forget(state, replica.partition)
    del state.hosted[replica.partition]
    state.opening.pop(replica.partition, None)
    state.out.append(DeleteLog(replica.partition, replica.topic_id))
