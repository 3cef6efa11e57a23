"""Fresh producer ids, out of blocks that the active controller hands out. Pure.

Whoever wants one waits its turn; a block is asked for when there is none left.
Owns of the state: producer_ids.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from cotidal.api import to_controller as api
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.rpc.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from cotidal.messages.rpc.apis import ApiKey
from cotidal.node import calls
from cotidal.node.coordinators import Asker
from cotidal.node.state import NodeState
from cotidal.values import ProducerId

TIMEOUT_MS: Final = 10_000


class BlockAsked:
    """A block under way."""


class ProducerIds:
    """What is left of the block, and who waits for the next one."""

    __slots__ = ("end", "next", "waiting")

    def __init__(self) -> None:
        self.next = ProducerId(0)
        self.end = ProducerId(0)
        self.waiting: deque[Asker] = deque()


def take(state: NodeState, asker: Asker) -> None:
    """It is answered with an id that nobody has had, or with a Refusal that passes."""
    ids = state.producer_ids
    ids.waiting.append(asker)
    if ids.next < ids.end:
        _hand_out(state)
    elif len(ids.waiting) == 1:
        _ask_for_block(state)


def on_block(state: NodeState, block: AllocateProducerIdsResponse) -> None:
    if block.error_code != 0:
        on_no_block(state, ErrorCode(block.error_code))
        return
    ids = state.producer_ids
    ids.next = ProducerId(block.producer_id_start)
    ids.end = ProducerId(block.producer_id_start + block.producer_id_len)
    _hand_out(state)


def on_no_block(state: NodeState, error: ErrorCode = ErrorCode.COORDINATOR_NOT_AVAILABLE) -> None:
    """Retriable for the clients that wait."""
    ids = state.producer_ids
    refusal = Refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"no producer ids: {error.name}")
    while ids.waiting:
        ids.waiting.popleft().answer(refusal)


def _hand_out(state: NodeState) -> None:
    ids = state.producer_ids
    while ids.waiting and ids.next < ids.end:
        given = ids.next
        ids.next = ProducerId(given + 1)
        ids.waiting.popleft().answer(given)
    if ids.waiting:
        _ask_for_block(state)


def _ask_for_block(state: NodeState) -> None:
    leader = state.controller.leader
    if leader is None:
        on_no_block(state)
        return
    calls.call(
        state,
        leader.node_id,
        leader.endpoint,
        lane=calls.CONTROL_LANE,
        api=ApiKey.ALLOCATE_PRODUCER_IDS,
        version=api.PRODUCER_IDS_VERSION,
        message=AllocateProducerIdsRequest(state.config.node_id, state.controller.broker_epoch),
        timeout_ms=TIMEOUT_MS,
        owner=BlockAsked(),
    )
