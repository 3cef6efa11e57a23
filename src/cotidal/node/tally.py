"""What a node counts of replication while it works. Pure: plain integers, read by a scrape.

A *protocol event* is one thing that a machine of core is told or has to decide:

    partition     a batch, a marker or a deletion to admit; a partition of a consumer's fetch; how
                  far a follower has got; a leader's answer; a log that grew, opened, was cut, moved
                  its start or failed; a role; other members of the ISR, or of the cluster
    quorum        an event of the voter or observer: a question, an answer, a write, a tick
    controller    a request, or a duty, to decide; a record to replay, in either image
    coordinator   a question, a tick, a commit; a record to replay

However often it is looked at again it is one: a fetch that waits is counted when it comes, and a
follower's as what it tells its leader.
"""

from __future__ import annotations

from cotidal.limits import ACK_SPANS


class Tally:
    """Since the node started."""

    __slots__ = (
        "ack_ms",
        "controller_events",
        "coordinator_events",
        "elections",
        "events_dropped",
        "events_written",
        "fetched_from_follower_bytes",
        "fetched_from_leader_bytes",
        "high_watermark_regressions",
        "isr_expands",
        "isr_shrinks",
        "partition_events",
        "quorum_events",
        "replicated_out_bytes",
        "throttles",
        "truncated_records",
        "truncations",
        "unclean_elections",
    )

    def __init__(self) -> None:
        self.isr_shrinks = 0
        """Of partitions that this node leads, as committed."""
        self.isr_expands = 0
        self.elections = 0
        """Committed while this node was the active controller."""
        self.unclean_elections = 0
        self.truncations = 0
        self.truncated_records = 0
        self.high_watermark_regressions = 0
        self.fetched_from_leader_bytes = 0
        """By consumers, of partitions that this node leads."""
        self.fetched_from_follower_bytes = 0
        """By consumers, of partitions that another one leads."""
        self.replicated_out_bytes = 0
        """By followers."""
        self.throttles: dict[str, tuple[int, int]] = {}
        """By the key of a quota: how often a client was made to wait, and for how long in all, in
        milliseconds."""
        self.ack_ms = [0] * ACK_SPANS
        """Partitions of Produces with acks=all that were committed, by how long that took since
        they came: less than 1 ms, 2, 4, 8, ..., and the last for all that took longer."""
        self.events_written = 0
        self.events_dropped = 0
        self.partition_events = 0
        self.quorum_events = 0
        self.controller_events = 0
        self.coordinator_events = 0

    @property
    def protocol_events(self) -> int:
        return (
            self.partition_events
            + self.quorum_events
            + self.controller_events
            + self.coordinator_events
        )

    def acknowledged(self, waited_ms: int) -> None:
        self.ack_ms[min(waited_ms.bit_length(), ACK_SPANS - 1)] += 1

    def throttled(self, quota: str, wait_ms: int) -> None:
        times, waited_ms = self.throttles.get(quota, (0, 0))
        self.throttles[quota] = (times + 1, waited_ms + wait_ms)
