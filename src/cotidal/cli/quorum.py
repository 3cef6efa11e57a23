"""``cotidal quorum``: who decides, and how far the others have followed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from cotidal.cli.table import Cell, print_json, print_table
from cotidal.cli.verb import Verb, bootstrap_option, json_option

if TYPE_CHECKING:
    from cotidal.client.admin import Quorum, QuorumMember


@click.command(
    cls=Verb,
    examples=(
        ("controllers, and brokers that follow them", "cotidal quorum"),
        ("for a program", "cotidal quorum --json"),
    ),
)
@json_option
@bootstrap_option
def command(as_json: bool, bootstrap: str) -> None:
    """Show the metadata quorum: leader, epoch, voters, observers, lag."""
    from cotidal.client.admin import describe_quorum
    from cotidal.client.cluster import Cluster

    with Cluster(bootstrap) as cluster:
        quorum = describe_quorum(cluster)
    if as_json:
        print_json(quorum_json(quorum))
        return
    click.echo(
        f"leader {quorum.leader}  epoch {quorum.leader_epoch}  "
        f"committed below offset {quorum.high_watermark}"
    )
    click.echo()
    leader_end = end_of_leader(quorum)
    print_table(
        ("NODE", "ROLE", "END", "LAG", "LAST FETCH", "CAUGHT UP"),
        [
            row(member, role, quorum, leader_end)
            for role, members in (("voter", quorum.voters), ("observer", quorum.observers))
            for member in members
        ],
    )


def row(member: QuorumMember, role: str, quorum: Quorum, leader_end: int) -> list[Cell]:
    leads = member.node_id == quorum.leader
    return [
        member.node_id,
        "leader" if leads else role,
        member.end_offset,
        max(0, leader_end - member.end_offset),
        None if leads else ago(member.last_fetch_ms),
        None if leads else ago(member.last_caught_up_ms),
    ]


def end_of_leader(quorum: Quorum) -> int:
    return max((member.end_offset for member in quorum.voters if member.node_id == quorum.leader),
               default=quorum.high_watermark)  # fmt: skip


def ago(wall_ms: int) -> str | None:
    if wall_ms < 0:
        return None
    return f"{max(0.0, time.time() - wall_ms / 1000):.1f} s ago"


def quorum_json(quorum: Quorum) -> dict[str, object]:
    leader_end = end_of_leader(quorum)

    def members(of: tuple[QuorumMember, ...]) -> list[dict[str, object]]:
        return [
            {
                "node": member.node_id,
                "end_offset": member.end_offset,
                "lag": max(0, leader_end - member.end_offset),
                "last_fetch_ms": member.last_fetch_ms,
                "last_caught_up_ms": member.last_caught_up_ms,
            }
            for member in of
        ]

    return {
        "leader": quorum.leader,
        "leader_epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "voters": members(quorum.voters),
        "observers": members(quorum.observers),
    }
