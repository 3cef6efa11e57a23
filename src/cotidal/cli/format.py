"""``cotidal format``: make directories a broker's, once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import click

from cotidal.cli.verb import Failed, Verb
from cotidal.values import NodeId, Uuid

if TYPE_CHECKING:
    from cotidal.broker.config import BrokerConfig
    from cotidal.messages.records.quorum import VotersRecordVoter


@click.command(
    cls=Verb,
    examples=(
        ("the directories that a config file names", "cotidal format --config server.properties"),
        ("a directory, for node 1 of a new cluster", "cotidal format --data /var/lib/cotidal"),
        (
            "for another node of the same cluster",
            "cotidal format --data /srv/n2 --node-id 2 --cluster-id MkU3OEVBNTcwNTJENDM2Qg",
        ),
        (
            "the first controller of a cluster whose voters can be changed",
            "cotidal format --config c1.properties --standalone",
        ),
        (
            "another one, to be added later with `cotidal quorum add-voter`",
            "cotidal format --config c2.properties --cluster-id MkU3OEVBNTcwNTJENDM2Qg"
            " --no-initial-controllers",
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
@click.option("--standalone", is_flag=True, help="This node is the only voter at first.")
@click.option(
    "--initial-controllers",
    metavar="ID@HOST:PORT:DIRECTORY-ID,...",
    help="The voters at first; the same for each of them.",
)
@click.option("--no-initial-controllers", is_flag=True, help="Others vote already, or will.")
def command(
    config_path: str | None,
    data: str | None,
    node_id: int | None,
    cluster_id: str | None,
    ignore_formatted: bool,
    standalone: bool,
    initial_controllers: str | None,
    no_initial_controllers: bool,
) -> None:
    """Prepare the data directories of a broker: say once whose they are, and of which cluster.

    Give the same --cluster-id for every node of a cluster; it is printed when it is made. A config
    file may name several directories (log.dirs, metadata.log.dir): all of them are formatted. To
    take another one into use later, name it there too and format with --ignore-formatted.

    With controller.quorum.voters the voters are fixed. Otherwise say here who they are at first, at
    each of the first controllers in the same way; they can be changed later.
    """
    chosen = [standalone, initial_controllers is not None, no_initial_controllers]
    if sum(chosen) > 1:
        raise click.UsageError(
            "choose one of --standalone, --initial-controllers and --no-initial-controllers"
        )
    if any(chosen) and config_path is None:
        raise click.UsageError("who votes at first depends on the listeners: give --config")
    if (config_path is None) == (data is None):
        raise click.UsageError("give either --config or --data")
    if config_path is not None and node_id is not None:
        raise click.UsageError("--node-id goes with --data; a config file has its own node.id")
    paths, node = (
        from_config(config_path)
        if config_path is not None
        else ([os.path.abspath(data or "")], 1 if node_id is None else node_id)
    )
    first = (
        FirstVoters()
        if config_path is None
        else first_voters(config_path, initial_controllers, alone=standalone)
    )
    format_all(paths, NodeId(node), cluster_id, first, ignore_formatted=ignore_formatted)


class FirstVoters(NamedTuple):
    """What formatting is told about who votes."""

    metadata_dir: str = ""
    voters: tuple[VotersRecordVoter, ...] = ()
    directory_id: Uuid | None = None
    """That the others know this node's metadata directory by."""


def format_all(
    paths: list[str],
    node_id: NodeId,
    cluster_id: str | None,
    first: FirstVoters,
    *,
    ignore_formatted: bool,
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
                is_metadata = path == first.metadata_dir
                meta = format_storage(
                    files,
                    path,
                    node_id=node_id,
                    cluster_id=cluster_id,
                    directory_id=first.directory_id if is_metadata else None,
                    voters=first.voters if is_metadata else (),
                )
                cluster_id = meta.cluster_id
                click.echo(f"formatted {path} for node {meta.node_id} of cluster {meta.cluster_id}")
    except StorageError as wrong:
        raise Failed(str(wrong)) from None


def first_voters(config_path: str, text: str | None, *, alone: bool) -> FirstVoters:
    if text is None and not alone:
        return FirstVoters()
    from cotidal.broker import first_voters as voting

    config = load(config_path)
    if config.voters:
        raise Failed("controller.quorum.voters fixes the voters; take it out first", status=2)
    try:
        if text is None:
            return FirstVoters(config.metadata_dir, voting.standalone(config))
        voters = voting.parse_voters(text, config.controller_listeners[0])
        known = voting.directory_of(voters, config.node_id)
        return FirstVoters(config.metadata_dir, voters, known)
    except ValueError as wrong:
        raise Failed(f"the first voters: {wrong}", status=2) from None


def from_config(path: str) -> tuple[list[str], int]:
    """Its directories, each once, and its node id."""
    config = load(path)
    return list(dict.fromkeys((*config.log_dirs, config.metadata_dir))), config.node_id


def load(path: str) -> BrokerConfig:
    from cotidal.broker.config import ConfigError, load_config

    try:
        return load_config(path, environment=os.environ)
    except ConfigError as wrong:
        raise Failed(str(wrong), status=2) from None
