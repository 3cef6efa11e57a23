"""A metadata log in which several batches count together, as Kafka's controllers write it."""

from __future__ import annotations

from typing import Any

import pytest

from asking import create, node_with
from cotidal.messages.records import metadata as m
from cotidal.node import effects as fx
from cotidal.values import Offset, Uuid
from lone_node import LoneNode

BEGIN, END, ABORT = m.BeginTransactionRecord(), m.EndTransactionRecord(), m.AbortTransactionRecord()


def batches_of(node: LoneNode) -> list[fx.MetadataBatch]:
    return [each for each in node.metadata if isinstance(each, fx.MetadataBatch)]


def write(node: LoneNode, *records: Any) -> None:
    """Into its log, as if another controller had."""
    last = batches_of(node)[-1]
    base = Offset(last.base_offset + len(last.records))
    node.metadata.append(last._replace(base_offset=base, records=records, control=False))


def topic(name: str) -> m.TopicRecord:
    return m.TopicRecord(name=name, topic_id=Uuid(name.encode().ljust(16, b".")))


def topics(node: LoneNode) -> set[str]:
    committed = node.node._state.controller.committed
    return {name for name in committed.topics if not name.startswith("__")}


def aborts(node: LoneNode) -> int:
    return sum(
        isinstance(record, m.AbortTransactionRecord)
        for batch in batches_of(node)
        for record in batch.records
    )


@pytest.fixture
def node() -> LoneNode:
    return node_with()


def test_records_between_begin_and_end_count_and_those_before_an_abort_do_not(
    node: LoneNode,
) -> None:
    write(node, BEGIN, topic("ended"))
    write(node, topic("more"), END)
    write(node, BEGIN, topic("aborted"))
    write(node, ABORT)
    after = node.restart()
    assert topics(after) == {"orders", "ended", "more"}
    assert aborts(after) == 1


def test_whoever_leads_next_aborts_what_is_undecided_and_goes_on(node: LoneNode) -> None:
    write(node, BEGIN, topic("undecided"))
    write(node, topic("more"))
    after = node.restart()
    assert topics(after) == {"orders"}
    assert aborts(after) == 1
    create(after, "undecided")
    create(after, "last")
    assert topics(after.restart()) == {"orders", "undecided", "last"}
    assert aborts(after.restart()) == 1


def test_what_is_undecided_is_in_no_snapshot() -> None:
    node = node_with(metadata_log_max_record_bytes_between_snapshots="600")
    for number in range(10):
        create(node, f"t{number}")
    write(node, BEGIN, *(topic(f"u{number}") for number in range(40)))
    after = node.restart(fx.Persist)  # the abort is not written yet
    begun = batches_of(node)[-1].base_offset
    assert max(after.snapshots).end_offset <= begun
    assert after.node._state.quorum.applied <= begun
