"""A plan: what a cluster is made of, what is done to it, and what it still owes us.

A plan names the faults that it draws from and how often they strike. Every failure means something:
faults are drawn within what the promises tolerate, and a plan that goes beyond says exactly which
promises it gives up (``exempt``), as the specification does:

  any amount of message loss, delay, partition, pause, clock skew       nothing is exempt
  unclean restarts, all without loss (kill -9)                          nothing is exempt
  unclean restarts with loss, fewer than min ISR until the ISR is whole nothing is exempt
  a disk that lies about fsync of partitions is a disk without it       as the line above
  more of them, or an unclean election                                  LOSS below
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from cotidal.invariants import (
    ACKED_IS_KEPT,
    CONSUMED_NEVER_CHANGES,
    ELIGIBLE_HOLD_COMMITTED,
    ELIGIBLE_NEVER_CUT,
    HIGH_WATERMARK_WAITS,
    LEADER_HOLDS_ACKED,
)

LOSS: Final = frozenset(
    {
        ELIGIBLE_HOLD_COMMITTED,
        LEADER_HOLDS_ACKED,
        HIGH_WATERMARK_WAITS,
        CONSUMED_NEVER_CHANGES,
        ELIGIBLE_NEVER_CUT,
        ACKED_IS_KEPT,
    }
)
"""Given up when more replicas lose data at once than the settings promise to survive."""


class Plan(NamedTuple):
    name: str
    about: str
    faults: Mapping[str, int]
    """Fault -> weight, in an order that is part of the plan."""
    nodes: int = 3
    """Brokers."""
    controllers: int = 0
    """So many nodes beside these, with the numbers after theirs, decide and do nothing else; 0: all
    brokers are controllers too."""
    region_ms: int = 0
    """Not 0: every node stands in a region of its own, at most so far from another."""
    seconds: int = 20
    gap_ms: int = 1_000
    """Between two faults, on average."""
    down_max: int = 1
    """Nodes that are down or paused at a time; partitions of the network are not counted."""
    replication: int = 3
    min_isr: int = 2
    partitions: int = 2
    settings: Mapping[str, str] = {}
    topic: Mapping[str, str] = {}
    """Settings of the workload's topics."""
    acks: tuple[int, ...] = (-1, -1, 1, 0)
    """A producer for each."""
    idempotence: str = "mixed"
    """Of producers with acks=all: "on", "off", or "mixed" for every other one."""
    keys: int = 0
    """Records have one of so many keys, and the workload's topics are compacted; 0: no keys."""
    produce_gap_ms: int = 120
    """Between two batches of a producer, on average."""
    elr: bool = True
    """Eligible leader replicas (KIP-966) are kept; without them: as Kafka before 4.0."""
    gathered: bool = False
    """Topics are created when every node serves, not as soon as somebody does."""
    consumers: int = 2
    """Every other one has a rack and uses fetch sessions."""
    members: int = 0
    """Of groups, with the classic protocol: every other one in the second group."""
    consumer_members: int = 0
    """The same, with the consumer protocol; in the same groups."""
    processors: int = 0
    """Members of a third group that process what is written, exactly once: in transactions."""
    patterns: bool = False
    """Members of the consumer protocol subscribe by regular expressions."""
    lookup_ms: int = 0
    """How long, at most, they look up what is new to them before they take it."""
    keepers: int = 0
    """Keep offsets in groups without members."""
    guests: int = 0
    """Join groups and make a mess of it."""
    strays: int = 0
    """The same with transactions."""
    admin_gap_ms: int = 700
    """Between two changes by the administrator; 0: none."""
    duties: Mapping[str, int] = {}
    """What the operator does -> weight, in an order that is part of the plan."""
    duty_gap_ms: int = 500
    first_voters: int = 0
    """The first so many nodes vote at first, and that can be changed; 0: all, for ever."""
    voters_gap_ms: int = 0
    """Between two changes of the voters; 0: none."""
    recorded: bool = False
    """Every life of a node is written down, and lived again."""
    exempt: frozenset[str] = frozenset()

    @property
    def processes(self) -> int:
        """All nodes, of whatever kind."""
        return self.nodes + self.controllers

    @property
    def may_lose(self) -> bool:
        return CONSUMED_NEVER_CHANGES in self.exempt
