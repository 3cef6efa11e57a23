"""Records of a partition: read from an offset, from a time, or back from the end; looked through
for a text; laid side by side, replica by replica; and one shown whole.

What a reader with read_uncommitted sees, and the markers that end transactions. Nothing above the
high watermark is served to anybody: the partition's view tells how far each replica's log goes on.
"""

from __future__ import annotations

from typing import Final

from cotidal.client.cluster import Cluster
from cotidal.client.failures import ClientError
from cotidal.client.failures import Refused as ClusterRefused
from cotidal.client.metadata import Partition, Topic
from cotidal.client.offsets import earliest_offsets, end_offsets, start_offsets
from cotidal.client.replica_reading import Placed, Stretch, read_stretch
from cotidal.client.start import AtOffset, parse_start
from cotidal.console.desk.arguments import OFFSET_MAX, partition_of
from cotidal.console.desk.decoding import FORMS, name_shown, show
from cotidal.console.desk.question import Desk
from cotidal.console.desk.replicas_compared import Copy, compare
from cotidal.console.world import Command, Json, Refused
from cotidal.errors import ErrorCode, MalformedFrame
from cotidal.limits import (
    DESK_COMPARED_MAX,
    DESK_RECORDS_MAX,
    DESK_SCANNED_BYTES_MAX,
    DESK_SCANNED_MAX,
    DESK_VALUE_BYTES_MAX,
    DESK_VALUE_WHOLE_BYTES_MAX,
)
from cotidal.values import NodeId, Offset, TopicPartition
from cotidal.wire.records import read_control_record

RECORDS_SHOWN: Final = 50


def records(desk: Desk, asked: Command) -> Json:
    """``topic``, ``partition``, ``from`` (as `cotidal consume` takes it), ``most``, ``form``,
    ``text``: only records that have it in their key or value; ``replica``: who is asked."""
    at = partition_of(asked)
    most = asked.number("most", RECORDS_SHOWN, least=1, most=DESK_RECORDS_MAX)
    form = asked.one_of("form", FORMS, "auto")
    wanted = asked.text("text", "").encode()
    topic, partition = _known(desk.cluster, at)
    node = _replica(partition, asked)
    begin, end = _bounds(desk, at, partition)
    first = _first(desk.cluster, at, asked.text("from", f"-{most}"), begin=begin, end=end)
    found: list[Placed] = []
    offset, scanned, size = int(first), 0, 0
    with desk.cluster.open_connection(node) as connection:
        while len(found) < most and offset < end:
            if scanned >= DESK_SCANNED_MAX or size >= DESK_SCANNED_BYTES_MAX:
                break
            below = min(end, offset + DESK_RECORDS_MAX)
            part = read_stretch(
                connection,
                at,
                topic.topic_id,
                offset,
                below=below,
                bytes_max=DESK_SCANNED_BYTES_MAX - size,
            )
            matching = [each for each in part.records if _has(each, wanted)]
            taken = matching[: most - len(found)]
            found += taken
            scanned += len(part.records)
            size += part.read_bytes
            if part.next_offset == offset:
                break
            # Those that were found but no longer taken are the first of the next page.
            offset = (
                part.next_offset if len(taken) == len(matching) else taken[-1].record.offset + 1
            )
    return {
        "partition": str(at),
        "replica": node,
        "start": begin,
        "end": end,
        "first": first,
        "next": offset,
        "scanned": scanned,
        "records": [record_json(each, form, longest=DESK_VALUE_BYTES_MAX) for each in found],
    }


def record(desk: Desk, asked: Command) -> Json:
    """One record whole, as far as a page can show it: ``topic``, ``partition``, ``offset``."""
    at = partition_of(asked)
    form = asked.one_of("form", FORMS, "auto")
    offset = asked.number("offset", least=0, most=OFFSET_MAX)
    topic, partition = _known(desk.cluster, at)
    with desk.cluster.open_connection(_replica(partition, asked)) as connection:
        part = read_stretch(connection, at, topic.topic_id, offset, below=offset + 1, bytes_max=1)
    if not part.records:
        raise Refused(f"{at} has no record at offset {offset} any more")
    return record_json(part.records[0], form, longest=DESK_VALUE_WHOLE_BYTES_MAX)


def compared(desk: Desk, asked: Command) -> Json:
    """The same offsets of every replica: ``topic``, ``partition``, ``from``, ``most``."""
    at = partition_of(asked)
    most = asked.number("most", RECORDS_SHOWN, least=1, most=DESK_COMPARED_MAX)
    topic, partition = _known(desk.cluster, at)
    begin, end = _bounds(desk, at, partition)
    first = _first(desk.cluster, at, asked.text("from", f"-{most}"), begin=begin, end=end)
    below = min(end, first + most)
    copies = [
        _copy(desk.cluster, at, topic, node, first=first, below=below)
        for node in partition.replicas
    ]
    told = compare(copies, leader=partition.leader, first=first, below=below)
    return {"partition": str(at), "start": begin, "end": end, "first": first, "next": below, **told}


def _copy(
    cluster: Cluster, at: TopicPartition, topic: Topic, node: NodeId, *, first: int, below: int
) -> Copy:
    """What one replica serves; why it does not."""
    try:
        with cluster.open_connection(node) as connection:
            part = read_stretch(
                connection,
                at,
                topic.topic_id,
                first,
                below=below,
                bytes_max=DESK_SCANNED_BYTES_MAX,
            )
    except ClientError as failure:
        return Copy(node, Stretch([], first, 0), str(failure))
    return Copy(node, part, None)


def record_json(placed: Placed, form: str, *, longest: int) -> Json:
    found, batch = placed
    told: Json = {
        "offset": found.offset,
        "timestamp": found.timestamp,
        "key": _bytes_json(found.key, form, longest),
        "value": _bytes_json(found.value, form, longest),
        "headers": [
            {"name": name_shown(name), "value": _bytes_json(value, "auto", longest)}
            for name, value in found.headers
        ],
        "epoch": batch.leader_epoch,
        "transactional": batch.is_transactional,
    }
    if batch.producer_id >= 0:
        sequence = int(batch.base_sequence)
        if sequence >= 0:
            sequence += found.offset - batch.base_offset
        told["producer"] = {
            "id": batch.producer_id,
            "epoch": batch.producer_epoch,
            "sequence": sequence,
        }
    if batch.is_control:
        told["marker"] = _marker(placed)
    return told


def _bytes_json(data: bytes | None, form: str, longest: int) -> Json:
    shown = show(data, form, longest=longest)
    return {
        "form": shown.form,
        "text": shown.text,
        "bytes": 0 if data is None else len(data),
        "cut": shown.is_cut,
        "note": shown.note,
    }


def _marker(placed: Placed) -> str:
    try:
        told = read_control_record(placed.record)
    except MalformedFrame:
        told = None
    return "control" if told is None else told[0].name.lower()


def _has(placed: Placed, wanted: bytes) -> bool:
    if not wanted:
        return True
    found = placed.record
    return wanted in (found.value or b"") or wanted in (found.key or b"")


def _known(cluster: Cluster, at: TopicPartition) -> tuple[Topic, Partition]:
    topic = cluster.topic(at.topic)
    for partition in topic.partitions:
        if partition.partition == at.partition:
            return topic, partition
    raise Refused(
        f"topic '{at.topic}' has no partition {at.partition};"
        f" it has {len(topic.partitions)}, from 0 on"
    )


def _replica(partition: Partition, asked: Command) -> NodeId:
    """Who is asked: whoever leads, unless a replica is named."""
    if "replica" in asked:
        named = asked.number("replica", least=0, most=OFFSET_MAX)
        if named not in partition.replicas:
            raise Refused(f"broker {named} has no replica of this partition")
        return NodeId(named)
    if not partition.has_leader:
        raise Refused("nobody leads this partition: choose a replica to read from")
    return partition.leader


def _bounds(desk: Desk, at: TopicPartition, partition: Partition) -> tuple[Offset, Offset]:
    """Where the log begins, and up to where it may be read: as its leader says, or, where nobody
    leads, as far as any replica is known to go."""
    if partition.has_leader:
        cluster = desk.cluster
        return earliest_offsets(cluster, [at])[at], end_offsets(cluster, [at])[at]
    for each in desk.seen().partitions:
        if each.at == at and each.start_offset is not None and each.high_watermark is not None:
            return each.start_offset, each.high_watermark
    raise Refused(f"nobody leads {at}, and no replica of it answers")


def _first(
    cluster: Cluster, at: TopicPartition, text: str, *, begin: Offset, end: Offset
) -> Offset:
    """Where to begin; an offset outside of what there is becomes the nearest end of it."""
    try:
        start = parse_start(text.strip())
    except ValueError as wrong:
        raise Refused(str(wrong)) from None
    if isinstance(start, AtOffset):
        return Offset(min(max(start.offset, begin), end))
    try:
        return start_offsets(cluster, [at], start)[at]
    except ClusterRefused as refused:
        if refused.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            return begin
        raise
