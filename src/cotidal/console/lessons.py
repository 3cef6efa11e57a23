"""Lessons that the sandbox plays: a caption, what is done, how long to watch. Pure.

A command may name a node by its part: "leader", "controller", "follower" (that is neither). Who it
is is looked up when the part first appears, and stays; the journal has the number.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cotidal.console.sandbox import Start
from cotidal.console.world import Json
from cotidal.sim.models.controller_failover import zookeeper_ms


class Scene(NamedTuple):
    caption: str
    commands: tuple[Json, ...] = ()
    watch_ms: int = 4_000


class Lesson(NamedTuple):
    title: str
    start: Start
    scenes: tuple[Scene, ...]
    speed: float = 1.0


_PARTITIONS: Final = 2_000

LESSONS: Final[dict[str, Lesson]] = {
    "slow-region": Lesson(
        "acks=all is as slow as the slowest in-sync replica, acks=1 is not",
        Start(seed=11, delay_ms=5, lag_ms=2_000, rate=8),
        (
            Scene(
                "Three brokers, one in each region, all near each other. Two producers write: one"
                " waits for every in-sync replica (acks=all), one for the leader alone (acks=1)."
                " Look at the latency plot: both are answered within milliseconds.",
                ({"do": "rate", "acks": "1", "per_second": 8},),
            ),
            Scene(
                "The region of one follower moves 100 ms away. It still keeps up, so it stays in"
                " the ISR, and the high watermark waits for it: acks=all now takes more than"
                " 100 ms. acks=1 is as fast as before.",
                ({"do": "slow", "node": "follower", "by_ms": 100},),
                5_000,
            ),
            Scene(
                "Now it is more than a second away, there and back longer than"
                " replica.lag.time.max.ms (2 s). While the leader still waits for it, acks=all"
                " waits too. Then the leader asks the controller for an ISR without it.",
                ({"do": "slow", "node": "follower", "by_ms": 1_200},),
                9_000,
            ),
            Scene(
                "The slow follower has left the ISR. The high watermark goes on without it, and"
                " acks=all is fast again, with one copy fewer. With min ISR 2, one more loss"
                " would stop writes rather than risk them.",
                (),
                5_000,
            ),
            Scene(
                "The region is near again. The follower catches up, is proposed for the ISR, and"
                " from that moment on is waited for.",
                ({"do": "slow", "node": "follower", "by_ms": 0},),
                9_000,
            ),
        ),
    ),
    "failover-then-and-now": Lesson(
        "Failover of a controller: ZooKeeper's era beside KRaft",
        Start(seed=3, nodes=5, delay_ms=3, rate=6),
        (
            Scene(
                "Five brokers, all of them controllers of a KRaft quorum. The one marked C is the"
                " active controller; the others hold the same metadata log.",
                (),
                2_000,
            ),
            Scene(
                "The active controller is killed. Watch the sentences: another node asks for"
                " votes, has a majority, and is active at once, for it has the log already.",
                ({"do": "kill", "node": "controller"},),
                4_000,
            ),
            Scene(
                "In ZooKeeper's era a new controller first had to read the state of every"
                " partition. A model of it (sim/models says where its numbers come from) takes"
                f" {zookeeper_ms(_PARTITIONS) / 1000:.1f} s with {_PARTITIONS:,} partitions, and"
                " grows with their number; here it was the time of one election.",
                (),
                2_000,
            ),
        ),
    ),
}
