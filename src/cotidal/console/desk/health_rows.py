"""What the health pipeline (`cotidal pipeline run health --follow --publish`) has found of late.

It writes rows to a topic (docs/pipelines.md): of each partition and broker one for every window,
and alarms that are raised and taken back. Given are the newest windows, and what is raised. Anybody
may write into a topic: what is no such row is passed over.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from cotidal.client.offsets import earliest_offsets, end_offsets
from cotidal.client.replica_reading import read_stretch
from cotidal.console.desk.question import Desk
from cotidal.console.world import Command, Json
from cotidal.limits import DESK_HEALTH_ROWS_MAX, DESK_SCANNED_BYTES_MAX
from cotidal.values import TopicPartition

TOPIC: Final = "__cotidal_health"
AT: Final = TopicPartition(TOPIC, 0)
VERSION: Final = 1
HISTORY: Final = 30
"""Windows that are summed up, a line each."""

NUMBERS: Final = {
    "partition": (
        *("partition", "lag_records", "lag_ms", "under_replicated_s", "under_min_isr_s"),
        *("left", "joined", "elections", "unclean", "records_cut"),
    ),
    "broker": (
        *("broker", "leads", "replicas", "under_replicated", "offline_replicas"),
        *("events_dropped", "acks"),
    ),
    "flapping": ("partition", "replica", "times"),
    "uneven": ("broker", "leads", "share"),
}
"""Of each kind, the fields that are numbers."""
MAYBE: Final = ("ack_p50_ms", "ack_p99_ms", "ack_max_ms")
"""Of a broker; null without acknowledgements."""


def health_rows(desk: Desk, asked: Command) -> Json:
    topic = desk.cluster.metadata([TOPIC]).topic(TOPIC)
    if topic is None or topic.error or not topic.partitions or not topic.partitions[0].has_leader:
        return {"exists": False}
    end = end_offsets(desk.cluster, [AT])[AT]
    begin = max(earliest_offsets(desk.cluster, [AT])[AT], end - DESK_HEALTH_ROWS_MAX)
    with desk.cluster.open_connection(topic.partitions[0].leader) as connection:
        part = read_stretch(
            connection, AT, topic.topic_id, begin, below=end, bytes_max=DESK_SCANNED_BYTES_MAX
        )
    values = [(each.record.key or b"", each.record.value or b"") for each in part.records]
    return {"exists": True, **summed_up(values)}


def summed_up(records: Iterable[tuple[bytes, bytes]]) -> Json:
    """Keys and values in their order; the last of a key counts."""
    rows = {key: row for key, value in records if (row := _row(value)) is not None}
    windows = [row for row in rows.values() if row["kind"] in ("partition", "broker")]
    newest = max((row["start"] for row in windows), default=None)
    alarms: dict[tuple[object, ...], Json] = {}
    for row in sorted(rows.values(), key=lambda row: row["start"]):
        if row["kind"] in ("flapping", "uneven"):
            about = (row["kind"], row.get("topic"), row.get("partition"), row.get("replica"))
            alarms[*about, row.get("broker")] = row
    return {
        "window": None if newest is None else _window(windows, newest),
        "alarms": [row for row in alarms.values() if row["raised"]],
        "history": _history(windows),
    }


def _window(windows: list[Json], start: int) -> Json:
    now = [row for row in windows if row["start"] == start]
    partitions = [row for row in now if row["kind"] == "partition"]
    brokers = [row for row in now if row["kind"] == "broker"]
    return {
        "start": start,
        "end": max(row["end"] for row in now),
        "partitions": sorted(partitions, key=lambda row: (row["topic"], row["partition"])),
        "brokers": sorted(brokers, key=lambda row: row["broker"]),
    }


def _history(windows: list[Json]) -> list[Json]:
    """Newest first: what was worst in each window."""
    found: dict[int, Json] = {}
    for row in windows:
        line = found.setdefault(
            row["start"],
            {"start": row["start"], "lag_records": 0, "under_replicated": 0, "elections": 0,
             "records_cut": 0, "acks": 0, "ack_p99_ms": None},
        )  # fmt: skip
        if row["kind"] == "partition":
            line["lag_records"] = max(line["lag_records"], row["lag_records"])
            line["under_replicated"] += row["under_replicated_s"] > 0
            line["elections"] += row["elections"]
            line["records_cut"] += row["records_cut"]
        else:
            line["acks"] += row["acks"]
            times = (line["ack_p99_ms"], row.get("ack_p99_ms"))
            line["ack_p99_ms"] = max((each for each in times if each is not None), default=None)
    return [found[start] for start in sorted(found, reverse=True)[:HISTORY]]


def _row(value: bytes) -> Json | None:
    try:
        told = json.loads(value)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict) or told.get("v") != VERSION:
        return None
    kind = told.get("kind")
    if not isinstance(kind, str) or kind not in NUMBERS:
        return None
    row: Json = {"kind": kind}
    for name in ("start", "end", *NUMBERS[kind]):
        if not _is_number(told.get(name)):
            return None
        row[name] = told[name]
    if "partition" in row:
        if not isinstance(told.get("topic"), str):
            return None
        row["topic"] = told["topic"]
    if kind == "broker":
        row |= {name: told[name] for name in MAYBE if _is_number(told.get(name))}
    if kind in ("flapping", "uneven"):
        row["raised"] = told.get("raised") is True
    return row


def _is_number(told: object) -> bool:
    return isinstance(told, int | float) and not isinstance(told, bool)
