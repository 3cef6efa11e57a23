"""``cotidal txn``: list, describe, abort-hanging."""

from __future__ import annotations

import time

import click

from cotidal.cli.table import print_json, print_table
from cotidal.cli.verb import Verb, VerbGroup, bootstrap_option, complete_topic, json_option

SECONDS_OPEN = 900
"""transaction.max.timeout.ms: nobody is allowed to keep one open for longer."""


@click.group(
    cls=VerbGroup,
    examples=(
        ("all transactional ids", "cotidal txn list"),
        ("what one of them has open, and where", "cotidal txn describe shop"),
        ("is there anything that nobody will end?", "cotidal txn abort-hanging --dry-run"),
    ),
)
def command() -> None:
    """List and describe transactions, and end those that hang."""


@command.command(
    "list",
    cls=Verb,
    examples=(
        ("all transactional ids", "cotidal txn list"),
        ("those with a transaction under way", "cotidal txn list --state Ongoing"),
    ),
)
@click.option("--state", metavar="STATE", help="Only those in this state.")
@json_option
@bootstrap_option
def list_(state: str | None, as_json: bool, bootstrap: str) -> None:
    """List the transactional ids of the cluster."""
    from cotidal.client.cluster import Cluster
    from cotidal.client.open_transactions import list_transactions

    with Cluster(bootstrap) as cluster:
        found = list_transactions(cluster)
    if state is not None:
        found = [each for each in found if each.state.lower() == state.lower()]
    if as_json:
        print_json([each._asdict() for each in found])
        return
    print_table(
        ("TRANSACTIONAL-ID", "STATE", "PRODUCER", "COORDINATOR"), [tuple(each) for each in found]
    )


@command.command(
    cls=Verb,
    examples=(
        ("its state, its producer and its partitions", "cotidal txn describe shop"),
        ("for a program", "cotidal txn describe shop --json | jq .partitions"),
    ),
)
@click.argument("transactional_id")
@json_option
@bootstrap_option
def describe(transactional_id: str, as_json: bool, bootstrap: str) -> None:
    """Show what the coordinator of TRANSACTIONAL_ID knows."""
    from cotidal.client.cluster import Cluster
    from cotidal.client.open_transactions import describe_transaction

    with Cluster(bootstrap) as cluster:
        told = describe_transaction(cluster, transactional_id)
    partitions = [str(each) for each in told.partitions]
    if as_json:
        print_json(told._asdict() | {"partitions": partitions})
        return
    for name, value in (
        ("transactional id", told.transactional_id),
        ("state", told.state),
        ("producer", f"{told.producer_id}, epoch {told.producer_epoch}"),
        ("time-out", f"{told.timeout_ms} ms"),
        ("begun", _ago(told.started_ms) if told.started_ms >= 0 else "-"),
        ("partitions", ", ".join(partitions) or "-"),
    ):
        print(f"{name:17} {value}")


@command.command(
    "abort-hanging",
    cls=Verb,
    examples=(
        ("only look", "cotidal txn abort-hanging --dry-run"),
        (
            "of one topic, open for an hour or more",
            "cotidal txn abort-hanging --topic orders --open-for 3600",
        ),
    ),
)
@click.option("--topic", shell_complete=complete_topic, help="Only in this topic.")
@click.option(
    "--open-for",
    "seconds",
    type=click.IntRange(min=0),
    default=SECONDS_OPEN,
    show_default=True,
    help="Only what nobody has written to for so many seconds.",
)
@click.option("--dry-run", is_flag=True, help="Tell what hangs, and end nothing.")
@json_option
@bootstrap_option
def abort_hanging(
    topic: str | None, seconds: int, dry_run: bool, as_json: bool, bootstrap: str
) -> None:
    """Abort transactions that are open in a partition and unknown to their coordinator.

    Nobody else would ever end them, and read_committed consumers stand still below them.
    """
    from cotidal.client.cluster import Cluster
    from cotidal.client.open_transactions import abort, hanging_transactions, open_transactions

    latest = time.time() * 1000 - seconds * 1000
    with Cluster(bootstrap) as cluster:
        candidates = [each for each in open_transactions(cluster, topic) if each.last_ms <= latest]
        found = hanging_transactions(cluster, candidates)
        if not dry_run:
            for each in found:
                abort(cluster, each)
    if as_json:
        rows = [each._asdict() | {"partition": str(each.partition)} for each in found]
        print_json({"hanging": rows, "aborted": not dry_run})
        return
    print_table(
        ("PARTITION", "PRODUCER", "EPOCH", "FIRST OFFSET", "LAST WRITTEN"),
        [
            (
                str(each.partition),
                each.producer_id,
                each.producer_epoch,
                each.first_offset,
                _ago(each.last_ms),
            )
            for each in found
        ],
    )
    what = "would be aborted" if dry_run else "aborted"
    print(f"{len(found)} transactions {what}" if found else "no transaction hangs")


def _ago(moment_ms: int) -> str:
    return f"{max(0, int(time.time() - moment_ms / 1000))} s ago"
