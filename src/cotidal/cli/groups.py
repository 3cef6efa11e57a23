"""``cotidal groups``: list, describe, reset, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cotidal.cli.table import print_json, print_table
from cotidal.cli.verb import Failed, Verb, VerbGroup, bootstrap_option, complete_topic, json_option

if TYPE_CHECKING:
    from cotidal.client.cluster import Cluster
    from cotidal.client.groups import DescribedGroup
    from cotidal.values import Offset, TopicPartition


@click.group(
    cls=VerbGroup,
    examples=(
        ("all groups", "cotidal groups list"),
        ("how far a group is behind", "cotidal groups describe readers"),
    ),
)
def command() -> None:
    """List, describe, reset and delete consumer groups."""


@command.command(
    "list",
    cls=Verb,
    examples=(
        ("all groups", "cotidal groups list"),
        ("those that nobody is in", "cotidal groups list --state Empty"),
    ),
)
@click.option("--state", metavar="STATE", help="Only groups in this state.")
@json_option
@bootstrap_option
def list_(state: str | None, as_json: bool, bootstrap: str) -> None:
    """List the groups of the cluster, of the classic and of the consumer protocol."""
    from cotidal.client.cluster import Cluster
    from cotidal.client.groups import list_groups

    with Cluster(bootstrap) as cluster:
        found = list_groups(cluster)
    if state is not None:
        found = [group for group in found if group.state.lower() == state.lower()]
    if as_json:
        print_json(
            [
                {
                    "group": group.name,
                    "state": group.state,
                    "kind": group.kind,
                    "protocol_type": group.protocol_type,
                    "coordinator": group.coordinator,
                }
                for group in found
            ]
        )
        return
    print_table(
        ("GROUP", "KIND", "STATE", "TYPE", "COORDINATOR"),
        [
            (group.name, group.kind, group.state, group.protocol_type, group.coordinator)
            for group in found
        ],
    )


@command.command(
    cls=Verb,
    examples=(
        ("members, offsets and lag", "cotidal groups describe readers"),
        ("for a program", "cotidal groups describe readers --json | jq .lag"),
    ),
)
@click.argument("group")
@json_option
@bootstrap_option
def describe(group: str, as_json: bool, bootstrap: str) -> None:
    """Show the members of GROUP, what it has committed, and how far it is behind.

    Of a group of the consumer protocol also its epoch, and to whom partitions are about to move.
    """
    from cotidal.client.cluster import Cluster
    from cotidal.client.groups import committed_offsets, describe_group

    with Cluster(bootstrap) as cluster:
        told = describe_group(cluster, group)
        committed = committed_offsets(cluster, group)
        owners = {at: member for member in told.members for at in member.partitions}
        targets = {at: member for member in told.members for at in member.target or ()}
        wanted = sorted({*committed, *owners, *targets})
        ends = ends_of(cluster, wanted)
    rows = [
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
    total = sum(row["lag"] for row in rows if isinstance(row["lag"], int))
    if as_json:
        print_json(
            {
                "group": group,
                "kind": told.kind,
                "state": told.state,
                "protocol": told.protocol,
                "epoch": told.epoch,
                "target_epoch": told.target_epoch,
                "lag": total,
                "members": [member_json(told, at) for at in range(len(told.members))],
                "partitions": rows,
            }
        )
        return
    members = f"{len(told.members)} member{'' if len(told.members) == 1 else 's'}"
    assignor = f", assigned by {told.protocol}" if told.protocol else ""
    epoch = "" if told.epoch is None else f", epoch {told.epoch}"
    print(
        f"{told.kind} group '{group}': {told.state}{epoch}, {members}{assignor}, "
        f"{total} records behind"
    )
    print_table(*partition_table(rows))


def partition_table(
    rows: list[dict[str, int | str | None]],
) -> tuple[tuple[str, ...], list[tuple[int | str | None, ...]]]:
    """Head and rows; to whom partitions move is a column of its own while any do."""
    head = ("TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "MEMBER", "HOST", "MOVES TO")
    body = []
    for row in rows:
        *told, target = row.values()
        body.append((*told, None if target == row["member"] else target))
    if all(row[-1] is None for row in body):
        return head[:-1], [row[:-1] for row in body]
    return head, body


def member_json(told: DescribedGroup, at: int) -> dict[str, object]:
    member = told.members[at]
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


def ends_of(cluster: Cluster, wanted: list[TopicPartition]) -> dict[TopicPartition, Offset]:
    """Of those that still exist."""
    from cotidal.client.offsets import end_offsets
    from cotidal.values import TopicPartition

    there = {
        TopicPartition(topic.name, each.partition)
        for topic in cluster.metadata().topics
        for each in topic.partitions
    }
    return end_offsets(cluster, [at for at in wanted if at in there])


@command.command(
    cls=Verb,
    examples=(
        ("read everything again", "cotidal groups reset readers orders --to earliest"),
        ("skip what has piled up", "cotidal groups reset readers orders --to latest"),
        ("go back to this morning", "cotidal groups reset readers orders --to 2026-01-31T06:00"),
        ("only look", "cotidal groups reset readers orders --to earliest --dry-run"),
    ),
)
@click.argument("group")
@click.argument("topic", shell_complete=complete_topic)
@click.option(
    "--to",
    "start_text",
    metavar="WHERE",
    required=True,
    help="earliest, latest, an OFFSET, -N (before the end), or a time: 2026-01-31T12:00Z, @MILLIS.",
)
@click.option(
    "-p",
    "--partition",
    type=click.IntRange(min=0),
    metavar="N",
    multiple=True,
    help="Only this one; may be given again.",
)
@click.option("--dry-run", is_flag=True, help="Say where it would go, and change nothing.")
@bootstrap_option
def reset(
    group: str,
    topic: str,
    start_text: str,
    partition: tuple[int, ...],
    dry_run: bool,
    bootstrap: str,
) -> None:
    """Set what GROUP has committed for TOPIC; nobody may be in the group."""
    from cotidal.cli.consume import chosen_partitions
    from cotidal.client.cluster import Cluster
    from cotidal.client.failures import Refused
    from cotidal.client.groups import commit_offsets
    from cotidal.client.offsets import start_offsets
    from cotidal.client.start import parse_start
    from cotidal.errors import ErrorCode

    try:
        start = parse_start(start_text)
    except ValueError as wrong:
        raise click.UsageError(str(wrong)) from None
    with Cluster(bootstrap) as cluster:
        positions = start_offsets(
            cluster, chosen_partitions(cluster.topic(topic), partition), start
        )
        if not dry_run:
            try:
                commit_offsets(cluster, group, positions)
            except Refused as refused:
                if refused.error is ErrorCode.UNKNOWN_MEMBER_ID:
                    raise Failed(
                        f"group '{group}' has members; stop them first, or look at them with "
                        f"`cotidal groups describe {group}`"
                    ) from None
                raise
    rows = [(at.topic, at.partition, int(offset)) for at, offset in sorted(positions.items())]
    print_table(("TOPIC", "PARTITION", "WOULD BE" if dry_run else "NOW"), rows)


@command.command(cls=Verb, examples=(("it and its offsets", "cotidal groups delete readers"),))
@click.argument("groups", nargs=-1, required=True, metavar="GROUP...")
@bootstrap_option
def delete(groups: tuple[str, ...], bootstrap: str) -> None:
    """Delete each GROUP and what it has committed; nobody may be in it."""
    from cotidal.client.cluster import Cluster
    from cotidal.client.groups import delete_group

    with Cluster(bootstrap) as cluster:
        for group in groups:
            delete_group(cluster, group)
            print(f"deleted group '{group}'")
