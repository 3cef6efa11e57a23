"""Requests of somebody who errs: names that cannot be, wrong numbers, what is not there.

Each must be refused, or do no harm; none may take a node down. They are sent while everything else
goes on, because that is when nodes are asked such things. What one of them creates is called
"blunder-...", and has the settings of all topics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from cotidal.messages.rpc.alter_configs import AlterableConfig as OldConfig
from cotidal.messages.rpc.alter_configs import AlterConfigsRequest
from cotidal.messages.rpc.alter_configs import AlterConfigsResource as OldResource
from cotidal.messages.rpc.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from cotidal.messages.rpc.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from cotidal.messages.rpc.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from cotidal.messages.rpc.delete_topics import DeleteTopicsRequest, DeleteTopicState
from cotidal.messages.rpc.describe_quorum import DescribeQuorumRequest
from cotidal.messages.rpc.elect_leaders import ElectLeadersRequest, TopicPartitions
from cotidal.messages.rpc.fetch import FetchPartition, FetchRequest, FetchTopic
from cotidal.messages.rpc.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from cotidal.messages.rpc.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from cotidal.messages.rpc.metadata import MetadataRequest, MetadataRequestTopic
from cotidal.messages.rpc.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from cotidal.messages.rpc.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from cotidal.messages.rpc.unregister_broker import UnregisterBrokerRequest
from cotidal.messages.rpc.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from cotidal.values import Uuid
from cotidal.wire.batch import read_batches
from cotidal.wire.records import Record, build_batch

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
NOWHERE: Final = 77
TIMEOUT_MS: Final = 5_000
FAR_AHEAD_MS: Final = 4_000_000_000_000

Draw = Callable[[int], int]


class Blunder(NamedTuple):
    key: ApiKey
    version: int
    request: Any
    to_leader: bool = False


def blunder(draw: Draw, topic: str, brokers: int) -> Blunder:
    """One of them, about this topic if about one that exists."""
    kinds = (_topics, _partitions, _configs, _moves, _features, _records, _writes, _reads)
    return kinds[draw(len(kinds))](draw, topic, brokers)


def _pick(draw: Draw, choices: tuple[Any, ...]) -> Any:
    return choices[draw(len(choices))]


def _topics(draw: Draw, topic: str, brokers: int) -> Blunder:
    by_hand = CreatableReplicaAssignment
    new = CreatableTopic
    choices = (
        new("", 1, 1),
        new("..", 1, 1),
        new("x" * 250, 1, 1),
        new("no spaces", 1, 1),
        new(topic, 1, 1),
        new("blunder-1", 0, 1),
        new("blunder-1", 1, 0),
        new("blunder-1", 1, brokers + 1),
        new("blunder-1", 1_000_000, 1),
        new("blunder-1", -1, -1),
        new("blunder.2", -1, -1),
        new("blunder_2", -1, -1),
        new("blunder-1", 1, 1, configs=(CreatableTopicConfig("no.such.setting", "1"),)),
        new("blunder-1", 1, 1, configs=(CreatableTopicConfig("retention.ms", "soon"),)),
        new("blunder-1", 2, 1, (by_hand(0, (1,)),)),
        new("blunder-1", -1, -1, (by_hand(0, (1,)), by_hand(0, (1,)))),
        new("blunder-1", -1, -1, (by_hand(1, (1,)),)),
        new("blunder-1", -1, -1, (by_hand(0, ()),)),
        new("blunder-1", -1, -1, (by_hand(0, (1, 1)),)),
        new("blunder-1", -1, -1, (by_hand(0, (NOWHERE,)),)),
        new("blunder-1", -1, -1, (by_hand(0, (1,)), by_hand(1, tuple(range(1, brokers + 1))))),
    )
    if draw(5) == 0:
        doomed = _pick(
            draw,
            (
                DeleteTopicState(None, Uuid(b"?" * 16)),
                DeleteTopicState("nowhere"),
                DeleteTopicState(topic, Uuid(b"?" * 16)),
                DeleteTopicState("blunder-1"),
            ),
        )
        return Blunder(ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest((doomed,), (), TIMEOUT_MS))
    request = CreateTopicsRequest((_pick(draw, choices),), TIMEOUT_MS, validate_only=draw(3) == 0)
    return Blunder(ApiKey.CREATE_TOPICS, 7, request)


def _partitions(draw: Draw, topic: str, brokers: int) -> Blunder:
    if draw(3) == 0:
        names = (MetadataRequestTopic(name="blunder-3"), MetadataRequestTopic(name="no spaces"))
        request: Any = MetadataRequest(topics=names, allow_auto_topic_creation=True)
        return Blunder(ApiKey.METADATA, 8, request)
    by_hand = CreatePartitionsAssignment
    choices = (
        CreatePartitionsTopic("nowhere", 3, None),
        CreatePartitionsTopic(topic, 0, None),
        CreatePartitionsTopic(topic, 1, None),
        CreatePartitionsTopic(topic, 1_000_000, None),
        CreatePartitionsTopic(topic, 99, (by_hand((1,)),)),
        CreatePartitionsTopic("blunder-1", 2, (by_hand((1,)),)),
        CreatePartitionsTopic("blunder-1", 2, (by_hand((NOWHERE,)),)),
    )
    request = CreatePartitionsRequest((_pick(draw, choices),), TIMEOUT_MS)
    return Blunder(ApiKey.CREATE_PARTITIONS, 3, request)


def _configs(draw: Draw, topic: str, brokers: int) -> Blunder:
    if draw(4) == 0:
        old = _pick(
            draw,
            (
                OldResource(TOPIC_RESOURCE, "nowhere", (OldConfig("retention.ms", "1"),)),
                OldResource(TOPIC_RESOURCE, topic, (OldConfig("retention.ms", "soon"),)),
                OldResource(TOPIC_RESOURCE, "blunder-1", (OldConfig("retention.ms", "9000"),)),
                OldResource(3, "", ()),
            ),
        )
        return Blunder(ApiKey.ALTER_CONFIGS, 2, AlterConfigsRequest((old,)))
    name, operation, value = _pick(
        draw,
        (
            ("no.such.setting", 0, "1"),
            ("retention.ms", 0, "soon"),
            ("retention.ms", 9, "1"),
            ("retention.ms", 0, None),
            ("cleanup.policy", 2, "delete"),
            ("cleanup.policy", 3, "compact"),
            ("retention.ms", 2, "1"),
            ("min.insync.replicas", 0, "0"),
            ("max.message.bytes", 1, None),
        ),
    )
    kind, whose = _pick(
        draw,
        (
            (TOPIC_RESOURCE, topic),
            (TOPIC_RESOURCE, "nowhere"),
            (TOPIC_RESOURCE, ""),
            (BROKER_RESOURCE, "1"),
            (BROKER_RESOURCE, "nobody"),
            (BROKER_RESOURCE, str(NOWHERE)),
            (3, ""),
        ),
    )
    resource = AlterConfigsResource(kind, whose, (AlterableConfig(name, operation, value),))
    request = IncrementalAlterConfigsRequest((resource,), validate_only=True)
    return Blunder(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)


def _moves(draw: Draw, topic: str, brokers: int) -> Blunder:
    if draw(3) == 0:
        whom = (TopicPartitions("nowhere", (0,)), TopicPartitions(topic, (NOWHERE, 0)))
        request: Any = ElectLeadersRequest(0, whom, TIMEOUT_MS)
        return Blunder(ApiKey.ELECT_LEADERS, 2, request)
    if draw(3) == 0:
        request = UnregisterBrokerRequest(_pick(draw, (NOWHERE, 1)))
        return Blunder(ApiKey.UNREGISTER_BROKER, 0, request)
    name, number, target = _pick(
        draw,
        (
            ("nowhere", 0, (1,)),
            (topic, NOWHERE, (1,)),
            (topic, 0, ()),
            (topic, 0, (1, 1)),
            (topic, 0, (NOWHERE,)),
            (topic, 0, (-1,)),
        ),
    )
    moved = ReassignableTopic(name, (ReassignablePartition(number, target),))
    request = AlterPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=(moved,))
    return Blunder(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, request)


def _features(draw: Draw, topic: str, brokers: int) -> Blunder:
    if draw(4) == 0:
        return Blunder(ApiKey.DESCRIBE_QUORUM, 2, DescribeQuorumRequest())
    update = _pick(
        draw,
        (
            FeatureUpdateKey("no.such.feature", 1),
            FeatureUpdateKey("metadata.version", 1_000),
            FeatureUpdateKey("metadata.version", 1, upgrade_type=2),
            FeatureUpdateKey("metadata.version", 1, upgrade_type=9),
            FeatureUpdateKey("eligible.leader.replicas.version", 1),
        ),
    )
    request = UpdateFeaturesRequest(TIMEOUT_MS, (update,), validate_only=draw(2) == 0)
    return Blunder(ApiKey.UPDATE_FEATURES, 1, request)


def _records(draw: Draw, topic: str, brokers: int) -> Blunder:
    number, offset = _pick(draw, ((0, 1 << 40), (0, -7), (NOWHERE, 0)))
    deleted = DeleteRecordsTopic(topic, (DeleteRecordsPartition(number, offset),))
    request = DeleteRecordsRequest((deleted,), TIMEOUT_MS)
    return Blunder(ApiKey.DELETE_RECORDS, 2, request, to_leader=True)


def _writes(draw: Draw, topic: str, brokers: int) -> Blunder:
    """Nothing of this is ever written: it would be nobody's record."""
    acks, batch = _pick(
        draw,
        (
            (7, build_batch([Record(None, b"x")])),
            (-1, build_batch([Record(None, b"x" * 1_100_000)])),
            (-1, build_batch([Record(None, b"x", timestamp=FAR_AHEAD_MS)])),
            (-1, build_batch([Record(None, b"x")], producer_id=9, producer_epoch=-1)),
            (0, build_batch([Record(None, b"x" * 1_100_000)])),
            (-1, b""),
        ),
    )
    written = PartitionProduceData(_pick(draw, (0, NOWHERE)), read_batches(batch))
    if acks == -1 and len(batch) < 200 and draw(2):
        topic = "nowhere"
    data = (TopicProduceData(name=topic, partition_data=(written,)),)
    request = ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=data)
    return Blunder(ApiKey.PRODUCE, 9, request, to_leader=True)


def _reads(draw: Draw, topic: str, brokers: int) -> Blunder:
    match draw(3):
        case 0:
            asked = (
                FetchPartition(partition=0, fetch_offset=1 << 40, partition_max_bytes=10),
                FetchPartition(partition=0, current_leader_epoch=9_999, partition_max_bytes=10),
                FetchPartition(partition=NOWHERE, partition_max_bytes=10),
            )
            topics = (FetchTopic(topic=topic, partitions=(_pick(draw, asked),)),)
            request: Any = FetchRequest(
                max_wait_ms=0, min_bytes=draw(2), session_epoch=_pick(draw, (-1, 0, 3)),
                session_id=draw(2) * 99, topics=topics,
            )  # fmt: skip
            return Blunder(ApiKey.FETCH, 12, request, to_leader=True)
        case 1:
            wanted = _pick(
                draw,
                (
                    ListOffsetsPartition(0, 9_999, -1),
                    ListOffsetsPartition(NOWHERE, -1, -1),
                    ListOffsetsPartition(0, -1, -9),
                    ListOffsetsPartition(0, 0, -1),
                ),
            )
            request = ListOffsetsRequest(-1, draw(2), (ListOffsetsTopic(topic, (wanted,)),))
            return Blunder(ApiKey.LIST_OFFSETS, 7, request, to_leader=True)
        case _:
            point = _pick(
                draw,
                (
                    OffsetForLeaderPartition(0, 9_999, 0),
                    OffsetForLeaderPartition(NOWHERE, -1, 0),
                    OffsetForLeaderPartition(0, -1, 9_999),
                ),
            )
            of = (OffsetForLeaderTopic(topic, (point,)),)
            request = OffsetForLeaderEpochRequest(-1, of)
            return Blunder(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, request, to_leader=True)
