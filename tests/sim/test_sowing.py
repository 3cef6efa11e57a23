"""Entropy by name."""

from __future__ import annotations

from cotidal.sim.sowing import sow


def test_a_place_draws_the_same_numbers_again() -> None:
    assert sow(1, "client", "p0").next_u64() == sow(1, "client", "p0").next_u64()


def test_no_two_places_or_seeds_draw_the_same() -> None:
    places = [("link", one, other) for one in range(40) for other in range(40)]
    drawn = {sow(seed, *place).next_u64() for seed in (1, 2, 3) for place in places}
    assert len(drawn) == 3 * len(places)
