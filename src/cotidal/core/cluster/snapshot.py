"""When the metadata log is summed up in a snapshot. Pure. KIP-630, KIP-876.

Whichever comes first: so many bytes of records since the last snapshot, or so much time since it,
provided that there is at least one record that it lacks. What goes into it is ``Image.records``.
"""

from __future__ import annotations

from typing import NamedTuple

from cotidal.core.cluster.controller import Controller
from cotidal.values import Millis


class SinceSnapshot(NamedTuple):
    """What has been committed after the last snapshot, or since the beginning."""

    records: int
    bytes: int
    taken_at: Millis
    """When the last one was taken; the start of the node where there is none."""


def snapshot_reason(controller: Controller, since: SinceSnapshot, now: Millis) -> str | None:
    """Why a snapshot should be taken now; None if it should not."""
    if since.records == 0:
        return None
    bytes_max = controller.number("metadata.log.max.record.bytes.between.snapshots")
    if since.bytes >= bytes_max:
        return f"{since.bytes} bytes of records, at most {bytes_max} between snapshots"
    deadline = next_snapshot(controller, since)
    if deadline is not None and now >= deadline:
        return f"the last one was {now - since.taken_at} ms ago"
    return None


def next_snapshot(controller: Controller, since: SinceSnapshot) -> Millis | None:
    """When time alone asks for one; an interval of 0 never does."""
    interval_ms = controller.number("metadata.log.max.snapshot.interval.ms")
    if since.records == 0 or interval_ms == 0:
        return None
    return Millis(since.taken_at + interval_ms)
