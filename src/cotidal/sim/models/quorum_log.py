"""A log replicated to a majority (Raft, Paxos) beside one replicated to an ISR. Pure; a model.

What each needs and survives follows from its rule alone:

  majority   2f + 1 copies; a record is committed when f + 1 hold it, a leader needs f + 1 votes. It
             keeps everything and goes on writing while no more than f are gone; with f + 1 gone it
             stands still.
  ISR        n copies; a record is committed when every member of the ISR holds it, and the ISR has
             at least m members (min.insync.replicas) whenever something is acknowledged. It keeps
             everything while no more than m - 1 copies are lost, and goes on writing while no more
             than n - m are gone: two numbers to choose, where a majority has one.

The price is in the wait: a majority log waits for its f fastest followers, an ISR for the slowest
of its members. ``wait_us`` draws round trips as the simulator's network does (network.py), and
nothing else: no disk, no batching, no constant of anybody's machine.

Source: "Replicated Logs: Quorums, ISRs, and State Machines" in Kafka's documentation, which makes
the same comparison in words.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cotidal.core.machine import Entropy
from cotidal.sim.lab.measures import quantile
from cotidal.sim.sowing import sow

DELAY_US: Final = 200
JITTER_US: Final = 300
"""One way, as in network.py."""


class Log(NamedTuple):
    name: str
    copies: int
    waited_for: int
    """Followers that hold a record when it is acknowledged and nobody is gone."""
    lost_max: int
    """Copies that may be lost without losing what was acknowledged."""
    gone_max: int
    """Copies that may be gone while writing goes on."""


def majority_log(tolerated: int) -> Log:
    copies = 2 * tolerated + 1
    return Log(f"majority of {copies}", copies, tolerated, tolerated, tolerated)


def isr_log(copies: int, min_isr: int) -> Log:
    assert 1 <= min_isr <= copies
    name = f"ISR of {copies}, min ISR {min_isr}"
    return Log(name, copies, copies - 1, min_isr - 1, copies - min_isr)


COMPARED: Final = (
    majority_log(1),
    isr_log(2, 2),
    isr_log(3, 2),
    isr_log(3, 1),
    majority_log(2),
    isr_log(3, 3),
    isr_log(5, 3),
)
"""By the copies that may be lost: one, one, one, none; then two."""


def wait_us(log: Log, *, slow_us: int = 0, seed: int = 1, draws: int = 2_000) -> tuple[int, int]:
    """From the leader's write to the last follower it waits for: median and 99th of a hundred.

    ``slow_us``: how much longer each way takes to one of the followers.
    """
    entropy = sow(seed, "quorum log", log.name)
    waits = []
    for _ in range(draws):
        trips = [_round_trip(entropy) for _ in range(log.copies - 1)]
        trips[0] += 2 * slow_us
        waits.append(sorted(trips)[log.waited_for - 1])
    waits.sort()
    return quantile(waits, 50), quantile(waits, 99)


def _round_trip(entropy: Entropy) -> int:
    return 2 * DELAY_US + entropy.below(JITTER_US) + entropy.below(JITTER_US)
