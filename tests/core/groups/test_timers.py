from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cotidal.core.groups.timers import Timers
from cotidal.values import Millis

MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.integers(0, 3), st.integers(0, 30)),
        st.tuples(st.just("cancel"), st.integers(0, 3), st.just(0)),
        st.tuples(st.just("pass"), st.just(0), st.integers(0, 10)),
    ),
    max_size=40,
)


@given(MOVES)
def test_timers_do_what_a_dictionary_of_deadlines_says(moves):
    timers: Timers[int] = Timers()
    due: dict[int, int] = {}
    now = 0
    for move, key, amount in moves:
        if move == "set":
            due[key] = now + amount
            timers.set(key, Millis(now + amount))
        elif move == "cancel":
            due.pop(key, None)
            timers.cancel(key)
        else:
            now += amount
        earliest = timers.next_deadline()
        assert not due or (earliest is not None and earliest <= min(due.values()))
        found = set()
        while (key_out := timers.take(Millis(now))) is not None:
            found.add(key_out)
        assert found == {each for each, at in due.items() if at <= now}
        due = {each: at for each, at in due.items() if at > now}
        assert len(timers) == len(due)
