"""``cotidal configs``: the settings of topics and brokers, where each comes from, changing them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cotidal.cli.settings_given import parse_settings
from cotidal.cli.table import print_json, print_table
from cotidal.cli.verb import Failed, Verb, VerbGroup, bootstrap_option, json_option

if TYPE_CHECKING:
    from cotidal.client.admin import Config, Resource
    from cotidal.client.cluster import Cluster

EVERY_BROKER = "all"
"""``broker all``: the cluster-wide defaults, which the protocol names with an empty string."""

kind_argument = click.argument("kind", type=click.Choice(["topic", "broker"]))


@click.group(
    cls=VerbGroup,
    examples=(
        ("what was changed anywhere", "cotidal configs list"),
        ("everything about one topic", "cotidal configs describe topic orders"),
        ("one setting of a topic", "cotidal configs set topic orders retention.ms=3600000"),
        ("a default for all brokers", "cotidal configs set broker all log.retention.ms=3600000"),
    ),
)
def command() -> None:
    """Read and change the settings of topics and brokers."""


@command.command(
    "list",
    cls=Verb,
    examples=(
        ("every setting that somebody changed", "cotidal configs list"),
        ("topics only", "cotidal configs list topic"),
    ),
)
@click.argument("kind", type=click.Choice(["topic", "broker"]), required=False)
@json_option
@bootstrap_option
def list_configs(kind: str | None, as_json: bool, bootstrap: str) -> None:
    """List the settings that were changed while the cluster ran."""
    from cotidal.client.admin import (
        ConfigSource,
        Resource,
        config_json,
        describe_configs,
        source_text,
    )
    from cotidal.client.cluster import Cluster

    dynamic = (ConfigSource.TOPIC, ConfigSource.BROKER, ConfigSource.CLUSTER)
    found: list[tuple[str, str, Config]] = []
    with Cluster(bootstrap) as cluster:
        metadata = cluster.metadata()
        asked: list[tuple[Resource, str]] = []
        if kind in (None, "topic"):
            asked += [(Resource.TOPIC, topic.name) for topic in metadata.topics]
        if kind in (None, "broker"):
            asked += [(Resource.BROKER, str(broker.node_id)) for broker in metadata.brokers]
        for resource, name in asked:
            for config in describe_configs(cluster, resource, name):
                own = config.source is not ConfigSource.CLUSTER or resource is Resource.BROKER
                if config.source in dynamic and own:
                    found.append((resource.name.lower(), name, config))
    if as_json:
        print_json(
            [{"kind": kind, "name": name, **config_json(config)} for kind, name, config in found]
        )
    elif not found:
        click.echo("no setting was changed: everything has its default", err=True)
    else:
        print_table(
            ("KIND", "NAME", "SETTING", "VALUE", "FROM"),
            [
                (kind, name, config.name, shown(config), source_text(config.source))
                for kind, name, config in found
            ],
        )


@command.command(
    cls=Verb,
    examples=(
        ("all settings of a topic", "cotidal configs describe topic orders"),
        ("one, with its meaning", "cotidal configs describe topic orders retention.ms --doc"),
        ("a broker's", "cotidal configs describe broker 1"),
    ),
)
@kind_argument
@click.argument("name")
@click.argument("settings", nargs=-1)
@click.option("--doc", is_flag=True, help="What each setting means.")
@json_option
@bootstrap_option
def describe(
    kind: str, name: str, settings: tuple[str, ...], doc: bool, as_json: bool, bootstrap: str
) -> None:
    """Show the settings of topic or broker NAME, with where each value comes from."""
    from cotidal.client.admin import config_json, describe_configs, source_text
    from cotidal.client.cluster import Cluster
    from cotidal.client.failures import nearest

    with Cluster(bootstrap) as cluster:
        resource, resource_name = resource_named(cluster, kind, name)
        configs = describe_configs(cluster, resource, resource_name, documentation=doc)
    known = {config.name: config for config in configs}
    for wanted in settings:
        if wanted not in known:
            close = nearest(wanted, known)
            hint = f"; did you mean '{close}'?" if close else ""
            raise Failed(f"{kind} '{name}' has no setting '{wanted}'{hint}")
    chosen = [known[wanted] for wanted in settings] if settings else list(configs)
    if as_json:
        print_json([config_json(config) for config in chosen])
        return
    if doc:
        for config in chosen:
            click.echo(f"{config.name}={shown(config)}  ({source_text(config.source)})")
            meaning = config.documentation or "the broker does not say what this means"
            click.echo(click.wrap_text(meaning, 96, "    ", "    "))
        return
    print_table(
        ("SETTING", "VALUE", "FROM", "CHANGEABLE"),
        [
            (
                config.name,
                shown(config),
                source_text(config.source),
                "no" if config.is_read_only else "yes",
            )
            for config in chosen
        ],
    )


@command.command(
    "set",
    cls=Verb,
    examples=(
        (
            "two at once: both or none",
            "cotidal configs set topic orders retention.ms=3600000 segment.bytes=1048576",
        ),
        ("one broker", "cotidal configs set broker 1 leader.replication.throttled.rate=10000000"),
        ("all brokers", "cotidal configs set broker all log.retention.ms=3600000"),
    ),
)
@kind_argument
@click.argument("name")
@click.argument("settings", nargs=-1, required=True, metavar="SETTING=VALUE...")
@bootstrap_option
def set_configs(kind: str, name: str, settings: tuple[str, ...], bootstrap: str) -> None:
    """Change settings of topic or broker NAME."""
    from cotidal.client.admin import change_configs
    from cotidal.client.cluster import Cluster

    values = parse_settings(settings)
    with Cluster(bootstrap) as cluster:
        resource, resource_name = resource_named(cluster, kind, name)
        change_configs(cluster, resource, resource_name, set_to=values)
    for setting, value in values.items():
        click.echo(f"{kind} {name}: {setting}={value}")


@command.command(
    cls=Verb,
    examples=(("back to the default", "cotidal configs unset topic orders retention.ms"),),
)
@kind_argument
@click.argument("name")
@click.argument("settings", nargs=-1, required=True)
@bootstrap_option
def unset(kind: str, name: str, settings: tuple[str, ...], bootstrap: str) -> None:
    """Return settings of topic or broker NAME to their defaults."""
    from cotidal.client.admin import change_configs
    from cotidal.client.cluster import Cluster

    with Cluster(bootstrap) as cluster:
        resource, resource_name = resource_named(cluster, kind, name)
        change_configs(cluster, resource, resource_name, unset=settings)
    for setting in settings:
        click.echo(f"{kind} {name}: {setting} has its default")


def resource_named(cluster: Cluster, kind: str, name: str) -> tuple[Resource, str]:
    """The resource that a user means; refused here when no such broker exists."""
    from cotidal.client.admin import Resource

    if kind == "topic":
        return Resource.TOPIC, name
    if name == EVERY_BROKER:
        return Resource.BROKER, ""
    known = [str(broker.node_id) for broker in cluster.metadata(()).brokers]
    if name not in known:
        raise Failed(f"there is no broker '{name}'; there are {', '.join(known)} and 'all'")
    return Resource.BROKER, name


def shown(config: Config) -> str | None:
    return "(hidden)" if config.is_sensitive else config.value
