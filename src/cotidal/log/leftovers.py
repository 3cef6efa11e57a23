"""Directories that were logs, or are to be, and the names by which they are told from logs.

  <topic>-<n>.<topic id>-delete    of a deleted topic: goes after file.delete.delay.ms
  <topic>-<n>.<topic id>-stray     a log that metadata does not give this node: kept until somebody
                                   removes it
  <topic>-<n>.<topic id>-future    a copy that is to take the place of a log (broker/moving.py)

Kafka has the same endings, which no partition's name can have, and any 32 digits before them. A
stray is renamed and never removed, as in Kafka: that nobody needs it is known from the metadata log
alone, and one who has restored an old one would lose data.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from cotidal.log.checkpoint import PARTITION_METADATA, decode_partition_metadata
from cotidal.log.filesystem import FileSystem
from cotidal.log.metadata_store import METADATA_PARTITION
from cotidal.values import ZERO_UUID, TopicPartition, Uuid

DOOMED: Final = "-delete"
STRAY: Final = "-stray"
FUTURE: Final = "-future"
NAME_BYTES_MAX: Final = 255
"""Of a file system; a topic's name may be nearly as long."""


def leftover_name(partition: TopicPartition, topic_id: Uuid, kind: str) -> str:
    suffix = f"-{partition.partition}.{topic_id.hex()}{kind}"
    return partition.topic[: NAME_BYTES_MAX - len(suffix)] + suffix


def strays(files: FileSystem, path: str, kept: Container[TopicPartition]) -> list[TopicPartition]:
    """Logs in this directory that are of none of these partitions."""
    found = []
    for name in files.listdir(path):
        partition = _partition_of(name)
        if partition is None or partition == METADATA_PARTITION or partition in kept:
            continue
        if _is_log(files, f"{path}/{name}"):
            found.append(partition)
    return found


def put_aside(files: FileSystem, path: str, partition: TopicPartition) -> str:
    """Rename a log to be a stray; its new name. One that became a stray before keeps its own."""
    number = int.from_bytes(_topic_id(files, f"{path}/{partition}"))
    while True:
        stray = leftover_name(partition, Uuid(number.to_bytes(16)), STRAY)
        if not files.exists(f"{path}/{stray}"):
            break
        number = (number + 1) % (1 << 128)
    files.rename(f"{path}/{partition}", f"{path}/{stray}")
    files.sync_directory(path)
    return stray


def _partition_of(name: str) -> TopicPartition | None:
    topic, _, digits = name.rpartition("-")
    if not topic or not (digits.isascii() and digits.isdigit()):
        return None
    partition = TopicPartition(topic, int(digits))
    return partition if str(partition) == name else None


def _is_log(files: FileSystem, directory: str) -> bool:
    """Something else of that name, which a person has put there, is left alone."""
    try:
        names = files.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return any(name == PARTITION_METADATA or name.endswith(".log") for name in names)


def _topic_id(files: FileSystem, directory: str) -> Uuid:
    try:
        return decode_partition_metadata(files.read(f"{directory}/{PARTITION_METADATA}"))
    except (FileNotFoundError, ValueError):
        return ZERO_UUID  # a crash came before it was written
