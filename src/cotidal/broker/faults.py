"""What is done to links and disks of a local cluster on purpose, as a value and a file. Pure.

A *link* is one direction between two nodes. The same table is told to every node; each takes from
it what concerns it. As a file it is JSON, each entry a list:

    {"held": [[1, 2]], "slow": [[2, 3, 0.25]], "full": [[3, "orders-0"]]}

  held   nothing passes from 1 to 2
  slow   from 2 to 3 everything takes a quarter of a second longer
  full   the files of that log of node 3 cannot grow
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

Pair = tuple[int, int]
"""From the first node to the second."""

HELD: Final = float("inf")
"""The delay of a link that passes nothing."""


class Faults(NamedTuple):
    delays: Mapping[Pair, float] = {}
    """Of links that are not as they should be, in seconds; HELD: nothing passes."""
    full: tuple[tuple[int, str], ...] = ()
    """Node and log."""

    def held(self, pairs: Iterable[Pair]) -> Faults:
        return self.slowed(pairs, HELD)

    def slowed(self, pairs: Iterable[Pair], seconds: float) -> Faults:
        return self._replace(delays={**self.delays, **dict.fromkeys(pairs, seconds)})

    def healed(self, pairs: Iterable[Pair]) -> Faults:
        gone = set(pairs)
        kept = {pair: delay for pair, delay in self.delays.items() if pair not in gone}
        return self._replace(delays=kept)

    def filled(self, node: int, log: str) -> Faults:
        return self._replace(full=(*self.emptied(node, log).full, (node, log)))

    def emptied(self, node: int, log: str) -> Faults:
        return self._replace(full=tuple(each for each in self.full if each != (node, log)))


NO_FAULTS: Final = Faults()


def both_ways(one: int, others: Iterable[int]) -> list[Pair]:
    """Every link between a node and each of the others."""
    return [pair for other in others for pair in ((one, other), (other, one))]


def write_faults(faults: Faults) -> str:
    delays = sorted(faults.delays.items())
    return json.dumps(
        {
            "held": [list(pair) for pair, delay in delays if delay == HELD],
            "slow": [[*pair, delay] for pair, delay in delays if delay != HELD],
            "full": [list(each) for each in faults.full],
        }
    )


def read_faults(text: str) -> Faults:
    """ValueError, in a sentence, for what is no such table."""
    try:
        found = json.loads(text)
        delays = {(int(source), int(target)): HELD for source, target in found["held"]}
        for source, target, seconds in found["slow"]:
            delays[int(source), int(target)] = float(seconds)
        return Faults(delays, tuple((int(node), str(log)) for node, log in found["full"]))
    except (ValueError, TypeError, KeyError) as wrong:
        raise ValueError(f"this is no table of faults: {wrong}") from wrong
