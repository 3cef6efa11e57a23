"""Peers that have perhaps just died: what a connection tells before the controller does. Pure.

A process that is killed drops its connections at once; its leaderships move some milliseconds
later. A client that asks for metadata in between and is sent back to the dead leader loses a second
or more in its own back-off, so for that moment we name no leader: clients ask again soon.

A doubt is a hint and nothing more: it changes no decision. It ends with the next connection, or
after DOUBT_MS if nobody refuses one: a broker that we cannot reach may serve everybody else.
Owns of the state: doubts.
"""

from __future__ import annotations

from typing import Final

from cotidal.node.state import NodeState
from cotidal.values import Millis, NodeId

DOUBT_MS: Final = 500
"""Longer than it takes to elect another leader, shorter than any client's patience."""


def on_connected(state: NodeState, peer: NodeId) -> None:
    state.doubts[peer] = None


def on_lost(state: NodeState, peer: NodeId, *, refused: bool) -> None:
    """The loss of a connection that stood, or a refusal; a vain attempt tells nothing new."""
    stood = peer in state.doubts and state.doubts[peer] is None
    if stood or refused:
        state.doubts[peer] = Millis(state.now + DOUBT_MS)


def is_doubted(state: NodeState, peer: NodeId) -> bool:
    until = state.doubts.get(peer)
    return until is not None and state.now < until
