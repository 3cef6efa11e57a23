"""DescribeLogDirs (key 35), versions 1-5. KIP-113, KIP-827. Nothing is cordoned.

A replica that moves to another directory is in both: where it is, and as a future one where it
goes, with the offsets that are not there yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cotidal.errors import ErrorCode
from cotidal.messages.rpc.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from cotidal.values import TopicPartition


class Measured(NamedTuple):
    """A log directory and the sizes of the logs in it."""

    path: str
    offline: bool
    sizes: tuple[tuple[TopicPartition, int], ...]
    total_bytes: int
    usable_bytes: int
    moving: tuple[tuple[TopicPartition, int, int], ...] = ()
    """On their way here: the bytes that are there, the offsets that are not."""


def response(
    request: DescribeLogDirsRequest, directories: Sequence[Measured]
) -> DescribeLogDirsResponse:
    """Sizes of the partitions asked for; ``topics`` None asks for all. A directory that is offline
    is named with its error, and nothing is said of what it held."""
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, p) for topic in request.topics for p in topic.partitions}
    return DescribeLogDirsResponse(
        results=tuple(_described(directory, wanted) for directory in directories)
    )


def _described(directory: Measured, wanted: set[tuple[str, int]] | None) -> DescribeLogDirsResult:
    if directory.offline:
        return DescribeLogDirsResult(
            error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.path
        )
    by_topic: dict[str, list[DescribeLogDirsPartition]] = {}
    held = [(partition, size, 0, False) for partition, size in directory.sizes]
    coming = [(*moving, True) for moving in directory.moving]
    for partition, size, lag, is_future in (*held, *coming):
        if wanted is None or partition in wanted:
            by_topic.setdefault(partition.topic, []).append(
                DescribeLogDirsPartition(partition.partition, size, lag, is_future)
            )
    topics = tuple(
        DescribeLogDirsTopic(name, tuple(partitions)) for name, partitions in by_topic.items()
    )
    return DescribeLogDirsResult(
        log_dir=directory.path,
        topics=topics,
        total_bytes=directory.total_bytes,
        usable_bytes=directory.usable_bytes,
    )
