"""Peers that have perhaps just died: what a connection tells before the controller does. Pure.

A process that is killed drops its connections at once; its leaderships move some milliseconds
later. A client that asks for metadata in between and is sent back to the dead leader loses a second
or more in its own back-off, so for that moment we name no leader: clients ask again soon.

A doubt is a hint and nothing more: it changes no decision. It ends with the next connection, or
after DOUBT_MS if nobody refuses one: a broker that we cannot reach may serve everybody else.

A broker that was lost is still named among the brokers for a while, though it leads nothing:
librdkafka, when a broker goes from the list, may forget the new leader of what the old one led, and
look for it again a second later.
Owns of the state: doubts.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cotidal.node.state import NodeState
from cotidal.values import Millis, NodeId

DOUBT_MS: Final = 500
"""Longer than it takes to elect another leader, shorter than any client's patience."""
NAMED_MS: Final = 5_000
"""Long enough for every client to have found the new leaders."""


class Doubt(NamedTuple):
    since: Millis
    """When its connection ended."""
    until: Millis
    refused: bool
    """Nobody listens there: more than a doubt."""


def on_connected(state: NodeState, peer: NodeId) -> None:
    state.doubts[peer] = None


def on_lost(state: NodeState, peer: NodeId, *, refused: bool) -> None:
    """The loss of a connection that stood, or a refusal; a vain attempt tells nothing new."""
    before = state.doubts.get(peer)
    stood = peer in state.doubts and before is None
    if stood or refused:
        since = state.now if before is None else before.since
        state.doubts[peer] = Doubt(since, Millis(state.now + DOUBT_MS), refused)


def is_doubted(state: NodeState, peer: NodeId) -> bool:
    doubt = state.doubts.get(peer)
    return doubt is not None and state.now < doubt.until


def is_quorum_gone(state: NodeState) -> bool:
    """So many controllers refuse connections that the others cannot decide anything."""
    voters = state.quorum.machine.state.voter_set.ids
    gone = 0
    for voter in voters:
        doubt = state.doubts.get(voter)
        gone += doubt is not None and doubt.refused and state.now < doubt.until
    return 2 * (len(voters) - gone) <= len(voters)


def is_just_lost(state: NodeState, peer: NodeId) -> bool:
    """Whether it was there a moment ago, whatever has been decided about it since."""
    doubt = state.doubts.get(peer)
    return doubt is not None and state.now < doubt.since + NAMED_MS
