"""The same questions put to cotidal and to Apache Kafka, each with a fresh broker: the same errors.

Most are wrong on purpose. DIFFERS names those that are answered otherwise, and why.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

from bench import apache_kafka, cotidal_cluster
from bench.server import serving
from cotidal.client.admin import create_topic
from cotidal.client.cluster import Cluster
from cotidal.errors import ErrorCode
from cotidal.messages.rpc import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_configs,
    alter_partition_reassignments,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_groups,
    describe_producers,
    describe_quorum,
    describe_topic_partitions,
    describe_transactions,
    elect_leaders,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    sync_group,
    unregister_broker,
    update_features,
)
from cotidal.messages.rpc.apis import APIS, ApiKey
from cotidal.values import Uuid

pytestmark = pytest.mark.interop

TOPIC: Final = "there"
NO_ID: Final = Uuid(b"?" * 16)
GROUP: Final = "nobody"
JOINED: Final = "joined"
"""Kafka keeps a group that somebody tried to join, though nobody could."""


def _partitions() -> Iterator[Any]:
    for topic, partition, epoch, timestamp in (
        (TOPIC, 0, -1, -1),
        ("none", 0, -1, -1),
        (TOPIC, 9, -1, -1),
        (TOPIC, 0, 99, -1),
        (TOPIC, 0, -1, -99),
    ):
        asked = list_offsets.ListOffsetsPartition(partition, epoch, timestamp)
        yield list_offsets.ListOffsetsRequest(
            -1, 0, (list_offsets.ListOffsetsTopic(topic, (asked,)),), 1_000
        )
    for topic, current, asked_epoch in ((TOPIC, -1, 0), ("none", -1, 0), (TOPIC, 99, 0)):
        part = offset_for_leader_epoch.OffsetForLeaderPartition(0, current, asked_epoch)
        yield offset_for_leader_epoch.OffsetForLeaderEpochRequest(
            -1, (offset_for_leader_epoch.OffsetForLeaderTopic(topic, (part,)),)
        )
    for topic, partition, offset in ((TOPIC, 0, 99), (TOPIC, 0, -1), ("none", 0, 0), (TOPIC, 9, 0)):
        cut = delete_records.DeleteRecordsPartition(partition, offset)
        yield delete_records.DeleteRecordsRequest(
            (delete_records.DeleteRecordsTopic(topic, (cut,)),), 1_000
        )
    for session in ((77, 5), (0, 5)):
        yield fetch.FetchRequest(session_id=session[0], session_epoch=session[1])
    unknown = fetch.FetchTopic("", NO_ID, (fetch.FetchPartition(0, partition_max_bytes=100),))
    yield fetch.FetchRequest(topics=(unknown,))
    yield describe_producers.DescribeProducersRequest(
        (
            describe_producers.TopicRequest(TOPIC, (0, 9)),
            describe_producers.TopicRequest("none", (0,)),
        )
    )


def _topics() -> Iterator[Any]:
    new = create_topics.CreatableTopic
    assigned = create_topics.CreatableReplicaAssignment
    for topic in (
        new(TOPIC, 1, 1),
        new("a b", 1, 1),
        new("..", 1, 1),
        new("n", 0, 1),
        new("n", 1, 0),
        new("n", 1, 9),
        new("n", -1, -1, (assigned(0, (7,)),)),
        new("n", -1, -1, (assigned(1, (1,)),)),
        new("n", -1, -1, (assigned(0, ()),)),
        new("n", 1, 1, (assigned(0, (1,)),)),
        new("n", 1, 1, (), (create_topics.CreatableTopicConfig("no.such", "1"),)),
        new("n", 1, 1, (), (create_topics.CreatableTopicConfig("retention.ms", "soon"),)),
    ):
        yield create_topics.CreateTopicsRequest((topic,), 10_000, True)
    yield create_topics.CreateTopicsRequest((new("twice", 1, 1), new("twice", 1, 1)), 10_000, True)
    gone = delete_topics.DeleteTopicState
    for state in (gone("none"), gone(None, NO_ID)):
        yield delete_topics.DeleteTopicsRequest((state,), (), 10_000)
    grown = create_partitions.CreatePartitionsTopic
    for more in (
        grown(TOPIC, 1, None),
        grown(TOPIC, 0, None),
        grown("none", 3, None),
        grown(TOPIC, 2, (create_partitions.CreatePartitionsAssignment((7,)),)),
        grown(TOPIC, 3, (create_partitions.CreatePartitionsAssignment((1,)),)),
    ):
        yield create_partitions.CreatePartitionsRequest((more,), 10_000, True)
    for kind in (0, 1):
        for topic_name, partitions in ((TOPIC, (0,)), (TOPIC, (9,)), ("none", (0,))):
            wanted = (elect_leaders.TopicPartitions(topic_name, partitions),)
            yield elect_leaders.ElectLeadersRequest(kind, wanted, 10_000)
    moved = alter_partition_reassignments.ReassignablePartition
    for target in (moved(0, (7,)), moved(0, ()), moved(0, (1, 1)), moved(0, None), moved(9, (1,))):
        yield alter_partition_reassignments.AlterPartitionReassignmentsRequest(
            10_000, True, (alter_partition_reassignments.ReassignableTopic(TOPIC, (target,)),)
        )
    yield list_partition_reassignments.ListPartitionReassignmentsRequest(10_000, None)
    yield metadata.MetadataRequest(
        tuple(metadata.MetadataRequestTopic(name=name) for name in (TOPIC, "none", "a b")), False
    )
    yield metadata.MetadataRequest((metadata.MetadataRequestTopic(NO_ID, None),), False)
    named = tuple(describe_topic_partitions.TopicRequest(name) for name in (TOPIC, "none", "a b"))
    yield describe_topic_partitions.DescribeTopicPartitionsRequest(named)


def _groups() -> Iterator[Any]:
    protocols = (join_group.JoinGroupRequestProtocol("range", b""),)
    for group, session, member, kind, offered in (
        ("", 10_000, "", "consumer", protocols),
        (JOINED, 1, "", "consumer", protocols),
        (GROUP, 10_000, "ghost", "consumer", protocols),
        (JOINED, 10_000, "", "consumer", ()),
        (JOINED, 10_000, "", "", protocols),
    ):
        yield join_group.JoinGroupRequest(group, session, 10_000, member, None, kind, offered)
    for group in ("", GROUP):
        yield heartbeat.HeartbeatRequest(group, 1, "ghost")
        yield sync_group.SyncGroupRequest(group, 1, "ghost", None, "consumer", "range")
        yield leave_group.LeaveGroupRequest(group, "", (leave_group.MemberIdentity("ghost"),))
        yield offset_fetch.OffsetFetchRequest(
            groups=(offset_fetch.OffsetFetchRequestGroup(group, topics=None),)
        )
        yield describe_groups.DescribeGroupsRequest((group,))
        yield delete_groups.DeleteGroupsRequest((group,))
        yield offset_delete.OffsetDeleteRequest(group)
    yield list_groups.ListGroupsRequest(("NoSuchState",), ())
    yield list_groups.ListGroupsRequest((), ("NoSuchType",))
    committed = (offset_commit.OffsetCommitRequestPartition(0, 5),)
    for group, generation, member, topic_id in (
        (GROUP, 5, "ghost", NO_ID),
        (GROUP, -1, "", NO_ID),
        ("", -1, "", NO_ID),
    ):
        topics = (offset_commit.OffsetCommitRequestTopic("", topic_id, committed),)
        yield offset_commit.OffsetCommitRequest(group, generation, member, topics=topics)
    for kind_of_key, key in ((0, GROUP), (9, "x"), (1, "t")):
        yield find_coordinator.FindCoordinatorRequest("", kind_of_key, (key,))


def _transactions() -> Iterator[Any]:
    for id_, timeout, producer, epoch in (
        ("", 1_000, -1, -1),
        ("shop", 0, -1, -1),
        ("shop", 2**31 - 1, -1, -1),
        ("shop", 1_000, 5, -1),
        (None, 1_000, 99_999, 3),
    ):
        yield init_producer_id.InitProducerIdRequest(id_, timeout, producer, epoch)
    yield end_txn.EndTxnRequest("nobody", 5, 0, True)
    yield add_offsets_to_txn.AddOffsetsToTxnRequest("nobody", 5, 0, GROUP)
    yield describe_transactions.DescribeTransactionsRequest(("nobody", ""))
    yield list_transactions.ListTransactionsRequest(("NoSuchState",))
    yield add_partitions_to_txn.AddPartitionsToTxnRequest(
        (
            add_partitions_to_txn.AddPartitionsToTxnTransaction(
                "nobody",
                5,
                0,
                False,
                (add_partitions_to_txn.AddPartitionsToTxnTopic(TOPIC, (0,)),),
            ),
        )
    )


def _cluster() -> Iterator[Any]:
    for endpoint in (1, 2, 9):
        yield describe_cluster.DescribeClusterRequest(False, endpoint)
    for topic in ("__cluster_metadata", "none"):
        asked = (describe_quorum.DescribeQuorumRequestPartitionData(0),)
        yield describe_quorum.DescribeQuorumRequest(
            (describe_quorum.DescribeQuorumRequestTopicData(topic, asked),)
        )
    for feature, level, kind in (
        ("no.such", 1, 1),
        ("metadata.version", 999, 1),
        ("metadata.version", 1, 1),
        ("metadata.version", 8, 2),
        ("transaction.version", 9, 1),
        ("transaction.version", 1, 7),
        ("", 1, 1),
    ):
        update = update_features.FeatureUpdateKey(feature, level, False, kind)
        yield update_features.UpdateFeaturesRequest(10_000, (update,), True)
    yield unregister_broker.UnregisterBrokerRequest(77)
    for kinds in ((2,), (99,)):
        yield list_config_resources.ListConfigResourcesRequest(kinds)
    for kind_of, name, key, value in (
        (2, "none", "retention.ms", "1000"),
        (2, TOPIC, "no.such", "1"),
        (4, "77", "log.retention.ms", "1000"),
        (4, "", "node.id", "3"),
        (99, "x", "y", "z"),
    ):
        change = (alter_configs.AlterableConfig(key, value),)
        resource = alter_configs.AlterConfigsResource(kind_of, name, change)
        yield alter_configs.AlterConfigsRequest((resource,), True)


QUESTIONS: Final = [*_partitions(), *_topics(), *_groups(), *_transactions(), *_cluster()]
NAMES: Final = [
    f"{type(each).__name__.removesuffix('Request')}-{number}"
    for number, each in enumerate(QUESTIONS)
]

DIFFERS: Final = {
    alter_configs.AlterConfigsRequest: (
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        "any broker takes settings of any; Kafka's only their own, and refuse the number",
    ),
}
"""What is answered otherwise, by the kind of the question: how, and why."""


@pytest.fixture(scope="module")
def both(
    kafka: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Cluster, Cluster]]:
    """One broker of ours, one of Kafka's, each with the same topic."""
    ours: Path = tmp_path_factory.mktemp("ours")
    theirs: Path = tmp_path_factory.mktemp("theirs")
    with (
        serving(cotidal_cluster.recipe(1, ours)) as cotidal,
        serving(apache_kafka.recipe(1, theirs)) as apache,
        Cluster(cotidal.bootstrap) as first,
        Cluster(apache.bootstrap) as second,
    ):
        for cluster in (first, second):
            create_topic(cluster, TOPIC, partitions=1, replication_factor=1, configs={})
            for kind, key in ((0, GROUP), (1, "nobody")):  # the coordinators' topics come with it
                request = find_coordinator.FindCoordinatorRequest("", kind, (key,))
                _ask_until_found(cluster, request)
        yield first, second


def _ask_until_found(cluster: Cluster, request: Any) -> None:
    for _ in range(200):
        if set(errors_of(_asked(cluster, request))) == {ErrorCode.NONE}:
            return
        time.sleep(0.1)
    raise AssertionError("no coordinator")


def _asked(cluster: Cluster, request: Any) -> Any:
    name = type(request).__name__.removesuffix("Request")
    key = next(ApiKey(number) for number, api in APIS.items() if api.name == name)
    answer = getattr(import_module(type(request).__module__), f"{name}Response")
    return cluster.tell(key, request, answer)


def errors_of(value: Any) -> list[ErrorCode]:
    """Every error code in an answer, from the outside in."""
    found: list[ErrorCode] = []
    for name, each in zip(value._fields, value, strict=True):
        if name.endswith("error_code"):
            found.append(ErrorCode(each))
    for each in value:
        if isinstance(each, tuple) and not hasattr(each, "_fields"):
            for part in each:
                if hasattr(part, "_fields"):
                    found += errors_of(part)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_error_is_kafkas(both: tuple[Cluster, Cluster], name: str) -> None:
    request = QUESTIONS[NAMES.index(name)]
    ours, theirs = (_asked(cluster, request) for cluster in both)
    while ErrorCode.COORDINATOR_LOAD_IN_PROGRESS in errors_of(theirs):  # its first producer ids
        time.sleep(0.1)
        theirs = _asked(both[1], request)
    different, _ = DIFFERS.get(type(request), (None, ""))
    if different in errors_of(ours):
        assert errors_of(ours) != errors_of(theirs), "it no longer differs"
        return
    assert errors_of(ours) == errors_of(theirs), f"{request}\nours: {ours}\ntheirs: {theirs}"
