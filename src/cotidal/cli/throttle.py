"""``cotidal throttle``: how much of the network replicas may take that catch up (KIP-73)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cotidal.cli.partitions_given import parse_rate
from cotidal.cli.table import print_json, print_table
from cotidal.cli.verb import Verb, VerbGroup, bootstrap_option, complete_topic, json_option

if TYPE_CHECKING:
    from cotidal.client.cluster import Cluster
    from cotidal.values import NodeId

broker_option = click.option(
    "--broker", "brokers", metavar="ID", type=int, multiple=True, help="Otherwise all that serve."
)


@click.group(
    cls=VerbGroup,
    examples=(
        ("replicas of a topic that catch up, 10 MB a second a broker",
         "cotidal throttle set 10MB orders"),
        ("what is throttled", "cotidal throttle show"),
        ("nothing any more", "cotidal throttle clear"),
    ),
)  # fmt: skip
def command() -> None:
    """Bound what replicas that are not in sync may fetch. Whoever is in sync is never held back."""


@command.command(
    "set",
    cls=Verb,
    examples=(
        ("10 MB a second, in and out of each broker", "cotidal throttle set 10MB orders payments"),
        ("another rate on one broker", "cotidal throttle set 2MB --broker 3"),
    ),
)
@click.argument("rate", callback=parse_rate)
@click.argument("topics", metavar="[TOPIC]...", nargs=-1, shell_complete=complete_topic)
@broker_option
@bootstrap_option
def set_(rate: int, topics: tuple[str, ...], brokers: tuple[int, ...], bootstrap: str) -> None:
    """Set the RATE of brokers (500KB, 10MB, ...), and throttle every replica of the TOPICs."""
    from cotidal.cli.table import bytes_text
    from cotidal.client.cluster import Cluster
    from cotidal.client.throttling import limit_brokers, limit_topics

    with Cluster(bootstrap) as cluster:
        for name in topics:
            cluster.topic(name)
        chosen = chosen_brokers(cluster, brokers)
        limit_topics(cluster, topics)
        limit_brokers(cluster, chosen, rate)
    listed = ", ".join(map(str, chosen))
    click.echo(f"throttled replicas take at most {bytes_text(rate)} a second on broker {listed}")


@command.command(
    cls=Verb,
    examples=(
        ("everything", "cotidal throttle clear"),
        ("one topic; rates stay", "cotidal throttle clear orders"),
    ),
)
@click.argument("topics", metavar="[TOPIC]...", nargs=-1, shell_complete=complete_topic)
@bootstrap_option
def clear(topics: tuple[str, ...], bootstrap: str) -> None:
    """Throttle these TOPICs no more; without any, nothing: no topic, no broker."""
    from cotidal.client.cluster import Cluster
    from cotidal.client.throttling import broker_throttles, lift, topic_throttles

    with Cluster(bootstrap) as cluster:
        if topics:
            lift(cluster, brokers=(), topics=topics)
            click.echo(f"throttled no more: {', '.join(topics)}")
            return
        metadata = cluster.metadata()
        names = [each.topic for each in topic_throttles(cluster, [t.name for t in metadata.topics])]
        rated = [
            each.node_id
            for each in broker_throttles(cluster, [b.node_id for b in metadata.brokers])
        ]
        lift(cluster, brokers=rated, topics=names)
    click.echo("nothing is throttled")


@command.command(
    cls=Verb,
    examples=(
        ("rates and replicas", "cotidal throttle show"),
        ("for a program", "cotidal throttle show --json"),
    ),
)
@json_option
@bootstrap_option
def show(as_json: bool, bootstrap: str) -> None:
    """Show the rates of brokers, and which replicas they hold for."""
    from cotidal.client.cluster import Cluster
    from cotidal.client.throttling import broker_throttles, topic_throttles

    with Cluster(bootstrap) as cluster:
        metadata = cluster.metadata()
        brokers = broker_throttles(cluster, [broker.node_id for broker in metadata.brokers])
        topics = topic_throttles(cluster, [topic.name for topic in metadata.topics])
    if as_json:
        print_json(
            {
                "brokers": [
                    {
                        "id": each.node_id,
                        "leader_bytes_per_second": each.leader_rate,
                        "follower_bytes_per_second": each.follower_rate,
                    }
                    for each in brokers
                ],
                "topics": [
                    {"topic": each.topic, "leaders": each.leaders, "followers": each.followers}
                    for each in topics
                ],
            }
        )
        return
    if not brokers and not topics:
        click.echo("nothing is throttled")
        return
    print_table(("BROKER", "AS LEADER, B/S", "AS FOLLOWER, B/S"), brokers)
    if brokers and topics:
        click.echo()
    print_table(("TOPIC", "AS LEADERS", "AS FOLLOWERS"), topics)


def chosen_brokers(cluster: Cluster, given: tuple[int, ...]) -> list[NodeId]:
    from cotidal.cli.verb import Failed
    from cotidal.values import NodeId

    serving = [broker.node_id for broker in cluster.metadata(()).brokers]
    for node in given:
        if node not in serving:
            known = ", ".join(map(str, serving))
            raise Failed(f"no broker {node} serves; those that do are {known}")
    return [NodeId(node) for node in given] or serving
