"""What is taken from __cotidal_events, and what is not."""

import json

import pytest

from cotidal.client.consumer import Fetched
from cotidal.console.live.chronicle import TOPIC, Chronicle

EVENT = {"kind": "broker_fenced", "time": 1_794_742_137_302, "incarnation": "a", "sequence": 4}


@pytest.fixture
def taken(monkeypatch):
    """What a chronicle gives of records with these values."""
    chronicle = Chronicle(None)

    def give(*values):
        records = [Fetched(TOPIC, 0, 0, 0, None, value, ()) for value in values]
        monkeypatch.setattr(chronicle, "_read", lambda: records)
        return chronicle.news()

    return give


def value(**changed):
    return json.dumps(EVENT | changed).encode()


def test_an_event_that_is_written_twice_is_told_once(taken):
    assert taken(value(), value()) == [EVENT]
    assert taken(value()) == []
    assert len(taken(value(sequence=5), value(incarnation="b"))) == 2


def test_what_two_controllers_tell_of_one_decision_is_told_once(taken):
    one = value(metadata_offset=9, node=2)
    other = value(metadata_offset=9, node=2, incarnation="b", sequence=1)
    assert len(taken(one, other)) == 1
    assert len(taken(value(metadata_offset=9, node=3), value(metadata_offset=10, node=2))) == 2


def test_health_is_no_happening(taken):
    assert taken(value(kind="health")) == []


@pytest.mark.parametrize(
    "bad",
    [
        None,
        b"",
        b"\xff\xfe",
        b"[1]",
        b'"text"',
        b"{}",
        b"[" * 100_000,
        value(kind=7),
        value(time="now"),
        value(time=1 << 60),
        value(time=-1),
    ],
)
def test_what_is_no_event_is_passed_over(taken, bad):
    assert taken(bad, value()) == [EVENT]


def test_an_event_with_anything_in_its_fields_is_borne(taken):
    assert len(taken(value(incarnation=[[]], sequence={}))) == 1
