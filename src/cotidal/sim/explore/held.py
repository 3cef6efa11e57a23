"""A log in a small world: the records that it holds, and what two logs owe each other. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from cotidal.invariants import LOG_PREFIXES_MATCH
from cotidal.sim.violation import Violation
from cotidal.values import LeaderEpoch


class Held(NamedTuple):
    """One record. Its offset is its place in the log."""

    epoch: LeaderEpoch
    value: str


HeldLog: TypeAlias = tuple[Held, ...]


def told(records: HeldLog) -> str:
    return " ".join(f"{record.value}@{record.epoch}" for record in records) or "nothing"


def compare_logs(names: Sequence[str], logs: Sequence[HeldLog]) -> None:
    """Where two logs last have the same epoch at the same offset, all before it is the same."""
    for number, mine in enumerate(logs):
        for other, theirs in enumerate(logs[:number]):
            shared = min(len(mine), len(theirs))
            agree = [at for at in range(shared) if mine[at].epoch == theirs[at].epoch]
            if agree and mine[: agree[-1] + 1] != theirs[: agree[-1] + 1]:
                raise Violation(
                    LOG_PREFIXES_MATCH,
                    f"{names[other]} and {names[number]} agree on the epoch at {agree[-1]}, and"
                    f" hold {told(theirs)} and {told(mine)}",
                )
