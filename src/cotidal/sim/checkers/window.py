"""What checkers may see of a node: its state, read only. The one place that knows where it is."""

from __future__ import annotations

from collections.abc import Iterator

from cotidal.core.cluster.image import Image
from cotidal.core.groups.consumer.group import ConsumerGroup
from cotidal.core.groups.coordinator import GroupCoordinator
from cotidal.core.quorum.node import QuorumNode
from cotidal.core.quorum.states import Leader, Quorum
from cotidal.core.transactions.coordinator import TransactionCoordinator
from cotidal.core.transactions.transaction import Transaction
from cotidal.node.hosting import Hosted
from cotidal.node.state import NodeState
from cotidal.sim.process import Process
from cotidal.values import TopicPartition


def state_of(process: Process) -> NodeState:
    return process.node._state


def hosted_by(process: Process) -> dict[TopicPartition, Hosted]:
    return process.node._state.hosted


def consumer_groups_of(process: Process) -> Iterator[ConsumerGroup]:
    """Of the consumer protocol, of all coordinators on the node."""
    for shard in process.node._state.coordinators.shards.values():
        if isinstance(shard.machine, GroupCoordinator):
            yield from shard.machine.groups.image.consumers.values()


def image_of(process: Process) -> Image:
    """What the node has applied of the committed metadata."""
    return process.node._state.controller.committed


def applied_by(process: Process) -> int:
    return process.node._state.quorum.applied


def quorum_of(process: Process) -> Quorum:
    return process.node._state.quorum.machine.state


def quorum_machine_of(process: Process) -> QuorumNode:
    return process.node._state.quorum.machine


def speculative_of(process: Process) -> Image | None:
    """What the active controller decides upon: also what is not committed yet."""
    decider = process.node._state.controller.controller
    return None if decider is None else decider.image


def leads_quorum(process: Process) -> bool:
    return isinstance(quorum_of(process).role, Leader)


def broker_epoch_of(process: Process) -> int:
    return process.node._state.controller.broker_epoch


def transactions_of(process: Process) -> dict[str, Transaction]:
    """By transactional id: those that this node coordinates."""
    found: dict[str, Transaction] = {}
    for shard in process.node._state.coordinators.shards.values():
        if isinstance(shard.machine, TransactionCoordinator):
            found.update(shard.machine.transactions)
    return found
