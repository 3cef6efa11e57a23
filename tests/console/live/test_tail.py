"""The end of a list that grows for ever."""

import pytest

from cotidal.console.live.tail import Tail


def filled(count, *, most=10):
    tail = Tail(most)
    for number in range(count):
        tail.extend([{"number": number}])
    return tail


def numbers(items):
    return [each["number"] for each in items]


def test_a_tail_is_as_long_as_all_that_was_ever_added():
    assert len(filled(7)) == 7
    assert len(filled(100)) == 100


def test_a_tail_keeps_the_newest():
    tail = filled(100)
    kept = numbers(tail)
    assert 5 <= len(kept) <= 10
    assert kept == list(range(100 - len(kept), 100))


def test_a_slice_has_what_is_still_there():
    tail = filled(11)
    assert numbers(tail) == [6, 7, 8, 9, 10]
    assert numbers(tail[8:11]) == [8, 9, 10]
    assert numbers(tail[2:8]) == [6, 7]
    assert numbers(tail[11:]) == []
    assert numbers(tail[0:3]) == []


def test_one_item_is_found_by_its_place_until_it_is_gone():
    tail = filled(11)
    assert tail[6]["number"] == 6
    assert tail[-1]["number"] == 10
    with pytest.raises(IndexError, match="item 5 is gone"):
        tail[5]
