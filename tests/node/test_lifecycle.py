"""A broker's life under its controller."""

from __future__ import annotations

from asking import create, node_with, produce, written
from cotidal.messages.records.metadata import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    UnregisterBrokerRecord,
)
from cotidal.node import controller
from cotidal.node.effects import MetadataBatch
from cotidal.node.events import Ticked
from cotidal.values import Millis, WallMillis


def test_a_loop_that_stalled_does_not_fence_its_own_broker() -> None:
    node = node_with()
    node.now += 60_000
    node.tell(Ticked(WallMillis(1)))
    written_down = [
        record
        for batch in node.metadata
        if isinstance(batch, MetadataBatch)
        for record in batch.records
    ]
    changes = [each for each in written_down if isinstance(each, BrokerRegistrationChangeRecord)]
    assert not any(each.fenced > 0 for each in changes)
    assert written(node.ask(*produce(b"x"))) == (0, 0)


def test_a_broker_that_was_unregistered_registers_again_and_serves() -> None:
    node = node_with()
    node.ask(*produce(b"x"))
    state = node.node._state
    epoch = state.controller.broker_epoch
    state.now = Millis(node.now)
    gone = (FenceBrokerRecord(1, epoch), UnregisterBrokerRecord(1, epoch))
    controller.propose(state, gone, controller.Nothing())
    node.pass_time(3_000)
    assert state.controller.broker_epoch > epoch
    assert create(node, "more").error_code == 0
    assert written(node.ask(*produce(b"y", topic="more"))) == (0, 0)
    assert written(node.ask(*produce(b"y"))) == (0, 1)
