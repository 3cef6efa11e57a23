from __future__ import annotations

from cotidal.api.assign_replicas_to_dirs import decide
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
)
from cotidal.values import Uuid

DIRECTORY = Uuid(b"d" * 16)


def ask(cluster, *partitions, sender=1, epoch=None):
    """Partitions by topic and number."""
    topics = tuple(
        AssignReplicasToDirsRequestTopicData(
            cluster.image.topics[topic].topic_id,
            (AssignReplicasToDirsRequestPartitionData(number),),
        )
        for topic, number in partitions
    )
    return AssignReplicasToDirsRequest(
        sender,
        cluster.epoch(sender) if epoch is None else epoch,
        (AssignReplicasToDirsRequestDirectoryData(DIRECTORY, topics),),
    )


def test_each_partition_is_assigned_or_refused_by_itself(cluster, asked):
    request = ask(cluster, ("orders", 0), ("orders", 0), ("orders", 9), ("lonely", 0))
    reply = cluster.commit(decide(request, asked(0), cluster.controller))
    (directory,) = reply.directories
    assert directory.id == DIRECTORY
    assert [topic.partitions[0].error_code for topic in directory.topics] == [
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ]
    partition = cluster.image.partition("orders", 0)
    assert partition.directory(1) == DIRECTORY
    assert partition.isr == (1, 2, 3)


def test_what_is_known_already_writes_nothing(cluster, asked):
    cluster.commit(decide(ask(cluster, ("orders", 0)), asked(0), cluster.controller))
    again = decide(ask(cluster, ("orders", 0)), asked(0), cluster.controller)
    assert again.records == ()
    assert again.reply.directories[0].topics[0].partitions[0].error_code == ErrorCode.NONE


def test_stale_broker_is_refused_as_a_whole(cluster, asked):
    decision = decide(ask(cluster, ("orders", 0), epoch=99), asked(0), cluster.controller)
    assert (decision.records, decision.reply.directories) == ((), ())
    assert decision.reply.error_code == ErrorCode.STALE_BROKER_EPOCH
