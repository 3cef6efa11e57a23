"""Who leads a partition, in the answer of who does not (KIP-951). Pure.

Produce says it from version 10 on, Fetch from 16 on; of these errors only.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cotidal.errors import ErrorCode
from cotidal.values import LeaderEpoch, NodeId

MISDIRECTED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


class Leader(NamedTuple):
    """``epoch``: the one in which it leads."""

    node_id: NodeId
    epoch: LeaderEpoch
    host: str
    port: int
    rack: str | None
