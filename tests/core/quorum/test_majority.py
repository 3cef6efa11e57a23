"""Majority arithmetic, against its definition."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from cotidal.core.quorum.majority import (
    committed_offset,
    is_lost,
    is_won,
    last_heard_by_majority,
    majority_of,
)
from cotidal.values import Millis, Offset


@pytest.mark.parametrize("voters", range(1, 8))
def test_any_two_majorities_share_a_voter(voters: int) -> None:
    size = majority_of(voters)
    groups = list(combinations(range(voters), size))
    assert all(set(one) & set(other) for one in groups for other in groups)
    if voters > 1:
        smaller = list(combinations(range(voters), size - 1))
        assert any(not set(one) & set(other) for one in smaller for other in smaller)


@pytest.mark.parametrize("voters", range(1, 6))
def test_committed_is_the_largest_offset_that_a_majority_holds(voters: int) -> None:
    for ends in product(range(4), repeat=voters):
        held = [
            offset
            for offset in range(4)
            if sum(1 for end in ends if end >= offset) >= majority_of(voters)
        ]
        assert committed_offset([Offset(end) for end in ends]) == max(held)


@pytest.mark.parametrize("voters", range(1, 8))
def test_an_election_is_lost_exactly_when_it_can_no_longer_be_won(voters: int) -> None:
    for refused in range(voters + 1):
        can_win = is_won(granted=voters - refused, voters=voters)
        assert is_lost(refused=refused, voters=voters) is not can_win


def test_contact_counts_from_the_last_of_those_needed() -> None:
    contacts = [Millis(5), Millis(40), Millis(30)]
    assert last_heard_by_majority(contacts, others_needed=1) == 40
    assert last_heard_by_majority(contacts, others_needed=3) == 5


def test_who_needs_nobody_else_is_never_out_of_contact() -> None:
    assert last_heard_by_majority([], others_needed=0) is None
