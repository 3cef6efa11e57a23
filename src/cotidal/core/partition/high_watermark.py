"""Arithmetic of the high watermark. Pure.

It is exclusive: records below it are committed, the one at it is not.
"""

from __future__ import annotations

from collections.abc import Iterable

from cotidal.values import Offset


def committed_offset(*, leader_end: Offset, ends_waited_for: Iterable[Offset]) -> Offset:
    """How far every replica that must be waited for has got; -1 for one that never fetched.

    >>> committed_offset(leader_end=Offset(12), ends_waited_for=(Offset(11), Offset(12)))
    11
    """
    reached = leader_end
    for end in ends_waited_for:
        reached = min(reached, end)
    return reached


def clamped(checkpoint: Offset, *, start: Offset, end: Offset) -> Offset:
    """A high watermark read from disk, moved into the log that was found there."""
    return max(start, min(checkpoint, end))
