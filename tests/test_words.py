from __future__ import annotations

import pytest

from cotidal.words import counted


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 runs"), (1, "1 run"), (2, "2 runs"), (1_200, "1,200 runs")]
)
def test_a_quantity_is_said_as_people_say_it(number: int, said: str) -> None:
    assert counted(number, "run") == said
