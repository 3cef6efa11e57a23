"""``cotidal produce``: lines from stdin become records."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from io import BufferedReader
from typing import TYPE_CHECKING, Final, TextIO, cast

import click

from cotidal.cli.progress import Progress
from cotidal.cli.verb import Failed, Verb, bootstrap_option, complete_topic

if TYPE_CHECKING:
    from cotidal.client.producer import Acknowledged

ACKS: Final = {"all": -1, "-1": -1, "0": 0, "1": 1}
COMPRESSIONS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
READ_BYTES: Final = 1024 * 1024
LINE_BYTES_MAX: Final = 64 * 1024 * 1024
"""A 'line' longer than this is a file without line ends, and no broker would take it."""


@click.command(
    cls=Verb,
    examples=(
        ("one record", "echo hello | cotidal produce orders"),
        ("keys before a colon", "printf 'k1:a\\nk2:b\\n' | cotidal produce orders -k :"),
        ("a file, compressed", "cotidal produce orders --compression zstd < lines.txt"),
        ("with a header on each record", "cotidal produce orders -H source=shell < lines.txt"),
        (
            "noting what was acknowledged, for an audit",
            "cotidal produce orders --receipts acknowledged.jsonl < lines.txt",
        ),
        ("type records, end with Ctrl-D", "cotidal produce orders"),
    ),
)
@click.argument("topic", shell_complete=complete_topic)
@click.option(
    "--acks",
    type=click.Choice(list(ACKS)),
    default="all",
    show_default=True,
    help="Which replicas must have a record: all in sync, the leader, or none.",
)
@click.option("-k", "--key-separator", metavar="TEXT", help="What ends a line's key.")
@click.option("--null-value", metavar="TEXT", help="A value that means null: a tombstone.")
@click.option("-H", "--headers", metavar="NAME=VALUE", multiple=True, help="For each record.")
@click.option("--compression", type=click.Choice(COMPRESSIONS), default="none", show_default=True)
@click.option("-p", "--partition", type=click.IntRange(min=0), metavar="N", help="For all records.")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    default=30.0,
    show_default=True,
    help="How long to go on trying.",
)
@click.option(
    "--receipts",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Append a line for each record that was acknowledged; see `pipeline run audit`.",
)
@bootstrap_option
def command(
    topic: str,
    acks: str,
    key_separator: str | None,
    null_value: str | None,
    headers: tuple[str, ...],
    compression: str,
    partition: int | None,
    timeout_s: float,
    receipts: str | None,
    bootstrap: str,
) -> None:
    """Write lines from stdin to TOPIC, one record a line.

    Lines that are there together are sent together. The exit status is 0 only when the cluster
    has acknowledged every record.
    """
    from cotidal.cli.settings_given import parse_settings
    from cotidal.client.cluster import Cluster
    from cotidal.client.failures import UnknownTopic
    from cotidal.client.producer import Producer
    from cotidal.wire.compression import Compression

    separator = key_separator.encode() if key_separator is not None else None
    if separator == b"":
        raise click.UsageError("--key-separator must not be empty")
    if receipts is not None and not ACKS[acks]:
        raise click.UsageError(
            "--receipts is for what was acknowledged, and --acks 0 asks for none"
        )
    fixed_headers = [(name, value.encode()) for name, value in parse_settings(headers).items()]
    null = null_value.encode() if null_value is not None else None
    with (
        Cluster(bootstrap) as cluster,
        Progress("records written") as progress,
        receipts_file(receipts) as noted,
    ):
        try:
            producer = Producer(
                cluster,
                topic,
                acks=ACKS[acks],
                compression=Compression[compression.upper()],
                partition=partition,
                timeout_s=timeout_s,
            )
        except UnknownTopic as unknown:
            if unknown.nearest:
                raise
            raise Failed(f"{unknown}; create it with `cotidal topic create {topic}`") from None
        for lines in lines_together(READ_BYTES):
            for line in lines:
                key, value = split_key(line, separator)
                producer.add(None if value == null else value, key=key, headers=fixed_headers)
            acknowledged = producer.flush()
            progress.advance(sum(each.records for each in acknowledged))
            if noted is not None:
                note(noted, topic, acknowledged)


def receipts_file(path: str | None) -> AbstractContextManager[TextIO | None]:
    try:
        return nullcontext() if path is None else open(path, "a", encoding="utf-8")
    except OSError as wrong:
        raise Failed(f"cannot write {path}: {wrong.strerror}", status=2) from None


def note(file: TextIO, topic: str, acknowledged: Sequence[Acknowledged]) -> None:
    from cotidal.client.receipts import receipts

    file.writelines(f"{line}\n" for each in acknowledged for line in receipts(topic, each))
    file.flush()


def split_key(line: bytes, separator: bytes | None) -> tuple[bytes | None, bytes]:
    if separator is None:
        return None, line
    key, found, value = line.partition(separator)
    if not found:
        raise Failed(
            f"the line {line[:40].decode(errors='replace')!r} has no key before "
            f"{separator.decode()!r}; the lines before it were written"
        )
    return key, value


def lines_together(read_bytes: int) -> Iterator[list[bytes]]:
    """The whole lines of each read of stdin: what came together is sent together.

    The last line needs no line end. A carriage return before the line end is part of it.
    """
    stdin = cast(BufferedReader, sys.stdin.buffer)
    rest = b""
    while piece := stdin.read1(read_bytes):
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > LINE_BYTES_MAX:
            raise Failed(f"a line of stdin is longer than {LINE_BYTES_MAX} bytes")
        if lines:
            yield [line.removesuffix(b"\r") for line in lines]
    if rest:
        yield [rest.removesuffix(b"\r")]
