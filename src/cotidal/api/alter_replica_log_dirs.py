"""AlterReplicaLogDirs (key 34), versions 1-2. KIP-113.

Replicas of this broker move to other log directories of its own while they are used. The answer
says that a move has begun; DescribeLogDirs shows how far it has come. To name the directory where a
replica is ends its move. Kafka's errors: LOG_DIR_NOT_FOUND for a path that is not in log.dirs,
KAFKA_STORAGE_ERROR where either directory is offline, REPLICA_NOT_AVAILABLE without a replica here.
Moves keep to replica.alter.log.dirs.io.max.bytes.per.second.

Not there: a directory for a replica that this broker does not have yet.
"""

from __future__ import annotations

from cotidal.core.cluster.image import Image
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from cotidal.values import TopicPartition


def moves(request: AlterReplicaLogDirsRequest) -> tuple[tuple[str, TopicPartition], ...]:
    """Path and partition, in the order of the request; a partition that is named again goes to the
    directory that is named last."""
    return tuple(
        (directory.path, TopicPartition(topic.name, number))
        for directory in request.dirs
        for topic in directory.topics
        for number in topic.partitions
    )


def response(
    request: AlterReplicaLogDirsRequest, errors: tuple[ErrorCode, ...], image: Image
) -> AlterReplicaLogDirsResponse:
    """``errors``: of each move."""
    by_topic: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for (_, partition), error in zip(moves(request), errors, strict=True):
        if error is ErrorCode.REPLICA_NOT_AVAILABLE and image.partition(*partition) is None:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        by_topic.setdefault(partition.topic, []).append(
            AlterReplicaLogDirPartitionResult(partition.partition, error)
        )
    return AlterReplicaLogDirsResponse(
        results=tuple(
            AlterReplicaLogDirTopicResult(name, tuple(partitions))
            for name, partitions in by_topic.items()
        )
    )
