"""The table of what is done to links and disks."""

from __future__ import annotations

import pytest

from cotidal.broker.faults import HELD, NO_FAULTS, both_ways, read_faults, write_faults


def test_a_table_is_read_as_it_was_written() -> None:
    faults = NO_FAULTS.held(both_ways(1, [2, 3])).slowed([(2, 3)], 0.25).filled(3, "orders-0")
    assert read_faults(write_faults(faults)) == faults
    assert faults.delays[3, 1] == HELD


def test_what_is_healed_is_gone_and_nothing_else() -> None:
    faults = NO_FAULTS.held(both_ways(1, [2])).slowed([(2, 3)], 0.25)
    assert faults.healed(both_ways(1, [2])).delays == {(2, 3): 0.25}


def test_a_log_is_full_once() -> None:
    faults = NO_FAULTS.filled(3, "orders-0").filled(3, "orders-0")
    assert faults.full == ((3, "orders-0"),)
    assert faults.emptied(3, "orders-0") == NO_FAULTS


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"held": [[1]], "slow": [], "full": []}'])
def test_what_is_no_table_is_said_to_be_none(text: str) -> None:
    with pytest.raises(ValueError, match="no table of faults"):
        read_faults(text)
