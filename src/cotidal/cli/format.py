"""``cotidal format``: make directories a broker's, once."""

from __future__ import annotations

import os

import click

from cotidal.cli.verb import Failed, Verb
from cotidal.values import NodeId


@click.command(
    cls=Verb,
    examples=(
        ("the directories that a config file names", "cotidal format --config server.properties"),
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
@click.option("--ignore-formatted", is_flag=True, help="Pass over what is formatted already.")
def command(
    config_path: str | None,
    data: str | None,
    node_id: int | None,
    cluster_id: str | None,
    ignore_formatted: bool,
) -> None:
    """Prepare the data directories of a broker: say once whose they are, and of which cluster.

    Give the same --cluster-id for every node of a cluster; it is printed when it is made. A config
    file may name several directories (log.dirs, metadata.log.dir): all of them are formatted. To
    take another one into use later, name it there too and format with --ignore-formatted.
    """
    if (config_path is None) == (data is None):
        raise click.UsageError("give either --config or --data")
    if config_path is not None and node_id is not None:
        raise click.UsageError("--node-id goes with --data; a config file has its own node.id")
    paths, node = (
        from_config(config_path)
        if config_path is not None
        else ([os.path.abspath(data or "")], 1 if node_id is None else node_id)
    )
    format_all(paths, NodeId(node), cluster_id, ignore_formatted=ignore_formatted)


def format_all(
    paths: list[str], node_id: NodeId, cluster_id: str | None, *, ignore_formatted: bool
) -> None:
    from cotidal.broker.storage import StorageError, format_storage, is_formatted, read_meta
    from cotidal.log.files import OsFiles

    files = OsFiles()
    try:
        formatted = [path for path in paths if is_formatted(files, path)]
        for path in formatted if ignore_formatted else ():
            meta = read_meta(files, path)
            if meta.cluster_id != (cluster_id or meta.cluster_id):
                raise Failed(f"{path} belongs to another cluster, {meta.cluster_id}")
            cluster_id = meta.cluster_id
            click.echo(f"{path} is formatted already, for node {meta.node_id}")
        if formatted and not ignore_formatted:
            format_storage(files, formatted[0], node_id=node_id, cluster_id=cluster_id)  # refuses
        for path in paths:
            if path not in formatted:
                meta = format_storage(files, path, node_id=node_id, cluster_id=cluster_id)
                cluster_id = meta.cluster_id
                click.echo(f"formatted {path} for node {meta.node_id} of cluster {meta.cluster_id}")
    except StorageError as wrong:
        raise Failed(str(wrong)) from None


def from_config(path: str) -> tuple[list[str], int]:
    """Its directories, each once, and its node id."""
    from cotidal.broker.config import ConfigError, load_config

    try:
        config = load_config(path, environment=os.environ)
    except ConfigError as wrong:
        raise Failed(str(wrong), status=2) from None
    return list(dict.fromkeys((*config.log_dirs, config.metadata_dir))), config.node_id
