"""What a question is, and what it is asked with."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cotidal.client.cluster import Cluster
from cotidal.client.status import Status, gather
from cotidal.console.world import Command, Json


class Desk(NamedTuple):
    cluster: Cluster
    """Of this thread alone."""
    status: Status | None
    """As it was last seen, a moment ago; None before that."""

    def seen(self) -> Status:
        """As it was last seen, or as it is now."""
        return self.status or gather(self.cluster, internal=True)


class Question(NamedTuple):
    answer: Callable[[Desk, Command], Json]
    changes: bool = False
    """It may change the cluster."""
