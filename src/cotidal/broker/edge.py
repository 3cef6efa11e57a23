"""A place between a node's sockets and the node, for tests of clients (testing/replies.py).

No node that serves anybody else has anything there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from cotidal.broker.server import Server
from cotidal.node.effects import Respond
from cotidal.node.events import Event


class Edge(Protocol):
    def attach(self, post: Callable[[Event], None], server: Server) -> None:
        """Before the first event: the node, and the sockets."""

    def on_event(self, event: Event) -> None:
        """Something came from a socket."""

    def on_reply(self, reply: Respond) -> None:
        """The node answers."""
