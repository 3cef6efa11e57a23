"""Majorities and what they hold. Pure arithmetic, usable alone.

Of n voters a majority is n // 2 + 1, so any two majorities share a voter: that one voter is why an
elected leader has every committed record.
"""

from __future__ import annotations

from collections.abc import Sequence

from cotidal.values import Millis, Offset


def majority_of(voters: int) -> int:
    """How many of so many voters decide.

    >>> [majority_of(n) for n in (1, 2, 3, 4, 5)]
    [1, 2, 2, 3, 3]
    """
    return voters // 2 + 1


def committed_offset(ends: Sequence[Offset]) -> Offset:
    """The largest offset below which a majority holds everything.

    >>> committed_offset([Offset(7), Offset(9), Offset(4)])
    7
    >>> committed_offset([Offset(7), Offset(9)])
    7
    """
    assert ends, "a quorum has voters"
    return sorted(ends, reverse=True)[len(ends) // 2]


def is_won(*, granted: int, voters: int) -> bool:
    return granted >= majority_of(voters)


def is_lost(*, refused: int, voters: int) -> bool:
    """So many have refused that the rest is no majority."""
    return voters - refused < majority_of(voters)


def last_heard_by_majority(contacts: Sequence[Millis], *, others_needed: int) -> Millis | None:
    """When the ``others_needed`` most recent of these contacts had all happened.

    None if nobody else is needed: a voter alone is its own majority for ever (KAFKA-16144).

    >>> last_heard_by_majority([Millis(10), Millis(30), Millis(20)], others_needed=2)
    20
    """
    if others_needed == 0:
        return None
    return sorted(contacts, reverse=True)[others_needed - 1]
