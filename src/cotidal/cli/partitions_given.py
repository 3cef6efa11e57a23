"""``TOPIC`` and ``TOPIC:PARTITION`` on a command line, and rates such as ``10MB``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from cotidal.client.cluster import Cluster
    from cotidal.client.metadata import Partition
    from cotidal.values import TopicPartition


def find_partitions(cluster: Cluster, given: Sequence[str]) -> dict[TopicPartition, Partition]:
    """``orders`` is all of its partitions, ``orders:0`` and ``orders:0,2`` just these."""
    from cotidal.cli.verb import Failed
    from cotidal.values import TopicPartition

    found: dict[TopicPartition, Partition] = {}
    for text in given:
        name, colon, numbers = text.partition(":")
        known = {each.partition: each for each in cluster.topic(name).partitions}
        wanted = list(known)
        if colon:
            parts = numbers.split(",")
            if not all(part.isascii() and part.isdigit() for part in parts):
                raise click.UsageError(f"'{text}' is not TOPIC or TOPIC:PARTITION,...")
            wanted = [int(part) for part in parts]
        for number in wanted:
            if number not in known:
                raise Failed(
                    f"topic '{name}' has no partition {number}; it has {len(known)}, from 0 on"
                )
            found[TopicPartition(name, number)] = known[number]
    return found


def parse_rate(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """Bytes a second: 1048576, 500KB, 10MB/s, 2MiB."""
    from cotidal.client.throttling import rate_from_text

    try:
        return None if value is None else rate_from_text(value)
    except ValueError as wrong:
        raise click.UsageError(str(wrong)) from None
