"""What a node counts of replication while it works. Pure: plain integers, read by a scrape."""

from __future__ import annotations


class Tally:
    """Since the node started."""

    __slots__ = (
        "elections",
        "events_dropped",
        "events_written",
        "fetched_from_follower_bytes",
        "fetched_from_leader_bytes",
        "high_watermark_regressions",
        "isr_expands",
        "isr_shrinks",
        "replicated_out_bytes",
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
        self.events_written = 0
        self.events_dropped = 0
