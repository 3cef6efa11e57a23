"""The small text files of a log directory and of a partition, as Kafka writes them. Pure.

  leader-epoch-checkpoint             version 0, count, lines "epoch start-offset"
  replication-offset-checkpoint       version 0, count, lines "topic partition offset"; so too
  recovery-point-offset-checkpoint      are these three
  log-start-offset-checkpoint
  cleaner-offset-checkpoint
  partition.metadata                  "version: 0", "topic_id: <22 characters>"
  meta.properties                     Java properties: version, cluster.id, node.id, directory.id
  .kafka_cleanshutdown                JSON {"version": 0, "brokerEpoch": n}

Readers raise ValueError with a sentence for what they cannot read. A checkpoint without a byte
holds nothing: Kafka makes the file before it has anything to write, and a crash may leave it so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from cotidal.values import (
    NO_BROKER_EPOCH,
    ZERO_UUID,
    BrokerEpoch,
    EpochEntry,
    LeaderEpoch,
    NodeId,
    Offset,
    TopicPartition,
    Uuid,
    uuid_from_text,
    uuid_text,
)

LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"
META_PROPERTIES: Final = "meta.properties"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
CLEANED_TO: Final = "cleaner-offset-checkpoint"


def encode_epochs(entries: Iterable[EpochEntry]) -> bytes:
    return _encode_lines([f"{entry.epoch} {entry.start_offset}" for entry in entries])


def decode_epochs(data: bytes) -> tuple[EpochEntry, ...]:
    entries: list[EpochEntry] = []
    for line in _decode_lines(data, LEADER_EPOCHS):
        epoch, start = _integers(line.split(), 2, LEADER_EPOCHS, line)
        if entries and (epoch <= entries[-1].epoch or start <= entries[-1].start_offset):
            raise ValueError(f"{LEADER_EPOCHS}: '{line}' does not ascend")
        entries.append(EpochEntry(LeaderEpoch(epoch), Offset(start)))
    return tuple(entries)


def encode_offsets(offsets: Mapping[TopicPartition, Offset]) -> bytes:
    return _encode_lines(
        [f"{each.topic} {each.partition} {offset}" for each, offset in offsets.items()]
    )


def decode_offsets(data: bytes, name: str) -> dict[TopicPartition, Offset]:
    offsets: dict[TopicPartition, Offset] = {}
    for line in _decode_lines(data, name):
        topic, _, rest = line.partition(" ")
        partition, offset = _integers(rest.split(), 2, name, line)
        offsets[TopicPartition(topic, partition)] = Offset(offset)
    return offsets


def encode_partition_metadata(topic_id: Uuid) -> bytes:
    return f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode()


def decode_partition_metadata(data: bytes) -> Uuid:
    fields = _fields(data, ":", PARTITION_METADATA)
    if fields.get("version") != "0":
        raise ValueError(f"{PARTITION_METADATA}: version {fields.get('version')} is not known")
    if "topic_id" not in fields:
        raise ValueError(f"{PARTITION_METADATA}: there is no topic_id")
    return uuid_from_text(fields["topic_id"])


class MetaProperties(NamedTuple):
    """Whose directory this is."""

    cluster_id: str
    node_id: NodeId
    directory_id: Uuid


def encode_meta_properties(meta: MetaProperties) -> bytes:
    lines = [
        "#",
        f"cluster.id={meta.cluster_id}",
        f"directory.id={uuid_text(meta.directory_id)}",
        f"node.id={meta.node_id}",
        "version=1",
    ]
    return ("\n".join(lines) + "\n").encode()


def decode_meta_properties(data: bytes) -> MetaProperties:
    fields = _fields(data, "=", META_PROPERTIES)
    version = fields.get("version")
    if version not in ("0", "1"):
        raise ValueError(f"{META_PROPERTIES}: version {version} is not known")
    node = fields.get("node.id", fields.get("broker.id"))  # broker.id before KRaft
    if node is None or "cluster.id" not in fields:
        raise ValueError(f"{META_PROPERTIES}: cluster.id or node.id is missing")
    (node_id,) = _integers([node], 1, META_PROPERTIES, f"node.id={node}")
    directory = fields.get("directory.id")
    directory_id = ZERO_UUID if directory is None else uuid_from_text(directory)
    return MetaProperties(fields["cluster.id"], NodeId(node_id), directory_id)


def encode_clean_shutdown(broker_epoch: BrokerEpoch) -> bytes:
    return json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()


def decode_clean_shutdown(data: bytes) -> BrokerEpoch:
    """NO_BROKER_EPOCH for the empty file of older Kafkas: clean, epoch unknown."""
    if not data.strip():
        return NO_BROKER_EPOCH
    try:
        fields = json.loads(data)
        return BrokerEpoch(int(fields.get("brokerEpoch", NO_BROKER_EPOCH)))
    except (ValueError, AttributeError, TypeError) as wrong:
        raise ValueError(f"{CLEAN_SHUTDOWN} is not the JSON it should be") from wrong


def _encode_lines(lines: list[str]) -> bytes:
    return "\n".join(["0", str(len(lines)), *lines, ""]).encode()


def _decode_lines(data: bytes, name: str) -> list[str]:
    if not data:
        return []
    lines = _text(data, name).split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    if len(lines) < 2:
        raise ValueError(f"{name}: {len(data)} bytes hold no version and count")
    if lines[0].strip() != "0":
        raise ValueError(f"{name}: version '{lines[0][:20]}' is not known")
    (count,) = _integers([lines[1]], 1, name, lines[1])
    if count != len(lines) - 2:
        raise ValueError(f"{name}: {len(lines) - 2} lines where {count} were promised")
    return lines[2:]


def _integers(words: list[str], count: int, name: str, line: str) -> list[int]:
    try:
        numbers = [int(word) for word in words]
    except ValueError:
        numbers = []
    if len(numbers) != count:
        raise ValueError(f"{name}: '{line[:80]}' is not a line of it")
    return numbers


def _fields(data: bytes, separator: str, name: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for line in _text(data, name).splitlines():
        if not line.strip() or line.lstrip().startswith(("#", "!")):
            continue
        key, found, value = line.partition(separator)
        if not found:
            raise ValueError(f"{name}: '{line[:80]}' is not a line of it")
        # Java's Properties writer puts a backslash before = and : in values
        fields[key.strip()] = value.strip().replace("\\=", "=").replace("\\:", ":")
    return fields


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as wrong:
        raise ValueError(f"{name} is not text") from wrong
