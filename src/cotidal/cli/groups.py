"""``cotidal groups``: list, describe, reset, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cotidal.cli.table import print_json, print_table
from cotidal.cli.verb import Failed, Verb, VerbGroup, bootstrap_option, complete_topic, json_option

if TYPE_CHECKING:
    pass


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
    from cotidal.client.group_lag import group_json, stand

    with Cluster(bootstrap) as cluster:
        told = stand(cluster, group)
    if as_json:
        print_json(group_json(told))
        return
    known = told.group
    members = f"{len(known.members)} member{'' if len(known.members) == 1 else 's'}"
    assignor = f", assigned by {known.protocol}" if known.protocol else ""
    epoch = "" if known.epoch is None else f", epoch {known.epoch}"
    print(
        f"{known.kind} group '{group}': {known.state}{epoch}, {members}{assignor}, "
        f"{told.lag} records behind"
    )
    print_table(*partition_table(told.rows))


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
