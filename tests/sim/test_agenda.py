"""The agenda: time moves from plan to plan, and equal moments keep their order."""

from __future__ import annotations

from cotidal.sim.agenda import Agenda


def test_things_due_at_one_moment_happen_in_the_order_of_their_planning() -> None:
    agenda = Agenda()
    done: list[tuple[int, str]] = []

    def note(what: str) -> None:
        done.append((agenda.now, what))

    agenda.after(10, note, "b")
    agenda.after(5, note, "a")
    agenda.after(10, note, "c")
    agenda.run_until(20)
    assert done == [(5, "a"), (10, "b"), (10, "c")]
    assert agenda.now == 20


def test_what_is_planned_for_the_past_happens_now() -> None:
    agenda = Agenda()
    agenda.run_until(100)
    done: list[int] = []
    agenda.at(50, lambda: done.append(agenda.now))
    agenda.run_until(100)
    assert done == [100]


def test_what_is_due_later_waits() -> None:
    agenda = Agenda()
    done: list[int] = []
    agenda.after(11, lambda: done.append(agenda.now))
    agenda.run_until(10)
    assert not done
    assert not agenda.idle
