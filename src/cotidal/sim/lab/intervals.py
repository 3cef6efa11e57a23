"""How sure one can be of a number: confidence intervals of 95 %. Pure, and the same everywhere.

A *proportion* (runs that lost something) has Wilson's interval, which is honest near 0 and 1: none
of 40 runs is not "certainly none". A *mean* or a *ratio of sums* over runs has the interval of the
percentile bootstrap: the runs are drawn again with replacement, ``RESAMPLES`` times, from an
entropy of our own. Everything is whole numbers; a proportion is told in parts per million.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import Final, NamedTuple

from cotidal.sim.sowing import sow

MILLION: Final = 1_000_000
Z_MILLI: Final = 1_960
"""1.96 standard deviations: 95 % of a normal distribution."""
RESAMPLES: Final = 1_000


class Estimate(NamedTuple):
    value: int
    low: int
    high: int


def wilson_ppm(hits: int, of: int) -> Estimate:
    """``hits`` of ``of``, in parts per million.

    >>> wilson_ppm(0, 40)
    Estimate(value=0, low=0, high=87625)
    >>> wilson_ppm(20, 40)
    Estimate(value=500000, low=351993, high=648007)
    """
    if of == 0:
        return Estimate(0, 0, MILLION)
    # Numerators and denominator of the formula, times 4 n 10^6, so that only the root is rounded.
    z2 = Z_MILLI * Z_MILLI
    centre = 2 * hits * MILLION + z2
    root = isqrt(z2 * (z2 * of * of + 4 * hits * (of - hits) * of * MILLION)) // of
    scale = 2 * (of * MILLION + z2)
    return Estimate(
        hits * MILLION // of,
        max(0, _rounded((centre - root) * MILLION, scale)),
        min(MILLION, _rounded((centre + root) * MILLION, scale)),
    )


def _rounded(over: int, under: int) -> int:
    return (2 * over + under) // (2 * under)


def bootstrap_ratio(
    over: Sequence[int], under: Sequence[int], *, scale: int = 1, name: str = ""
) -> Estimate:
    """sum(over) / sum(under) x ``scale``; runs are what is drawn. A mean if ``under`` is ones."""
    assert len(over) == len(under)
    if not sum(under):
        return Estimate(0, 0, 0)
    entropy = sow(len(over), "bootstrap", name)
    found = []
    for _ in range(RESAMPLES):
        drawn = [entropy.below(len(over)) for _ in over]
        total = sum(under[at] for at in drawn)
        found.append(sum(over[at] for at in drawn) * scale // total if total else 0)
    found.sort()
    low, high = RESAMPLES * 25 // 1000, RESAMPLES * 975 // 1000 - 1
    return Estimate(sum(over) * scale // sum(under), found[low], found[high])


def bootstrap_mean(values: Sequence[int], *, name: str = "") -> Estimate:
    return bootstrap_ratio(values, [1] * len(values), name=name)
