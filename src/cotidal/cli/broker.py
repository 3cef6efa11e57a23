"""``cotidal broker``: one node of a cluster, as its server.properties says."""

from __future__ import annotations

import os

import click

from cotidal.cli.settings_given import parse_settings
from cotidal.cli.verb import Failed, Verb


@click.command(
    cls=Verb,
    examples=(
        ("one node", "cotidal broker --config server.properties"),
        (
            "with a setting of its own",
            "cotidal broker --config server.properties --override node.id=2",
        ),
    ),
)
@click.option("--config", "path", metavar="FILE", required=True, help="A server.properties file.")
@click.option(
    "--override", metavar="NAME=VALUE", multiple=True, help="Wins over the file and COTIDAL_NAME."
)
@click.option("--trace", metavar="FILE", help="Record every step of the node, for `sim replay`.")
def command(path: str, override: tuple[str, ...], trace: str | None) -> int:
    """Run one broker in the foreground; SIGTERM or Ctrl-C stops it cleanly.

    Its directory must be formatted: see `cotidal format`. Settings are Kafka's; a setting such
    as log.dirs can also be given in the environment, as COTIDAL_LOG_DIRS.
    """
    from cotidal.broker.config import ConfigError, load_config

    try:
        config = load_config(path, overrides=parse_settings(override), environment=os.environ)
    except ConfigError as wrong:
        raise Failed(str(wrong), status=2) from None
    # A mistake in the file is told before the rest of a broker is imported.
    from cotidal.broker.main import run_broker

    return run_broker(config, trace=trace)
