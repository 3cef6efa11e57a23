"""The same offsets of several replicas, side by side. Pure.

What every replica serves must be the same (LOG_PREFIXES_MATCH). A replica that serves less is not
different: its high watermark comes a moment later. An offset that one replica has skipped and
another holds is a difference, but in a compacted topic, which each replica compacts for itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cotidal.client.replica_reading import Placed, Stretch
from cotidal.console.desk.decoding import show
from cotidal.console.world import Json
from cotidal.limits import DESK_VALUE_BYTES_MAX
from cotidal.values import NodeId


class Copy(NamedTuple):
    node_id: NodeId
    stretch: Stretch
    failure: str | None
    """Why it could not be read."""

    def serves(self, offset: int) -> bool:
        return self.failure is None and offset < self.stretch.next_offset


def compare(copies: Sequence[Copy], *, leader: NodeId, first: int, below: int) -> Json:
    """Rows of offsets, and in one sentence whether they agree."""
    held = {copy.node_id: _by_offset(copy.stretch) for copy in copies}
    offsets = sorted({offset for records in held.values() for offset in records})
    rows = [_row(offset, copies, held) for offset in offsets]
    differing = [row for row in rows if row["differs"]]
    readable = [copy for copy in copies if copy.failure is None]
    return {
        "replicas": [
            {
                "broker": copy.node_id,
                "leads": copy.node_id == leader,
                "served_to": copy.stretch.next_offset,
                "failure": copy.failure,
            }
            for copy in copies
        ],
        "rows": rows,
        "differ": bool(differing),
        "sentence": _sentence(readable, differing, first=first, below=below),
    }


def _sentence(
    readable: Sequence[Copy], differing: Sequence[Json], *, first: int, below: int
) -> str:
    if not readable:
        return "No replica could be read."
    if differing:
        offset, cells = differing[0]["offset"], differing[0]["cells"]
        told = "; ".join(
            f"broker {copy.node_id} has {_words(cells[str(copy.node_id)])}"
            for copy in readable
            if copy.serves(offset)
        )
        return f"The replicas differ, first at offset {offset:,}: {told}."
    reached = min(copy.stretch.next_offset for copy in readable)
    if reached <= first:
        return "There is nothing that every replica serves yet."
    if len(readable) == 1:
        return f"Only broker {readable[0].node_id} could be read: there is nothing to compare."
    behind = "" if reached >= below else f", as far as all of them serve them (to {reached:,})"
    return (
        f"{len(readable)} replicas hold the same records"
        f" from offset {first:,} to {below - 1:,}{behind}."
    )


def _words(cell: Json | None) -> str:
    return "no record" if cell is None else f"a record of epoch {cell['epoch']}"


def _row(offset: int, copies: Sequence[Copy], held: dict[NodeId, dict[int, Placed]]) -> Json:
    served = [copy for copy in copies if copy.serves(offset)]
    identities = {_identity(held[copy.node_id].get(offset)) for copy in served}
    return {
        "offset": offset,
        "cells": {
            str(copy.node_id): _cell(held[copy.node_id].get(offset))
            for copy in copies
            if copy.serves(offset)
        },
        "differs": len(identities) > 1,
    }


def _cell(placed: Placed | None) -> Json | None:
    if placed is None:
        return None
    value = show(placed.record.value, "auto", longest=DESK_VALUE_BYTES_MAX)
    return {
        "epoch": placed.batch.leader_epoch,
        "timestamp": placed.record.timestamp,
        "text": value.text,
        "form": value.form,
        "cut": value.is_cut,
    }


def _identity(placed: Placed | None) -> object:
    """All that must be the same: the record, its epoch, who wrote it."""
    if placed is None:
        return None
    batch = placed.batch
    return placed.record, batch.leader_epoch, batch.producer_id, batch.producer_epoch


def _by_offset(stretch: Stretch) -> dict[int, Placed]:
    return {placed.record.offset: placed for placed in stretch.records}
