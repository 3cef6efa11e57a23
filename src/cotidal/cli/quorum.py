"""``cotidal quorum``: who decides, how far the others have followed, and who votes."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import click

from cotidal.cli.table import Cell, print_json, print_table
from cotidal.cli.verb import Failed, Verb, VerbGroup, bootstrap_option, json_option
from cotidal.values import NodeId, Uuid, uuid_from_text

if TYPE_CHECKING:
    from cotidal.client.admin import Quorum, QuorumMember


@click.group(
    cls=VerbGroup,
    invoke_without_command=True,
    examples=(
        ("controllers, and brokers that follow them", "cotidal quorum"),
        ("for a program", "cotidal quorum --json"),
        ("let another controller vote", "cotidal quorum add-voter --config c4.properties"),
        ("what the metadata log says", "cotidal quorum log cotidal-data/node-1"),
    ),
)
@json_option
@bootstrap_option
@click.pass_context
def command(ctx: click.Context, as_json: bool, bootstrap: str) -> None:
    """Show the metadata quorum, or change who votes in it."""
    if ctx.invoked_subcommand is None:
        show(bootstrap, as_json=as_json)


@command.command(cls=Verb, examples=(("the same as without a verb", "cotidal quorum describe"),))
@json_option
@bootstrap_option
def describe(as_json: bool, bootstrap: str) -> None:
    """Show the metadata quorum: leader, epoch, voters, observers, lag."""
    show(bootstrap, as_json=as_json)


@command.command(
    name="add-voter",
    cls=Verb,
    examples=(
        ("the node of a config file, as it is formatted", "cotidal quorum add-voter"
         " --config c4.properties"),
        ("any node that follows already", "cotidal quorum add-voter 4 c4.example.org:9093"
         " --directory-id Jok7yVZLyiC94SceYX5bvw"),
    ),
)  # fmt: skip
@click.argument("node", type=click.IntRange(min=0), required=False)
@click.argument("address", metavar="[HOST:PORT]", required=False)
@click.option("--config", "config_path", metavar="FILE", help="The new voter's server.properties.")
@click.option("--directory-id", metavar="ID", help="Otherwise what it told when it last fetched.")
@click.option("--listener", default="CONTROLLER", show_default=True, help="The controllers' own.")
@bootstrap_option
def add_voter(
    node: int | None,
    address: str | None,
    config_path: str | None,
    directory_id: str | None,
    listener: str,
    bootstrap: str,
) -> None:
    """Let a controller vote. It must be running, and have caught up with the metadata log."""
    from cotidal.client.admin import add_voter as ask
    from cotidal.client.admin import describe_quorum
    from cotidal.client.cluster import Cluster

    if (config_path is None) == (node is None or address is None):
        raise click.UsageError("give a node and its address, or --config")
    with Cluster(bootstrap) as cluster:
        if config_path is not None:
            new = from_config(config_path)
        else:
            assert node is not None
            assert address is not None
            host, port = split(address)
            known = chosen(directory_id, node, describe_quorum(cluster).observers)
            new = NewVoter(NodeId(node), known, listener, host, port)
        ask(cluster, new.node, new.directory, listener=new.listener, host=new.host, port=new.port)
    click.echo(f"node {new.node} votes")


@command.command(
    name="remove-voter",
    cls=Verb,
    examples=(
        ("whichever directory it votes with", "cotidal quorum remove-voter 4"),
        ("after its disk was lost", "cotidal quorum remove-voter 4"
         " --directory-id Jok7yVZLyiC94SceYX5bvw"),
    ),
)  # fmt: skip
@click.argument("node", type=click.IntRange(min=0))
@click.option("--directory-id", metavar="ID", help="Otherwise the one that it votes with.")
@bootstrap_option
def remove_voter(node: int, directory_id: str | None, bootstrap: str) -> None:
    """Let a controller vote no longer. It goes on following as an observer."""
    from cotidal.client.admin import describe_quorum
    from cotidal.client.admin import remove_voter as ask
    from cotidal.client.cluster import Cluster

    with Cluster(bootstrap) as cluster:
        known = chosen(directory_id, node, describe_quorum(cluster).voters)
        ask(cluster, NodeId(node), known)
    click.echo(f"node {node} votes no longer")


@command.command(
    cls=Verb,
    examples=(("then the controllers can be replaced one by one", "cotidal quorum upgrade"),),
)
@bootstrap_option
def upgrade(bootstrap: str) -> None:
    """Let voters be changed that are fixed by controller.quorum.voters (kraft.version 1).

    Every voter must be there. It cannot be taken back.
    """
    from cotidal.client.admin import describe_quorum, raise_kraft_version
    from cotidal.client.cluster import Cluster

    with Cluster(bootstrap) as cluster:
        raise_kraft_version(cluster, 1)
        voters = ", ".join(str(voter.node_id) for voter in describe_quorum(cluster).voters)
    click.echo(f"the voters can be changed: {voters}")


@command.command(
    name="log",
    cls=Verb,
    examples=(
        ("everything a node has", "cotidal quorum log /var/lib/cotidal"),
        ("from an offset on", "cotidal quorum log cotidal-data/node-1 --from 4711 --json"),
    ),
)
@click.argument("directory", metavar="DIR", type=click.Path(file_okay=False))
@click.option("--from", "first", type=click.IntRange(min=0), default=0, help="The first offset.")
@json_option
def log_(directory: str, first: int, as_json: bool) -> None:
    """Tell the metadata log of a data directory, one line a record. Also while a node runs."""
    import json

    from cotidal.broker.metadata_lines import Unreadable, lines_of

    path = os.path.join(directory, "__cluster_metadata-0")
    if not os.path.isdir(path):
        path = directory
    if not os.path.isdir(path):
        raise Failed(f"there is no directory {path}; name a node's data directory")
    try:
        for told in lines_of(path, first):
            if as_json:
                click.echo(json.dumps({"offset": told.offset, "epoch": told.epoch, **told.fields}))
            else:
                click.echo(f"{told.offset}@{told.epoch} {told.text}")
    except Unreadable as wrong:
        raise Failed(str(wrong)) from None


class NewVoter:
    __slots__ = ("directory", "host", "listener", "node", "port")

    def __init__(self, node: NodeId, directory: Uuid, listener: str, host: str, port: int) -> None:
        self.node = node
        self.directory = directory
        self.listener = listener
        self.host = host
        self.port = port


def from_config(path: str) -> NewVoter:
    from cotidal.broker.config import controller_addresses
    from cotidal.broker.storage import StorageError, read_meta
    from cotidal.cli.format import load
    from cotidal.log.files import OsFiles

    config = load(path)
    addresses = controller_addresses(config, config.listeners)
    if not addresses:
        raise Failed(f"{path} is not of a controller: it cannot vote", status=2)
    try:
        meta = read_meta(OsFiles(), config.metadata_dir)
    except StorageError as wrong:
        raise Failed(str(wrong)) from None
    at = addresses[0]
    return NewVoter(config.node_id, meta.directory_id, at.name, at.host, at.port)


def split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise click.UsageError(f"'{address}' is not of the form HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)


def chosen(text: str | None, node: int, members: tuple[QuorumMember, ...]) -> Uuid:
    """The directory id that was given, or the one that the leader knows."""
    if text is not None:
        try:
            return uuid_from_text(text)
        except ValueError as wrong:
            raise click.UsageError(str(wrong)) from None
    for member in members:
        if member.node_id == node:
            return member.directory_id
    known = ", ".join(str(member.node_id) for member in members) or "none"
    raise Failed(f"node {node} is not among them ({known}); see `cotidal quorum`")


def show(bootstrap: str, *, as_json: bool) -> None:
    from cotidal.client.admin import describe_quorum
    from cotidal.client.cluster import Cluster
    from cotidal.client.quorum import end_of_leader, quorum_json

    with Cluster(bootstrap) as cluster:
        quorum = describe_quorum(cluster)
    if as_json:
        print_json(quorum_json(quorum))
        return
    click.echo(
        f"leader {quorum.leader}  epoch {quorum.leader_epoch}  "
        f"committed below offset {quorum.high_watermark}"
    )
    click.echo()
    leader_end = end_of_leader(quorum)
    print_table(
        ("NODE", "ROLE", "DIRECTORY", "END", "LAG", "LAST FETCH", "CAUGHT UP"),
        [
            row(member, role, quorum, leader_end)
            for role, members in (("voter", quorum.voters), ("observer", quorum.observers))
            for member in members
        ],
    )


def row(member: QuorumMember, role: str, quorum: Quorum, leader_end: int) -> list[Cell]:
    from cotidal.client.quorum import directory_text

    leads = member.node_id == quorum.leader
    return [
        member.node_id,
        "leader" if leads else role,
        directory_text(member),
        member.end_offset,
        max(0, leader_end - member.end_offset),
        None if leads else ago(member.last_fetch_ms),
        None if leads else ago(member.last_caught_up_ms),
    ]


def ago(wall_ms: int) -> str | None:
    if wall_ms < 0:
        return None
    return f"{max(0.0, time.time() - wall_ms / 1000):.1f} s ago"
