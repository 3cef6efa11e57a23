"""``cotidal status``: the whole cluster on one page, and each replica of what is not well.

What is told of a replica, why it is not in sync, and what an election of it would drop is reasoned
in client/standing.py, from what client/status.py has gathered; here it is laid out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cotidal.cli.table import Cell, bytes_text, list_text, print_json, print_table, red
from cotidal.cli.verb import Verb, bootstrap_option, complete_topic, json_option

if TYPE_CHECKING:
    from cotidal.client.standing import PartitionStanding, ReplicaStanding
    from cotidal.client.status import Status

LEGEND = """\
IF ELECTED NOW: what an election of this replica would drop. Records below the high watermark are
committed: acks=all was acknowledged, and consumers may have read them. Above it, at most acks=1
was. A write with acks=0 is acknowledged to nobody: it is counted here too, and cannot be told
apart."""
EPOCHS_SHOWN = 3
UNWELL_SHOWN = 20
"""Partitions whose replicas are shown unasked: a page, not a book."""


@click.command(
    cls=Verb,
    examples=(
        ("everything, with each replica of what is not well", "cotidal status"),
        ("each replica of one topic", "cotidal status orders"),
        ("only what is not well", "cotidal status --under-replicated"),
        ("each replica of everything, for a program", "cotidal status --json"),
    ),
)
@click.argument("topics", metavar="[TOPIC]...", nargs=-1, shell_complete=complete_topic)
@click.option("--under-replicated", is_flag=True, help="Only partitions that lack a replica.")
@click.option("--replicas", is_flag=True, help="Each replica of every partition shown.")
@click.option("--internal", is_flag=True, help="Also topics that the cluster keeps for itself.")
@json_option
@bootstrap_option
def command(
    topics: tuple[str, ...],
    under_replicated: bool,
    replicas: bool,
    internal: bool,
    as_json: bool,
    bootstrap: str,
) -> None:
    """Show brokers and partitions: leader, in-sync replicas, offsets, size.

    Of a partition that is not well, or of the TOPICs that are named, each replica: what it holds,
    by leader epoch; why it is not in sync; and which records would be lost if it were elected now.
    """
    from cotidal.client.cluster import Cluster
    from cotidal.client.status import gather
    from cotidal.client.status_report import status_json

    # A broker that hangs is soon given up: the others know what there is to know of it.
    with Cluster(bootstrap, timeout_s=10.0, connect_timeout_s=2.0) as cluster:
        status = gather(cluster, topics, internal=internal or bool(topics))
    if under_replicated:
        unwell = [each for each in status.partitions if not each.is_well]
        status = status._replace(partitions=unwell)
    if as_json:
        print_json(status_json(status))
        return
    print_cluster(status)
    click.echo()
    if status.partitions:
        print_partitions(status)
        if replicas or topics:
            print_replicas(status.partitions)
        else:
            print_unwell([each for each in status.partitions if each.has_a_story])
    elif under_replicated:
        click.echo("every partition has all its replicas in sync")
    else:
        click.echo("there are no topics; create one with `cotidal topic create NAME`")


def print_cluster(status: Status) -> None:
    from cotidal.client.status_report import broker_state

    metadata, sizes = status.metadata, status.sizes
    partitions = [each for topic in metadata.topics for each in topic.partitions]
    leading = [partition.leader for partition in partitions]
    replicas = [node for partition in partitions for node in partition.replicas]
    click.echo(f"cluster {metadata.cluster_id}")
    click.echo()
    rows: list[list[Cell]] = []
    for broker in status.brokers:
        logs = sizes.get(broker.node_id)
        size = None if logs is None else sum(log.size_bytes for log in logs.values())
        rows.append(
            [
                broker.node_id,
                f"{broker.host}:{broker.port}",
                broker.rack,
                broker_state(status, broker),
                leading.count(broker.node_id),
                replicas.count(broker.node_id),
                None if size is None else bytes_text(size),
            ]
        )
    print_table(("BROKER", "ADDRESS", "RACK", "STATE", "LEADS", "REPLICAS", "SIZE"), rows)


def print_partitions(status: Status) -> None:
    from cotidal.client.status_report import size_of

    partitions = status.partitions
    lacking = sum(each.partition.is_under_replicated for each in partitions)
    leaderless = sum(not each.partition.has_leader for each in partitions)
    rows: list[list[Cell]] = []
    for each in partitions:
        partition = each.partition
        size = size_of(status, each)
        rows.append(
            [
                each.at.topic,
                partition.partition,
                partition.leader if partition.has_leader else None,
                partition.leader_epoch,
                list_text(partition.replicas),
                list_text(partition.isr),
                each.start_offset,
                each.high_watermark,
                None if size is None else bytes_text(size),
            ]
        )
    columns = ("TOPIC", "PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "START", "END", "SIZE")
    print_table(columns, rows)
    if lacking or leaderless:
        click.echo()
        click.echo(red(f"{lacking} under-replicated, {leaderless} without a leader"))


def print_unwell(partitions: list[PartitionStanding]) -> None:
    print_replicas(partitions[:UNWELL_SHOWN])
    if len(partitions) > UNWELL_SHOWN:
        click.echo()
        left = len(partitions) - UNWELL_SHOWN
        click.echo(f"and {left:,} more partitions: name a TOPIC, or say --replicas")


def print_replicas(partitions: list[PartitionStanding]) -> None:
    for each in partitions:
        click.echo()
        click.echo(headline(each))
        print_table(
            ("REPLICA", "ROLE", "START", "HW", "END", "EPOCH:END", "IF ELECTED NOW", "WHY"),
            [replica_row(replica) for replica in each.replicas],
        )
    if any(replica.loss is not None for each in partitions for replica in each.replicas):
        click.echo()
        click.echo(LEGEND)


def headline(each: PartitionStanding) -> str:
    partition = each.partition
    words = [f"{each.at}"]
    if partition.has_leader:
        words.append(f"led by {partition.leader} in epoch {partition.leader_epoch}")
    else:
        words.append("no leader")
        if each.eligible.last_known:
            words.append(f"last led by {list_text(each.eligible.last_known)}")
    if each.min_isr is not None:
        short = "" if len(partition.isr) >= each.min_isr else ": acks=all is refused"
        words.append(f"{len(partition.isr)} in sync of min {each.min_isr}{short}")
    if each.unheard:
        words.append(f"what only {list_text(each.unheard)} may hold nobody can tell")
    return ", ".join(words)


def replica_row(replica: ReplicaStanding) -> list[Cell]:
    from cotidal.client.standing import epoch_ends, loss_text

    held = replica.held
    ends = () if held is None else epoch_ends(held)
    shown = " ".join(f"{epoch}:{end}" for epoch, end in ends[-EPOCHS_SHOWN:])
    return [
        replica.node_id,
        replica.role.value,
        None if held is None else held.start_offset,
        None if held is None else held.high_watermark,
        replica.known_end,
        f".. {shown}" if len(ends) > EPOCHS_SHOWN else shown,
        None if replica.loss is None else loss_text(replica.loss),
        replica.why,
    ]
