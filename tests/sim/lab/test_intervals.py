"""Confidence intervals: against numbers worked out elsewhere, and the same every time."""

from __future__ import annotations

from math import sqrt

import pytest

from cotidal.sim.lab.intervals import Estimate, bootstrap_mean, bootstrap_ratio, wilson_ppm


@pytest.mark.parametrize(("hits", "of"), [(0, 40), (1, 40), (3, 17), (20, 40), (39, 40), (40, 40)])
def test_wilsons_interval_is_what_the_formula_gives(hits: int, of: int) -> None:
    z = 1.96
    share = hits / of
    middle = share + z * z / (2 * of)
    root = z * sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    low, high = ((middle + sign * root) / (1 + z * z / of) for sign in (-1, 1))
    found = wilson_ppm(hits, of)
    assert found.value == hits * 1_000_000 // of
    assert found.low == pytest.approx(low * 1e6, abs=1)
    assert found.high == pytest.approx(high * 1e6, abs=1)


def test_nothing_is_known_of_no_runs() -> None:
    assert wilson_ppm(0, 0) == Estimate(0, 0, 1_000_000)


def test_a_bootstrap_is_the_same_every_time() -> None:
    values = [number * number % 97 for number in range(40)]
    assert bootstrap_mean(values, name="a") == bootstrap_mean(values, name="a")


def test_a_bootstrap_of_equal_runs_is_certain() -> None:
    assert bootstrap_mean([7] * 20) == Estimate(7, 7, 7)
    assert bootstrap_ratio([1, 2], [10, 20], scale=100) == Estimate(10, 10, 10)


def test_a_bootstrap_is_as_wide_as_theory_says() -> None:
    """Of a mean: about 1.96 standard errors each way."""
    values = [10_000 if number % 2 else 0 for number in range(100)]
    found = bootstrap_mean(values)
    assert found.value == 5_000
    assert found.high - found.low == pytest.approx(2 * 1.96 * 500, rel=0.12)


def test_a_ratio_of_nothing_is_nothing() -> None:
    assert bootstrap_ratio([0, 0], [0, 0]) == Estimate(0, 0, 0)
