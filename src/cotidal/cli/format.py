"""``cotidal format``: make a directory a broker's, once."""

from __future__ import annotations

import os

import click

from cotidal.cli.verb import Failed, Verb
from cotidal.values import NodeId


@click.command(
    cls=Verb,
    examples=(
        ("the directory that a config file names", "cotidal format --config server.properties"),
        ("a directory, for node 1 of a new cluster", "cotidal format --data /var/lib/cotidal"),
        (
            "for another node of the same cluster",
            "cotidal format --data /srv/n2 --node-id 2 --cluster-id MkU3OEVBNTcwNTJENDM2Qg",
        ),
    ),
)
@click.option("--config", "config_path", metavar="FILE", help="A server.properties file.")
@click.option("--data", metavar="DIR", help="The directory, when there is no file.")
@click.option(
    "--node-id", type=click.IntRange(min=0), metavar="N", help="With --data.  [default: 1]"
)
@click.option("--cluster-id", metavar="ID", help="The cluster to belong to.  [default: a new one]")
@click.option("--ignore-formatted", is_flag=True, help="Succeed when it is formatted already.")
def command(
    config_path: str | None,
    data: str | None,
    node_id: int | None,
    cluster_id: str | None,
    ignore_formatted: bool,
) -> None:
    """Prepare a data directory for a broker: say once whose it is, and of which cluster.

    Give the same --cluster-id for every node of a cluster; it is printed when it is made.
    """
    from cotidal.broker.storage import StorageError, format_storage, is_formatted, read_meta
    from cotidal.log.files import OsFiles

    if (config_path is None) == (data is None):
        raise click.UsageError("give either --config or --data")
    if config_path is not None and node_id is not None:
        raise click.UsageError("--node-id goes with --data; a config file has its own node.id")
    path, node = (
        from_config(config_path)
        if config_path is not None
        else (os.path.abspath(data or ""), 1 if node_id is None else node_id)
    )
    files = OsFiles()
    try:
        if ignore_formatted and is_formatted(files, path):
            meta = read_meta(files, path)
            if cluster_id is not None and meta.cluster_id != cluster_id:
                raise Failed(f"{path} belongs to another cluster, {meta.cluster_id}")
            click.echo(f"{path} is formatted already, for node {meta.node_id}")
            return
        meta = format_storage(files, path, node_id=NodeId(node), cluster_id=cluster_id)
    except StorageError as wrong:
        raise Failed(str(wrong)) from None
    click.echo(f"formatted {path} for node {meta.node_id} of cluster {meta.cluster_id}")


def from_config(path: str) -> tuple[str, int]:
    from cotidal.broker.config import ConfigError, load_config

    try:
        config = load_config(path, environment=os.environ)
    except ConfigError as wrong:
        raise Failed(str(wrong), status=2) from None
    return config.log_dirs[0], config.node_id
