"""What a node counts while it works: plain integers, updated on the hot path, read by a scrape.

An update costs well under a microsecond because nothing here knows what a metric is: metrics.py
turns these numbers into the exposition format when somebody asks.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

LATENCY_BOUNDS_S: Final[tuple[float, ...]] = (
    *(0.0001, 0.0003, 0.001, 0.003, 0.01, 0.02),
    *(0.05, 0.1, 0.3, 1.0, 3.0),
)
_BOUNDS = list(LATENCY_BOUNDS_S)


class Histogram:
    """Counts by upper bound; the last bucket has none."""

    __slots__ = ("buckets", "total")

    def __init__(self) -> None:
        self.buckets = [0] * (len(_BOUNDS) + 1)
        self.total = 0.0

    def add(self, seconds: float, times: int = 1) -> None:
        self.buckets[bisect_left(_BOUNDS, seconds)] += times
        self.total += seconds * times

    @property
    def count(self) -> int:
        return sum(self.buckets)


class Counters:
    """One for each node."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "compacted_bytes",
        "connections",
        "connections_opened",
        "connections_refused",
        "held_bytes",
        "idle_closed",
        "latency",
        "log_failures",
        "loop_lag",
        "malformed_frames",
        "peer_bytes_in",
        "peer_bytes_out",
        "produced_bytes",
        "replicated_in_bytes",
        "requests",
        "times",
        "turns",
    )

    def __init__(self) -> None:
        self.requests: dict[int, int] = {}
        """By API key."""
        self.times: dict[int, Histogram] = {}
        """By API key, from the read of a request to its answer."""
        self.bytes_in = 0
        self.bytes_out = 0
        self.peer_bytes_in = 0
        """Of connections that this node made to others."""
        self.peer_bytes_out = 0
        self.produced_bytes = 0
        """Of batches that producers sent, and that were given to a log."""
        self.replicated_in_bytes = 0
        """Of batches that leaders sent."""
        self.connections = 0
        self.connections_opened = 0
        self.connections_refused = 0
        self.idle_closed = 0
        self.malformed_frames = 0
        self.held_bytes = 0
        self.log_failures = 0
        self.compacted_bytes = 0
        self.turns = 0
        self.latency = Histogram()
        """From the read of a request to the end of the turn that stepped the node with it: a
        request that is parked (a long poll, acks=all) is answered by a later turn."""
        self.loop_lag = Histogram()
        """How long a turn kept everyone else waiting, and how late a timer was."""

    def answered(self, key: int, seconds: float) -> None:
        """A request of this API has its answer, so long after it was read."""
        times = self.times.get(key)
        if times is None:
            times = self.times[key] = Histogram()
        times.buckets[bisect_left(_BOUNDS, seconds)] += 1  # not add: every request comes by here
        times.total += seconds
