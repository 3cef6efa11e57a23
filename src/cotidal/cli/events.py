"""``cotidal events``: what has happened to replication, a line each."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from cotidal.cli.event_lines import event_line
from cotidal.cli.verb import Failed, Verb, bootstrap_option

if TYPE_CHECKING:
    from cotidal.client.consumer import Fetched

TOPIC: Final = "__cotidal_events"
HEALTH: Final = "health"


@click.command(
    cls=Verb,
    examples=(
        ("what has happened within a day", "cotidal events"),
        ("and what happens from now on, until Ctrl-C", "cotidal events --follow"),
        ("since this morning", "cotidal events --from 2026-01-31T06:00:00"),
        ("only changes of leaders", "cotidal events --kind leader_changed"),
        ("one partition", "cotidal events --topic orders --partition 3"),
        ("with the sample of each broker and second", "cotidal events --health --follow"),
        ("for a program", "cotidal events --json | jq .kind"),
    ),
)
@click.option("-f", "--follow", is_flag=True, help="Wait for more.")
@click.option(
    "--from",
    "start_text",
    metavar="WHERE",
    default="earliest",
    show_default=True,
    help="earliest, latest, an OFFSET, -N (before the end), or a time: 2026-01-31T12:00Z, @MILLIS.",
)
@click.option("--kind", "kinds", metavar="KIND", multiple=True, help="Only this; may be repeated.")
@click.option("--topic", "only_topic", metavar="TOPIC", help="Only of this topic.")
@click.option("--partition", type=click.IntRange(min=0), metavar="N", help="Only of this one.")
@click.option("--health", is_flag=True, help="Health samples too.")
@click.option("--json", "as_json", is_flag=True, help="As they are written, one a line.")
@bootstrap_option
def command(
    follow: bool,
    start_text: str,
    kinds: tuple[str, ...],
    only_topic: str | None,
    partition: int | None,
    health: bool,
    as_json: bool,
    bootstrap: str,
) -> None:
    """Tell what has happened to replication.

    Read from the topic __cotidal_events, which the brokers write (cotidal.events.enable).
    """
    from cotidal.cli.consume import print_records
    from cotidal.cli.progress import Progress
    from cotidal.client.cluster import Cluster
    from cotidal.client.consumer import Consumer
    from cotidal.client.failures import UnknownTopic
    from cotidal.client.offsets import end_offsets, start_offsets
    from cotidal.client.start import parse_start
    from cotidal.values import TopicPartition

    try:
        start = parse_start(start_text)
    except ValueError as wrong:
        raise click.UsageError(str(wrong)) from None
    chosen = chooser(kinds, only_topic, partition, health=health)
    with Cluster(bootstrap) as cluster, Progress("events read") as progress:
        try:
            cluster.topic(TOPIC)
        except UnknownTopic:
            raise Failed(
                f"this cluster has no {TOPIC}: its brokers need cotidal.events.enable=true, or have"
                " had nothing to tell yet"
            ) from None
        partitions = [TopicPartition(TOPIC, 0)]
        ends = None if follow else end_offsets(cluster, partitions)
        with Consumer(cluster, start_offsets(cluster, partitions, start)) as consumer:
            try:
                print_records(
                    consumer,
                    lambda record: line_of(record, chosen, as_json=as_json),
                    ends=ends,
                    most=None,
                    progress=progress,
                )
            except KeyboardInterrupt:
                sys.stdout.buffer.flush()  # Ctrl-C is how a reading without end is ended


def chooser(
    kinds: tuple[str, ...], topic: str | None, partition: int | None, *, health: bool
) -> Callable[[Mapping[str, Any]], bool]:
    """Which events are wanted. A health sample is of no topic."""

    def is_chosen(event: Mapping[str, Any]) -> bool:
        kind = event["kind"]
        if kinds:
            if kind not in kinds:
                return False
        elif kind == HEALTH and not health:
            return False
        if topic is not None and event.get("topic") != topic:
            return False
        return partition is None or event.get("partition") == partition

    return is_chosen


def line_of(
    record: Fetched, is_chosen: Callable[[Mapping[str, Any]], bool], *, as_json: bool
) -> bytes | None:
    """None for what is not wanted, or is no event: anybody may write into a topic."""
    value = record.value or b""
    try:
        event = json.loads(value)
    except ValueError:
        return None
    if not isinstance(event, dict) or "kind" not in event or not is_chosen(event):
        return None
    return value if as_json else event_line(event).encode()
