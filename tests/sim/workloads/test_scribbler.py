"""A record that turns up in a namesake of its topic is a broken promise."""

from __future__ import annotations

import pytest

from cotidal.sim import probes
from cotidal.sim.violation import Violation
from cotidal.values import Uuid
from cotidal.wire.records import Record, build_batch
from simulated import calm_run

FIRST, SECOND = Uuid(b"1" * 16), Uuid(b"2" * 16)


def batch(topic_id: Uuid) -> bytes:
    return build_batch([Record(None, b"%s 1" % topic_id.hex().encode())])


def test_a_record_of_the_topic_itself_is_fine() -> None:
    run = calm_run(1)
    run.scribbler._look_at("scratch-a", FIRST, batch(FIRST) + batch(FIRST))
    run.scribbler._look_at("scratch-a", SECOND, batch(SECOND))
    assert run.probes.seen[probes.RECREATED] == 1


def test_a_record_of_its_namesake_is_not() -> None:
    run = calm_run(1)
    with pytest.raises(Violation) as caught:
        run.scribbler._look_at("scratch-a", SECOND, batch(SECOND) + batch(FIRST))
    assert caught.value.name == "TOPICS_STAY_APART"
