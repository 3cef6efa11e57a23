"""``TOPIC`` and ``TOPIC:PARTITION`` on a command line, and rates such as ``10MB``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from cotidal.client.cluster import Cluster
    from cotidal.client.metadata import Partition
    from cotidal.values import TopicPartition

_UNITS: Final = {
    "": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 1 << 10, "MIB": 1 << 20,
    "GIB": 1 << 30,
}  # fmt: skip


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
    if value is None:
        return None
    text = value.strip().removesuffix("/s").strip()
    digits = text.rstrip("KMGiBkmgb ")
    unit = _UNITS.get(text[len(digits) :].strip().upper())
    try:
        amount = float(digits)
    except ValueError:
        amount = -1.0
    if unit is None or not 0 < amount * unit < 2**63:
        raise click.UsageError(f"'{value}' is not a rate; write it like 500KB, 10MB or 1048576")
    return int(amount * unit)
