"""Transactions: which there are, what each has open, and those that nobody will end (KIP-664)."""

from __future__ import annotations

import time
from collections.abc import Iterable

from cotidal.client.open_transactions import (
    OpenTransaction,
    abort,
    describe_transaction,
    hanging_transactions,
    list_transactions,
    open_transactions,
)
from cotidal.console.desk.arguments import NAME_MAX
from cotidal.console.desk.plan import Plan, done
from cotidal.console.desk.question import Desk
from cotidal.console.world import Command, Json, Refused
from cotidal.limits import DESK_ROWS_MAX
from cotidal.words import counted

HANGING_MS = 900_000
"""transaction.max.timeout.ms: nobody is allowed to keep one open for longer."""


def transactions(desk: Desk, asked: Command) -> Json:
    """Transactional ids, what is open in partitions, and which of that hangs."""
    listed = list_transactions(desk.cluster)
    opened = open_transactions(desk.cluster)
    hanging = set(hanging_transactions(desk.cluster, opened))
    now_ms = time.time_ns() // 1_000_000
    return {
        "transactions": [each._asdict() for each in listed[:DESK_ROWS_MAX]],
        "open": [
            {
                "partition": str(each.partition),
                "producer": each.producer_id,
                "epoch": each.producer_epoch,
                "first_offset": each.first_offset,
                "idle_ms": max(0, now_ms - each.last_ms),
                "hangs": each in hanging,
            }
            for each in opened[:DESK_ROWS_MAX]
        ],
        "left_out": max(0, len(listed) - DESK_ROWS_MAX) + max(0, len(opened) - DESK_ROWS_MAX),
    }


def transaction(desk: Desk, asked: Command) -> Json:
    told = describe_transaction(desk.cluster, asked.text("id", longest=NAME_MAX))
    return {
        **told._asdict(),
        "partitions": [str(each) for each in told.partitions],
        "now_ms": time.time_ns() // 1_000_000,
    }


def plan_abort(desk: Desk, asked: Command) -> Json:
    found = _hanging(desk)
    if not found:
        raise Refused(
            f"no transaction hangs: none is unknown to its coordinator and has stood still for"
            f" {HANGING_MS // 60_000} minutes"
        )
    return Plan(
        "Abort hanging transactions",
        [f"{counted(len(found), 'transaction')} will be aborted: readers with read_committed pass"
         " over the records, and are held up no longer."],
        "Abort them",
        loses=True,
        head=("Partition", "Producer", "First offset"),
        rows=[[str(each.partition), each.producer_id, each.first_offset] for each in found],
    ).json()  # fmt: skip


def abort_hanging(desk: Desk, asked: Command) -> Json:
    found = _hanging(desk)
    for each in found:
        abort(desk.cluster, each)
    return done(f"{counted(len(found), 'transaction')} aborted.")


def _hanging(desk: Desk) -> list[OpenTransaction]:
    latest = time.time_ns() // 1_000_000 - HANGING_MS
    old: Iterable[OpenTransaction] = (
        each for each in open_transactions(desk.cluster) if each.last_ms <= latest
    )
    return hanging_transactions(desk.cluster, old)
