"""``cotidal consume``: the records of a topic on stdout."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import click

from cotidal.cli.progress import Progress
from cotidal.cli.record_format import compile_format, json_line
from cotidal.cli.verb import Failed, Verb, bootstrap_option, complete_topic

if TYPE_CHECKING:
    from cotidal.client.cluster import Cluster
    from cotidal.client.consumer import Consumer, Fetched
    from cotidal.client.membership import Membership
    from cotidal.client.metadata import Topic
    from cotidal.client.start import Start
    from cotidal.values import Offset, TopicPartition

POLL_S = 0.5


@click.command(
    cls=Verb,
    examples=(
        ("everything, and what comes after it, until Ctrl-C", "cotidal consume orders"),
        ("what is there now", "cotidal consume orders --until-end"),
        ("the last ten of each partition", "cotidal consume orders --from -10 --until-end"),
        ("since this morning", "cotidal consume orders --from 2026-01-31T06:00:00"),
        ("offsets and keys too", "cotidal consume orders --format '%p/%o %k=%v'"),
        ("as one of several who share it", "cotidal consume orders --group readers"),
        ("for a program", "cotidal consume orders --until-end --json | jq .value"),
    ),
)
@click.argument("topic", shell_complete=complete_topic)
@click.option(
    "--from",
    "start_text",
    metavar="WHERE",
    default="earliest",
    show_default=True,
    help="earliest, latest, an OFFSET, -N (before the end), or a time: 2026-01-31T12:00Z, @MILLIS.",
)
@click.option(
    "-p",
    "--partition",
    type=click.IntRange(min=0),
    metavar="N",
    multiple=True,
    help="Only this one; may be given again.",
)
@click.option(
    "-n", "--max", "most", type=click.IntRange(min=1), metavar="N", help="Stop after N records."
)
@click.option("--until-end", is_flag=True, help="Stop at the end there is when the command starts.")
@click.option(
    "--format",
    "format_text",
    metavar="FORMAT",
    default="%v",
    show_default=True,
    help=r"%v value, %k key, %o offset, %p partition, %t topic, %T time, %h headers, \n \t %%.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option(
    "--group",
    metavar="GROUP",
    help="Share the partitions with others of this group, and go on where it has got to.",
)
@bootstrap_option
def command(
    topic: str,
    start_text: str,
    partition: tuple[int, ...],
    most: int | None,
    until_end: bool,
    format_text: str,
    as_json: bool,
    group: str | None,
    bootstrap: str,
) -> None:
    """Print the records of TOPIC; without --max or --until-end, wait for more."""
    from cotidal.client.cluster import Cluster
    from cotidal.client.consumer import Consumer
    from cotidal.client.offsets import end_offsets, start_offsets
    from cotidal.client.start import AtOffset, parse_start

    if group is not None and partition:
        raise click.UsageError("a group assigns partitions itself; leave --partition out")
    try:
        start = parse_start(start_text)
        text_of = json_line if as_json else compile_format(format_text)
    except ValueError as wrong:
        raise click.UsageError(str(wrong)) from None
    with Cluster(bootstrap) as cluster, Progress("records read") as progress:
        chosen = chosen_partitions(cluster.topic(topic), partition)
        if isinstance(start, AtOffset) and len(chosen) > 1:
            raise click.UsageError(
                f"--from {start_text} means another record in each of {len(chosen)} partitions; "
                "choose one with --partition"
            )
        ends = end_offsets(cluster, chosen) if until_end else None
        if group is not None:
            read_as_member(
                cluster, group, topic, start, text_of, ends=ends, most=most, progress=progress
            )
            return
        positions = start_offsets(cluster, chosen, start)
        with Consumer(cluster, positions) as consumer:
            try:
                print_records(consumer, text_of, ends=ends, most=most, progress=progress)
            except KeyboardInterrupt:
                sys.stdout.buffer.flush()  # Ctrl-C is how a reading without end is ended


def read_as_member(
    cluster: Cluster,
    group: str,
    topic: str,
    start: Start,
    text_of: Callable[[Fetched], bytes | None],
    *,
    ends: Mapping[TopicPartition, Offset] | None,
    most: int | None,
    progress: Progress,
) -> None:
    """``start``: where to begin in partitions of which nothing is committed."""
    from cotidal.client.consumer import Consumer
    from cotidal.client.membership import Membership

    membership = Membership(cluster, group, topic)
    printed = 0
    try:
        while most is None or printed < most:
            positions = begin_at(cluster, group, membership.join(), start)
            with Consumer(cluster, positions) as consumer:
                printed += print_records(
                    consumer,
                    text_of,
                    ends=ends,
                    most=None if most is None else most - printed,
                    progress=progress,
                    keep=partial(commit_and_keep, membership),
                )
                at_end = not consumer.positions
            if ends is not None and at_end:
                break
            while not positions and membership.keep():
                time.sleep(POLL_S)  # there are more members than partitions
    except KeyboardInterrupt:
        sys.stdout.buffer.flush()
    finally:
        membership.leave()


def begin_at(
    cluster: Cluster, group: str, owned: tuple[TopicPartition, ...], start: Start
) -> dict[TopicPartition, Offset]:
    from cotidal.client.groups import committed_offsets
    from cotidal.client.offsets import start_offsets

    committed = committed_offsets(cluster, group)
    found = {at: committed[at] for at in owned if at in committed}
    fresh = [at for at in owned if at not in found]
    return found | start_offsets(cluster, fresh, start) if fresh else found


def commit_and_keep(membership: Membership, printed: list[Fetched]) -> bool:
    """Commit what has been printed; False when the group rebalances."""
    from cotidal.client.failures import Refused
    from cotidal.values import Offset

    try:
        membership.commit({record.at: Offset(record.offset + 1) for record in printed})
    except Refused:
        return False  # the group has gone on without us: what is not committed is read again
    return membership.keep()


def print_records(
    consumer: Consumer,
    text_of: Callable[[Fetched], bytes | None],
    *,
    ends: Mapping[TopicPartition, Offset] | None,
    most: int | None,
    progress: Progress,
    keep: Callable[[list[Fetched]], bool] = lambda printed: True,
) -> int:
    """``text_of``: the line of a record; None for one that is passed over. ``keep`` is told
    what was printed, and says whether to go on. How many were."""
    out = sys.stdout.buffer
    printed = 0
    drop_finished(consumer, ends)
    while consumer.positions and (most is None or printed < most):
        records = consumer.poll(timeout_s=POLL_S)
        if ends is not None:
            records = [record for record in records if record.offset < ends[record.at]]
        if most is not None:
            records = records[: most - printed]
        texts = (text_of(record) for record in records)
        out.write(b"".join([text + b"\n" for text in texts if text is not None]))
        out.flush()
        printed += len(records)
        if not sys.stdout.isatty():
            progress.advance(len(records))
        if not keep(records):
            break
        drop_finished(consumer, ends)
    return printed


def drop_finished(consumer: Consumer, ends: Mapping[TopicPartition, Offset] | None) -> None:
    if ends is not None:
        for at in [at for at, next_offset in consumer.positions.items() if next_offset >= ends[at]]:
            consumer.drop(at)


def chosen_partitions(topic: Topic, partitions: tuple[int, ...]) -> list[TopicPartition]:
    """The named partitions, or all; a failure that says which there are."""
    from cotidal.values import TopicPartition

    count = len(topic.partitions)
    for number in partitions:
        if number >= count:
            raise Failed(f"topic '{topic.name}' has no partition {number}; it has 0 to {count - 1}")
    return [TopicPartition(topic.name, number) for number in sorted(partitions) or range(count)]
