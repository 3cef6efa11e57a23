"""What a replica says, obeyed."""

from __future__ import annotations

import pytest

from asking import node_with, produce
from cotidal.core.partition.effects import PartitionEffect, StartOver, Truncate
from cotidal.node.effects import Note
from cotidal.node.partition_effects import obey
from cotidal.values import Offset, TopicPartition


@pytest.mark.parametrize(
    ("effect", "told"),
    [
        (Truncate(Offset(1)), "orders-0 drops offsets 1 to 2: its leader has others there"),
        (StartOver(Offset(9)), "orders-0 drops offsets 0 to 2: its leader has others there"),
        (Truncate(Offset(3)), None),
    ],
)
def test_records_that_are_dropped_are_told(effect: PartitionEffect, told: str | None) -> None:
    node = node_with()
    for value in (b"a", b"b", b"c"):
        node.ask(*produce(value))
    state = node.node._state
    state.out.clear()
    obey(state, state.hosted[TopicPartition("orders", 0)], (effect,))
    said = [each.text for each in state.out if isinstance(each, Note)]
    assert said == ([] if told is None else [told])
