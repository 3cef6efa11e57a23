"""How far a consumer group is behind: each partition, its member, and to whom it moves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from cotidal.client.cluster import Cluster
from cotidal.client.groups import DescribedGroup, Member, committed_offsets, describe_group
from cotidal.client.offsets import end_offsets
from cotidal.values import Offset, TopicPartition

Row = dict[str, int | str | None]


class GroupStanding(NamedTuple):
    group: DescribedGroup
    rows: list[Row]
    """A partition each: of those that are committed, assigned, or about to be."""

    @property
    def lag(self) -> int:
        """Of all partitions in which something is committed."""
        return sum(lag for row in self.rows if isinstance(lag := row["lag"], int))


def stand(cluster: Cluster, group: str) -> GroupStanding:
    told = describe_group(cluster, group)
    committed = committed_offsets(cluster, group)
    owners = {at: member for member in told.members for at in member.partitions}
    targets = {at: member for member in told.members for at in member.target or ()}
    wanted = sorted({*committed, *owners, *targets})
    ends = ends_of(cluster, wanted)
    rows: list[Row] = [
        {
            "topic": at.topic,
            "partition": at.partition,
            "committed": committed.get(at),
            "end": ends.get(at),
            "lag": lag(committed.get(at), ends.get(at)),
            "member": owners[at].member_id if at in owners else None,
            "host": owners[at].host if at in owners else None,
            "target": targets[at].member_id if at in targets else None,
        }
        for at in wanted
    ]
    return GroupStanding(told, rows)


def group_json(standing: GroupStanding) -> dict[str, object]:
    told = standing.group
    return {
        "group": told.name,
        "kind": told.kind,
        "state": told.state,
        "protocol": told.protocol,
        "epoch": told.epoch,
        "target_epoch": told.target_epoch,
        "lag": standing.lag,
        "members": [member_json(member) for member in told.members],
        "partitions": standing.rows,
    }


def member_json(member: Member) -> dict[str, object]:
    return {
        "member": member.member_id,
        "instance": member.instance_id,
        "client": member.client_id,
        "host": member.host,
        "partitions": [str(each) for each in member.partitions],
        "target": None if member.target is None else [str(each) for each in member.target],
        "epoch": member.epoch,
    }


def lag(committed: Offset | None, end: Offset | None) -> int | None:
    """How many records are left; None where nothing is committed, or the topic is gone."""
    return None if committed is None or end is None else max(0, end - committed)


def ends_of(cluster: Cluster, wanted: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]:
    """Of those that still exist."""
    there = {
        TopicPartition(topic.name, each.partition)
        for topic in cluster.metadata().topics
        for each in topic.partitions
    }
    return end_offsets(cluster, [at for at in wanted if at in there])
