"""``cotidal quota``: how much clients may take (KIP-13, KIP-546)."""

from __future__ import annotations

import click

from cotidal.cli.partitions_given import parse_rate
from cotidal.cli.table import print_json, print_table
from cotidal.cli.verb import Failed, Verb, VerbGroup, bootstrap_option, json_option

DEFAULT = "default"

user_option = click.option(
    "--user", metavar="NAME", help="Clients of a user; everybody is ANONYMOUS here."
)
client_option = click.option(
    "--client-id", metavar="NAME", help=f"Clients that call themselves so; '{DEFAULT}': all others."
)


@click.group(
    cls=VerbGroup,
    examples=(
        ("a client that writes too much, on each broker",
         "cotidal quota set --client-id importer --produce 10MB"),
        ("every client that has no quota of its own",
         "cotidal quota set --client-id default --consume 50MB"),
        ("whose are set", "cotidal quota list"),
        ("none any more", "cotidal quota clear --client-id importer"),
    ),
)  # fmt: skip
def command() -> None:
    """Bound what clients may take of each broker. Whoever takes more is made to wait."""


@command.command(
    "set",
    cls=Verb,
    examples=(
        ("bytes a second", "cotidal quota set --client-id importer --produce 10MB --consume 1MB"),
        ("a tenth of the broker's time", "cotidal quota set --client-id poller --requests 10"),
        ("five partitions created or deleted a second",
         "cotidal quota set --client-id default --mutations 5"),
    ),
)  # fmt: skip
@user_option
@client_option
@click.option("--produce", metavar="RATE", callback=parse_rate, help="Bytes written a second.")
@click.option("--consume", metavar="RATE", callback=parse_rate, help="Bytes read a second.")
@click.option("--requests", metavar="PERCENT", type=float, help="Share of a broker's time.")
@click.option("--mutations", metavar="RATE", type=float, help="Partitions changed a second.")
@bootstrap_option
def set_(
    user: str | None,
    client_id: str | None,
    produce: int | None,
    consume: int | None,
    requests: float | None,
    mutations: float | None,
    bootstrap: str,
) -> None:
    """Set quotas of a user, of a client id, or of both together; the others stay."""
    from cotidal.client.cluster import Cluster
    from cotidal.client.quotas import change_quotas, whose

    entity = _entity(user, client_id)
    given = dict(zip(_KEYS, (produce, consume, requests, mutations), strict=True))
    values = {key: float(value) for key, value in given.items() if value is not None}
    if not values:
        raise click.UsageError("say what to bound: --produce, --consume, --requests, --mutations")
    with Cluster(bootstrap) as cluster:
        change_quotas(cluster, entity, values)
    click.echo(f"the quota of {whose(entity)} is set")


@command.command(
    cls=Verb, examples=(("all quotas of a client", "cotidal quota clear --client-id importer"),)
)
@user_option
@client_option
@bootstrap_option
def clear(user: str | None, client_id: str | None, bootstrap: str) -> None:
    """Remove all quotas of a user, of a client id, or of both together."""
    from cotidal.client.cluster import Cluster
    from cotidal.client.quotas import change_quotas, quotas, whose

    entity = _entity(user, client_id)
    with Cluster(bootstrap) as cluster:
        found = [each for each in quotas(cluster) if each.entity == entity]
        if not found:
            raise Failed(f"{whose(entity)} has no quota")
        change_quotas(cluster, entity, dict.fromkeys(found[0].values))
    click.echo(f"the quota of {whose(entity)} is removed")


@command.command(
    "list",
    cls=Verb,
    examples=(("all", "cotidal quota list"), ("for a program", "cotidal quota list --json")),
)
@json_option
@bootstrap_option
def list_(as_json: bool, bootstrap: str) -> None:
    """Show the quotas that are set."""
    from cotidal.client.cluster import Cluster
    from cotidal.client.quotas import quotas

    with Cluster(bootstrap) as cluster:
        found = quotas(cluster)
    if as_json:
        print_json([{"entity": dict(each.entity), "quotas": dict(each.values)} for each in found])
    elif not found:
        click.echo("no quotas are set")
    else:
        rows = [
            (each.whose, key, f"{value:.15g}")
            for each in found
            for key, value in sorted(each.values.items())
        ]
        print_table(("OF", "QUOTA", "VALUE"), rows)


_KEYS = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
)


def _entity(user: str | None, client_id: str | None) -> dict[str, str | None]:
    given = {"user": user, "client-id": client_id}
    entity = {kind: name for kind, name in given.items() if name is not None}
    if not entity:
        raise click.UsageError("whose quota? name a --user, a --client-id or both")
    return {kind: None if name == DEFAULT else name for kind, name in entity.items()}
