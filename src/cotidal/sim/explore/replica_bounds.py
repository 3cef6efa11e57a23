"""How much may happen in the partition's world, and how much is left of it. Pure."""

from __future__ import annotations

from typing import NamedTuple


class Bounds(NamedTuple):
    """How much may happen in all."""

    min_isr: int = 2
    """Not a bound, but a setting of the topic; so is what a crash may lose."""
    records: int = 2
    crashes: int = 1
    lossy: bool = True
    fences: int = 1
    shrinks: int = 1
    late: int = 0
    resends: int = 0
    decisions: int = 2
    """Of the controller, healing included."""
    eager: bool = True
    """Metadata that changes nothing for a replica is applied at once; False: at any time."""


class Left(NamedTuple):
    """How much may still happen."""

    records: int
    crashes: int
    fences: int
    shrinks: int
    late: int
    resends: int

    @classmethod
    def of(cls, bounds: Bounds) -> Left:
        return cls(*(getattr(bounds, name) for name in cls._fields))
