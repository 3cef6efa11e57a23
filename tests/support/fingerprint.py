"""One number for all that happens in a run of the simulator: ``python fingerprint.py SEED``.

Needs nothing but the package, so that any Python on the machine can be asked for it.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping

from cotidal.sim.plans import PLANS
from cotidal.sim.run import run
from cotidal.sim.trace import Trace

SECONDS = 5


class Fingerprint(Trace):
    """Takes in every byte of every event and effect: lines tell less than that."""

    def __init__(self) -> None:
        super().__init__()
        self.taken = hashlib.sha256()

    def add(self, now_us: int, node: int, event: object, effects: tuple[object, ...]) -> None:
        self.taken.update(repr((now_us, node, whole(event), whole(effects))).encode())


def whole(value: object) -> object:
    """The same on every Python: no address, in order."""
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, tuple | list):
        return type(value).__name__, [whole(each) for each in value]
    if isinstance(value, Mapping):
        return [(whole(key), whole(each)) for key, each in value.items()]
    if value is None or isinstance(value, str | bytes | int | float):
        return value
    return type(value).__name__


def digest(seed: int) -> str:
    trace = Fingerprint()
    outcome = run(seed, PLANS["harsh"]._replace(seconds=SECONDS), trace)
    trace.taken.update(repr(outcome).encode())
    return trace.taken.hexdigest()


if __name__ == "__main__":
    print(digest(int(sys.argv[1])))
