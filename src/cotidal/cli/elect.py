"""``cotidal elect``: give leadership back, or, where nobody may lead, to whoever is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cotidal.cli.partitions_given import find_partitions
from cotidal.cli.table import print_json, print_table
from cotidal.cli.verb import (
    Failed,
    Verb,
    VerbGroup,
    bootstrap_option,
    complete_topic,
    json_option,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cotidal.client.cluster import Cluster
    from cotidal.client.moving import Outcome
    from cotidal.client.standing import PartitionStanding
    from cotidal.values import TopicPartition


@click.group(
    cls=VerbGroup,
    examples=(
        ("every partition back to its preferred leader", "cotidal elect preferred"),
        ("a leader for a partition that has none, whatever it costs",
         "cotidal elect unclean orders:0 --yes"),
    ),
)  # fmt: skip
def command() -> None:
    """Elect leaders by hand: the preferred ones, or any replica where nobody leads."""


@command.command(
    cls=Verb,
    examples=(
        ("everywhere", "cotidal elect preferred"),
        ("of one topic, of single partitions", "cotidal elect preferred orders payments:0,2"),
    ),
)
@click.argument("partitions", metavar="[TOPIC[:P,...]]...", nargs=-1, shell_complete=complete_topic)
@json_option
@bootstrap_option
def preferred(partitions: tuple[str, ...], as_json: bool, bootstrap: str) -> None:
    """Let the first replica of each partition lead it, if it is in sync."""
    from cotidal.client.cluster import Cluster
    from cotidal.client.moving import Election, elect_leaders
    from cotidal.errors import ErrorCode

    with Cluster(bootstrap) as cluster:
        wanted = list(find_partitions(cluster, partitions)) if partitions else None
        outcomes = elect_leaders(cluster, Election.PREFERRED, wanted)
        tell(cluster, outcomes, as_json=as_json, fine=(ErrorCode.ELECTION_NOT_NEEDED,))
    if not outcomes and not as_json:
        click.echo("every partition is led by its preferred replica already")


@command.command(
    cls=Verb,
    examples=(
        ("what it would cost", "cotidal elect unclean orders:0"),
        ("do it", "cotidal elect unclean orders:0 --yes"),
    ),
)
@click.argument(
    "partitions", metavar="TOPIC[:P,...]...", nargs=-1, required=True, shell_complete=complete_topic
)
@click.option("--yes", is_flag=True, help="Records may be lost: do it all the same.")
@json_option
@bootstrap_option
def unclean(partitions: tuple[str, ...], yes: bool, as_json: bool, bootstrap: str) -> None:
    """Let any replica lead where nobody does, though it may lack acknowledged records.

    Without --yes it only tells what each replica would drop.
    """
    from cotidal.client.cluster import Cluster
    from cotidal.client.moving import Election, elect_leaders

    with Cluster(bootstrap) as cluster:
        wanted = find_partitions(cluster, partitions)
        if not yes:
            warn(cluster, wanted)
        outcomes = elect_leaders(cluster, Election.UNCLEAN, list(wanted))
        tell(cluster, outcomes, as_json=as_json)


def warn(cluster: Cluster, wanted: Iterable[TopicPartition]) -> None:
    """Say what it may cost, and do nothing."""
    from cotidal.cli.status import print_replicas
    from cotidal.client.status import gather

    named = set(wanted)
    status = gather(cluster, tuple(sorted({at.topic for at in named})))
    leaderless: list[PartitionStanding] = [
        each for each in status.partitions if each.at in named and not each.partition.has_leader
    ]
    if not leaderless:
        raise Failed("every one of these partitions has a leader: there is nothing to elect")
    print_replicas(leaderless)
    click.echo()
    raise Failed("nothing was done: records may be lost; if you accept that, say --yes")


def tell(
    cluster: Cluster, outcomes: list[Outcome], *, as_json: bool, fine: tuple[int, ...] = ()
) -> None:
    """Who leads now; fails with the first refusal, after everything has been told."""
    topics = sorted({outcome.at.topic for outcome in outcomes})
    leaders = {
        (topic.name, partition.partition): partition.leader
        for topic in cluster.metadata(topics).topics
        for partition in topic.partitions
    }
    rows = [
        {
            "topic": outcome.at.topic,
            "partition": outcome.at.partition,
            "leader": leaders.get(outcome.at) if leaders.get(outcome.at, -1) >= 0 else None,
            "elected": not outcome.error,
            "reason": outcome.reason or None,
        }
        for outcome in outcomes
    ]
    if as_json:
        print_json(rows)
    else:
        print_table(
            ("TOPIC", "PARTITION", "LEADER", ""),
            [
                (
                    outcome.at.topic,
                    outcome.at.partition,
                    leaders.get(outcome.at),
                    outcome.reason or "elected",
                )
                for outcome in outcomes
            ],
        )
    refused = [each for each in outcomes if each.error and each.error not in fine]
    if refused:
        raise Failed(f"{refused[0].reason}; see who could lead with `cotidal status`")
