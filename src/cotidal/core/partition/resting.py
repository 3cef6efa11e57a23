"""A follower that asks again what it asked before, of a partition in which nothing has moved. Pure.

A leader is asked for many partitions at once, and most of them rest most of the time. What a fetch
can bring about in a partition (leader.on_follower_fetched) is that its high watermark moves, that
somebody joins the ISR, or that the follower was caught up once more. A follower *rests* when only
the last is left: it is in the ISR, it has everything, and everything is committed.

    offset asked for = its end = our end = our high watermark    nothing to read, nothing to commit
    in the ISR                                                   nobody to join
    its log begins where ours does, or later                     nothing to delete

Whether that still holds is seen at a glance, without asking what it was granted for: neither the
role nor the brokers that may be in an ISR nor the ISR itself are other than they were.
"""

from __future__ import annotations

from cotidal.core.partition.leader import FollowerFetched
from cotidal.core.partition.progress import Progress
from cotidal.core.partition.replica import Leadership, Replica
from cotidal.values import Millis


class Rest:
    """What was seen when a follower was found to rest."""

    __slots__ = ("_active", "_fetched", "_isr", "_leadership", "_progress", "_replica")

    def __init__(self, replica: Replica, leadership: Leadership, fetched: FollowerFetched) -> None:
        self._fetched = fetched
        self._replica = replica
        self._leadership = leadership
        self._active = leadership.active
        self._isr = leadership.isr
        """Whoever gets another assignment gets another ISR with it."""
        self._progress: Progress = leadership.followers[fetched.node_id]

    def goes_on(self, now: Millis) -> bool:
        """The follower has said the same again. True: it was caught up now, and that is all. False:
        it is to be looked at like any other fetch; nothing has been recorded."""
        replica, leadership = self._replica, self._leadership
        fetched, progress = self._fetched, self._progress
        if (
            replica.leadership is not leadership
            or leadership.active is not self._active
            or leadership.isr is not self._isr
            or replica.end_offset != fetched.offset
            or replica.start_offset > fetched.start_offset
            or progress.end_offset != fetched.offset  # it may speak in another session, too
            or progress.start_offset != fetched.start_offset
            or progress.broker_epoch != fetched.broker_epoch
        ):
            return False
        progress.on_level(now)
        return True


def rest(replica: Replica, fetched: FollowerFetched) -> Rest | None:
    """After its fetch was granted and recorded: does this follower rest?"""
    leadership = replica.leadership
    if (
        leadership is None
        or fetched.node_id not in leadership.isr
        or not replica.end_offset == replica.high_watermark == fetched.offset
        or replica.start_offset > fetched.start_offset
    ):
        return None
    return Rest(replica, leadership, fetched)
