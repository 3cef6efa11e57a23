"""DescribeLogDirs (key 35), versions 1-5. One log directory; nothing is cordoned."""

from __future__ import annotations

from cotidal.messages.rpc.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from cotidal.values import TopicPartition


def response(
    request: DescribeLogDirsRequest,
    *,
    log_directory: str,
    sizes: tuple[tuple[TopicPartition, int], ...],
    total_bytes: int,
    usable_bytes: int,
) -> DescribeLogDirsResponse:
    """Sizes of the partitions asked for; ``topics`` None asks for all."""
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, p) for topic in request.topics for p in topic.partitions}
    by_topic: dict[str, list[DescribeLogDirsPartition]] = {}
    for partition, size in sizes:
        if wanted is None or partition in wanted:
            by_topic.setdefault(partition.topic, []).append(
                DescribeLogDirsPartition(partition.partition, size)
            )
    topics = tuple(
        DescribeLogDirsTopic(name, tuple(partitions)) for name, partitions in by_topic.items()
    )
    result = DescribeLogDirsResult(
        log_dir=log_directory, topics=topics, total_bytes=total_bytes, usable_bytes=usable_bytes
    )
    return DescribeLogDirsResponse(results=(result,))
