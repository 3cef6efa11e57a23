"""The order and the pace of what a simulated disk does."""

from __future__ import annotations

from cotidal.core.machine import Entropy
from cotidal.node.events import Event, StartMoved
from cotidal.sim.agenda import Agenda
from cotidal.sim.lane import Hands, Lane, Speed
from cotidal.values import Offset, TopicPartition, Uuid, WallMillis

PLACE = TopicPartition("orders", 0)
TOPIC = Uuid(bytes(16))


class Desk:
    """One lane, and what was done and told, in order."""

    def __init__(self) -> None:
        self.agenda = Agenda()
        self.happened: list[str] = []
        self.hands = Hands(
            self.agenda,
            Entropy(1),
            Speed(),
            post=self._on_told,
            run=lambda do, *args: do(*args),
            wall=lambda: WallMillis(0),
        )
        self.lane = Lane(self.hands, PLACE, TOPIC)

    def ask(self, number: int, took_us: int) -> None:
        def work() -> tuple[Event, ...]:
            self.happened.append(f"done {number}")
            return (StartMoved(PLACE, TOPIC, Offset(number)),)

        self.lane.when_free(lambda: self.lane.run(work, took_us))

    def _on_told(self, event: Event) -> None:
        assert isinstance(event, StartMoved)
        self.happened.append(f"told {event.start_offset}")


def test_a_job_that_takes_no_time_is_told_at_once() -> None:
    desk = Desk()
    desk.ask(1, 0)
    assert desk.happened == ["done 1", "told 1"]


def test_a_job_is_done_when_it_begins_and_told_when_it_ends() -> None:
    desk = Desk()
    desk.ask(1, 50)
    desk.agenda.run_until(49)
    assert desk.happened == ["done 1"]
    desk.agenda.run_until(50)
    assert desk.happened == ["done 1", "told 1"]


def test_jobs_of_one_lane_are_done_in_the_order_in_which_they_were_asked_for() -> None:
    desk = Desk()
    desk.ask(1, 50)
    desk.ask(2, 30)
    desk.ask(3, 0)
    desk.agenda.run_until(79)
    assert desk.happened == ["done 1", "told 1", "done 2"]
    desk.agenda.run_until(80)
    assert desk.happened[3:] == ["told 2", "done 3", "told 3"]


def test_nothing_is_told_and_nothing_more_done_once_the_process_is_dead() -> None:
    desk = Desk()
    desk.ask(1, 50)
    desk.ask(2, 0)
    desk.hands.dead = True
    desk.agenda.run_until(1_000)
    assert desk.happened == ["done 1"]


def test_what_is_synced_takes_up_to_the_time_of_a_sync_and_a_slow_job_together() -> None:
    desk = Desk()
    speed = Speed()
    synced = [desk.hands.took(sync=True) for _ in range(2_000)]
    plain = [desk.hands.took() for _ in range(2_000)]
    assert speed.slow_us < max(synced) <= speed.sync_us + speed.slow_us
    assert max(plain) <= speed.slow_us
    assert 0.7 < plain.count(0) / len(plain) < 0.8
