"""A snapshot says what is committed, and the same as every other of that prefix."""

from __future__ import annotations

import pytest

from cotidal.core.quorum.log_view import SnapshotId
from cotidal.messages.records.metadata import TopicRecord
from cotidal.sim.checkers.snapshots import SnapshotChecker
from cotidal.sim.probes import Probes
from cotidal.sim.violation import Violation
from cotidal.values import LeaderEpoch, Offset, Uuid
from simulated import calm_run

SNAPSHOT = SnapshotId(Offset(5), LeaderEpoch(1))


def checker(committed: int) -> SnapshotChecker:
    found = SnapshotChecker(Probes())
    found._committed = committed
    return found


def test_a_snapshot_of_what_is_not_committed_is_a_violation() -> None:
    process = calm_run(1).world.running[0]
    with pytest.raises(Violation) as caught:
        checker(4)._look(process, SNAPSHOT, (), ())
    assert caught.value.name == "SNAPSHOT_IS_COMMITTED"


def test_two_snapshots_of_one_prefix_that_differ_are_a_violation() -> None:
    process = calm_run(1).world.running[0]
    looking = checker(5)
    looking._look(process, SNAPSHOT, (), ())
    looking._look(process, SNAPSHOT, (), ())
    other = TopicRecord(name="orders", topic_id=Uuid(b"o" * 16))
    with pytest.raises(Violation) as caught:
        looking._look(process, SNAPSHOT, (other,), ())
    assert caught.value.name == "IMAGES_EQUAL"
