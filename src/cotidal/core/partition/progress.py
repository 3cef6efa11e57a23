"""What a leader knows of one follower. Pure.

Changed only by that follower's own fetches. The offset that a follower asks for is the end of its
log: it has written, and so acknowledges, everything below it.

A follower is *caught up* when it is at the leader's end now, or was at what was the leader's end
not longer than replica.lag.time.max.ms ago. A fetch that reaches the end which the leader had at
the *previous* fetch proves that it was caught up then, though records kept coming: that is why the
leader's end and the time of the last fetch are remembered.
"""

from __future__ import annotations

from cotidal.values import NO_BROKER_EPOCH, NO_OFFSET, BrokerEpoch, Millis, Offset

NEVER = Millis(-(1 << 62))


class Progress:
    """One follower, as its leader sees it."""

    __slots__ = (
        "broker_epoch",
        "end_offset",
        "last_caught_up",
        "last_fetch",
        "leader_end_at_fetch",
        "start_offset",
    )

    def __init__(self, *, caught_up: Millis) -> None:
        self.end_offset = NO_OFFSET
        """-1 until it has fetched in this leader's time: nothing is known of its log."""
        self.start_offset = NO_OFFSET
        self.last_fetch = NEVER
        self.leader_end_at_fetch = NO_OFFSET
        self.last_caught_up = caught_up
        self.broker_epoch = NO_BROKER_EPOCH
        """Of the incarnation that fetched last (KIP-903)."""

    def on_fetched(
        self,
        *,
        offset: Offset,
        start_offset: Offset,
        leader_end: Offset,
        broker_epoch: BrokerEpoch,
        now: Millis,
    ) -> None:
        if offset >= leader_end:
            self.last_caught_up = max(self.last_caught_up, now)
        elif offset >= self.leader_end_at_fetch >= 0:
            self.last_caught_up = max(self.last_caught_up, self.last_fetch)
        self.end_offset = offset
        self.start_offset = start_offset
        self.leader_end_at_fetch = leader_end
        self.last_fetch = now
        self.broker_epoch = broker_epoch

    def on_level(self, now: Millis) -> None:
        """It has fetched again where it stands, which was the leader's end and still is."""
        self.last_caught_up = max(self.last_caught_up, now)
        self.last_fetch = now

    def restart_clock(self, *, caught_up: Millis) -> None:
        """The same leader in a later epoch: where the follower stands is still known."""
        self.last_fetch = NEVER
        self.leader_end_at_fetch = NO_OFFSET
        self.last_caught_up = caught_up

    def is_caught_up(self, *, leader_end: Offset, now: Millis, lag_max_ms: int) -> bool:
        return self.end_offset == leader_end or now - self.last_caught_up <= lag_max_ms
