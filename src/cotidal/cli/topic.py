"""``cotidal topic``: create, list, describe, alter, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cotidal.cli.settings_given import parse_settings
from cotidal.cli.table import list_text, print_json, print_table
from cotidal.cli.verb import (
    Failed,
    Verb,
    VerbGroup,
    bootstrap_option,
    complete_topic,
    json_option,
)
from cotidal.words import counted

if TYPE_CHECKING:
    from cotidal.client.cluster import Cluster
    from cotidal.client.metadata import Topic


@click.group(
    cls=VerbGroup,
    examples=(
        ("three partitions on three brokers", "cotidal topic create orders --partitions 3 -r 3"),
        ("all topics", "cotidal topic list"),
    ),
)
def command() -> None:
    """Create, list, describe, alter and delete topics."""


@command.command(
    cls=Verb,
    examples=(
        (
            "partitions and replicas as the brokers default to",
            "cotidal topic create orders",
        ),
        ("six partitions, three replicas each", "cotidal topic create orders -p 6 -r 3"),
        (
            "keep records for a day",
            "cotidal topic create orders --config retention.ms=86400000",
        ),
        ("nothing is wrong if it exists", "cotidal topic create orders --if-not-exists"),
    ),
)
@click.argument("name")
@click.option("-p", "--partitions", type=click.IntRange(min=1), metavar="N", help="How many.")
@click.option(
    "-r", "--replicas", type=click.IntRange(min=1), metavar="N", help="Of each partition."
)
@click.option("--config", "settings", metavar="NAME=VALUE", multiple=True, help="A topic setting.")
@click.option("--if-not-exists", is_flag=True, help="Succeed when the topic exists already.")
@click.option("--dry-run", is_flag=True, help="Have the cluster check, and create nothing.")
@bootstrap_option
def create(
    name: str,
    partitions: int | None,
    replicas: int | None,
    settings: tuple[str, ...],
    if_not_exists: bool,
    dry_run: bool,
    bootstrap: str,
) -> None:
    """Create topic NAME."""
    from cotidal.client.admin import DEFAULT_FROM_BROKER, create_topic
    from cotidal.client.cluster import Cluster
    from cotidal.client.failures import Refused
    from cotidal.errors import ErrorCode

    configs = parse_settings(settings)
    with Cluster(bootstrap) as cluster:
        try:
            created = create_topic(
                cluster,
                name,
                partitions=partitions or DEFAULT_FROM_BROKER,
                replication_factor=replicas or DEFAULT_FROM_BROKER,
                configs=configs,
                validate_only=dry_run,
            )
        except Refused as refused:
            if if_not_exists and refused.error is ErrorCode.TOPIC_ALREADY_EXISTS:
                click.echo(f"topic '{name}' exists already")
                return
            raise
        if dry_run:
            click.echo(f"topic '{name}' could be created")
            return
        wait_for_leaders(cluster, name)
    click.echo(
        f"created topic '{name}': {counted(created.partitions, 'partition')}, "
        f"{counted(created.replication_factor, 'replica')} each"
    )


@command.command(
    "list",
    cls=Verb,
    examples=(
        ("names, partitions, replicas", "cotidal topic list"),
        ("names only, for a script", "cotidal topic list --quiet"),
    ),
)
@click.option("--internal", is_flag=True, help="Also topics that the cluster keeps for itself.")
@click.option("-q", "--quiet", is_flag=True, help="Names only, one a line.")
@json_option
@bootstrap_option
def list_topics(internal: bool, quiet: bool, as_json: bool, bootstrap: str) -> None:
    """List the topics of the cluster."""
    from cotidal.client.cluster import Cluster

    with Cluster(bootstrap) as cluster:
        found = cluster.metadata().topics
    topics = [topic for topic in found if internal or not topic.is_internal]
    if quiet:
        for topic in topics:
            click.echo(topic.name)
    elif as_json:
        print_json([summary_json(topic) for topic in topics])
    elif not topics:
        click.echo("there are no topics; create one with `cotidal topic create NAME`", err=True)
    else:
        print_table(
            ("TOPIC", "PARTITIONS", "REPLICAS", "UNDER-REPLICATED", "NO LEADER"),
            [
                (
                    topic.name,
                    len(topic.partitions),
                    topic.replication_factor,
                    sum(partition.is_under_replicated for partition in topic.partitions),
                    sum(not partition.has_leader for partition in topic.partitions),
                )
                for topic in topics
            ],
        )


@command.command(
    cls=Verb,
    examples=(
        ("partitions, leaders, replicas and settings", "cotidal topic describe orders"),
        ("for a program", "cotidal topic describe orders --json"),
    ),
)
@click.argument("name", shell_complete=complete_topic)
@json_option
@bootstrap_option
def describe(name: str, as_json: bool, bootstrap: str) -> None:
    """Describe topic NAME: its partitions, and the settings that were changed."""
    from cotidal.client.admin import ConfigSource, Resource, describe_configs
    from cotidal.client.cluster import Cluster
    from cotidal.values import uuid_text

    with Cluster(bootstrap) as cluster:
        topic = cluster.topic(name)
        configs = describe_configs(cluster, Resource.TOPIC, name)
    changed = {
        config.name: config.value for config in configs if config.source is ConfigSource.TOPIC
    }
    if as_json:
        print_json(
            {**summary_json(topic), "partitions": partitions_json(topic), "configs": changed}
        )
        return
    click.echo(
        f"{topic.name}  id {uuid_text(topic.topic_id)}  "
        f"{counted(len(topic.partitions), 'partition')}, "
        f"{counted(topic.replication_factor, 'replica')} each"
    )
    if changed:
        click.echo("settings  " + "  ".join(f"{key}={value}" for key, value in changed.items()))
    click.echo()
    print_table(
        ("PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "OFFLINE"),
        [
            (
                partition.partition,
                partition.leader if partition.has_leader else None,
                partition.leader_epoch,
                list_text(partition.replicas),
                list_text(partition.isr),
                list_text(partition.offline),
            )
            for partition in topic.partitions
        ],
    )


@command.command(
    cls=Verb,
    examples=(
        ("more partitions (there is no way back)", "cotidal topic alter orders --partitions 12"),
        (
            "a setting, and another to its default",
            "cotidal topic alter orders --config retention.ms=3600000 --unset segment.bytes",
        ),
    ),
)
@click.argument("name", shell_complete=complete_topic)
@click.option("-p", "--partitions", type=click.IntRange(min=1), metavar="N", help="In all.")
@click.option("--config", "settings", metavar="NAME=VALUE", multiple=True, help="Set a setting.")
@click.option("--unset", metavar="NAME", multiple=True, help="Return a setting to its default.")
@bootstrap_option
def alter(
    name: str,
    partitions: int | None,
    settings: tuple[str, ...],
    unset: tuple[str, ...],
    bootstrap: str,
) -> None:
    """Give topic NAME more partitions, or other settings."""
    from cotidal.client.admin import Resource, change_configs, create_partitions
    from cotidal.client.cluster import Cluster

    if partitions is None and not settings and not unset:
        raise click.UsageError("nothing to alter: give --partitions, --config or --unset")
    configs = parse_settings(settings)
    with Cluster(bootstrap) as cluster:
        if configs or unset:
            change_configs(cluster, Resource.TOPIC, name, set_to=configs, unset=unset)
            click.echo(f"changed the settings of topic '{name}'")
        if partitions is not None:
            create_partitions(cluster, name, partitions=partitions)
            wait_for_leaders(cluster, name, partitions=partitions)
            click.echo(f"topic '{name}' has {counted(partitions, 'partition')}")


@command.command(
    cls=Verb,
    examples=(
        ("one or several", "cotidal topic delete orders payments"),
        ("nothing is wrong if it is gone", "cotidal topic delete orders --if-exists"),
    ),
)
@click.argument("names", nargs=-1, required=True, shell_complete=complete_topic)
@click.option("--if-exists", is_flag=True, help="Succeed when a topic does not exist.")
@bootstrap_option
def delete(names: tuple[str, ...], if_exists: bool, bootstrap: str) -> None:
    """Delete topics, with all their records."""
    from cotidal.client.admin import delete_topics
    from cotidal.client.cluster import Cluster
    from cotidal.client.failures import UnknownTopic

    with Cluster(bootstrap) as cluster:
        for name in names:
            try:
                delete_topics(cluster, [name])
            except UnknownTopic:
                if not if_exists:
                    raise
                click.echo(f"topic '{name}' does not exist")
            else:
                click.echo(f"deleted topic '{name}'")


def wait_for_leaders(cluster: Cluster, name: str, *, partitions: int = 1) -> None:
    """What was created can be used by the next command: its leaders are known to our broker."""
    from cotidal.client.backoff import Backoff

    backoff = Backoff(timeout_s=10.0)
    while True:
        topic = cluster.metadata([name]).topic(name)
        if (
            topic is not None
            and len(topic.partitions) >= partitions
            and all(partition.has_leader for partition in topic.partitions)
        ):
            return
        if not backoff.wait():
            raise Failed(
                f"topic '{name}' is made, but some partition has no leader yet; "
                "see which with `cotidal status`"
            )


def summary_json(topic: Topic) -> dict[str, object]:
    from cotidal.values import uuid_text

    return {
        "topic": topic.name,
        "id": uuid_text(topic.topic_id),
        "internal": topic.is_internal,
        "partition_count": len(topic.partitions),
        "replication_factor": topic.replication_factor,
        "under_replicated": sum(partition.is_under_replicated for partition in topic.partitions),
        "without_leader": sum(not partition.has_leader for partition in topic.partitions),
    }


def partitions_json(topic: Topic) -> list[dict[str, object]]:
    return [
        {
            "partition": partition.partition,
            "leader": partition.leader if partition.has_leader else None,
            "leader_epoch": partition.leader_epoch,
            "replicas": partition.replicas,
            "isr": partition.isr,
            "offline": partition.offline,
        }
        for partition in topic.partitions
    ]
