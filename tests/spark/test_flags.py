"""Which replicas flap, and which brokers lead too much."""

from __future__ import annotations

from cotidal.spark.flags import FLAPPING_WITHIN_MS, SILENT_MS, Departures, Flag, Leaderships

MINUTE = 60_000


def test_the_third_departure_within_five_minutes_raises_a_flag_and_the_fourth_no_other() -> None:
    departures = Departures()
    told = [
        flag
        for time in (0, MINUTE, 2 * MINUTE, 3 * MINUTE)
        for flag in departures.left(time, [2, 3] if time == 0 else [2])
    ]
    assert told == [Flag("flapping", 2 * MINUTE, 2, 3, None, True)]


def test_departures_that_are_far_apart_are_none_to_speak_of() -> None:
    departures = Departures()
    times = range(0, 10 * FLAPPING_WITHIN_MS, FLAPPING_WITHIN_MS // 2)
    assert [flag for time in times for flag in departures.left(time, [2])] == []


def test_the_same_departure_told_again_does_not_count() -> None:
    departures = Departures()
    told = [flag for time in (0, 0, MINUTE) for flag in departures.left(time, [2])]
    assert told == []


def test_a_flag_is_lowered_when_the_first_departure_is_old_enough() -> None:
    departures = Departures()
    for time in (10, MINUTE, 2 * MINUTE):
        list(departures.left(time, [2]))
    due = departures.due()
    assert due == 10 + FLAPPING_WITHIN_MS
    assert list(departures.passed(due - 1)) == []
    assert list(departures.passed(due)) == [Flag("flapping", due, 2, 2, None, False)]
    assert list(departures.passed(20 * MINUTE)) == []
    assert departures.due() is None


def test_departures_are_remembered_from_micro_batch_to_micro_batch() -> None:
    text = Departures().as_text()
    told = []
    for time in (0, 1, 2, 3):
        departures = Departures.from_text(text)
        told += departures.left(time, [2])
        text = departures.as_text()
    assert told == [Flag("flapping", 2, 2, 3, None, True)]


def leading(*leads: int, time: int = 0, into: Leaderships | None = None) -> Leaderships:
    found = into or Leaderships()
    for broker, each in enumerate(leads, 1):
        found.told(time, broker, each)
    return found


def test_a_broker_that_leads_half_as_much_again_is_flagged_until_it_does_not() -> None:
    leaderships = leading(6, 3, 3)
    assert list(leaderships.judged()) == [Flag("uneven", 0, 1, 6, 4.0, True)]
    assert list(leading(6, 3, 3, time=1, into=leaderships).judged()) == []
    again = Leaderships.from_text(leaderships.as_text())
    assert list(leading(5, 4, 3, time=2, into=again).judged()) == [
        Flag("uneven", 2, 1, 5, 4.0, False)
    ]


def test_what_was_told_late_changes_nothing() -> None:
    leaderships = leading(4, 4, 4, time=5)
    leaderships.told(4, 1, 12)
    assert list(leaderships.judged()) == []


def test_a_broker_that_is_silent_has_no_share() -> None:
    leaderships = leading(4, 4, 0)
    leaderships.told(SILENT_MS + 1, 1, 4)
    leaderships.told(SILENT_MS + 1, 2, 4)
    assert list(leaderships.judged()) == []


def test_a_broker_that_spoke_half_a_minute_ago_still_has_one() -> None:
    leaderships = leading(4, 4, 0)
    leaderships.told(SILENT_MS, 1, 4)
    leaderships.told(SILENT_MS, 2, 4)
    assert [(flag.broker, flag.raised) for flag in leaderships.judged()] == [(1, True), (2, True)]


def test_the_flag_of_a_broker_that_falls_silent_is_lowered() -> None:
    leaderships = leading(6, 3, 3)
    assert [flag.broker for flag in leaderships.judged()] == [1]
    late = SILENT_MS + 1
    leaderships.told(late, 2, 3)
    leaderships.told(late, 3, 3)
    again = Leaderships.from_text(leaderships.as_text())
    assert list(again.judged()) == [Flag("uneven", late, 1, 0, 3.0, False)]
    assert list(again.judged()) == []


def test_nobody_has_told_anything_yet() -> None:
    assert list(Leaderships().judged()) == []


def test_one_partition_in_all_is_not_uneven() -> None:
    assert list(leading(1, 0, 0).judged()) == []
