from __future__ import annotations

import pytest

from cotidal.core.cluster.snapshot import SinceSnapshot, next_snapshot, snapshot_reason

HOUR = 3_600_000


@pytest.mark.parametrize(
    ("records", "size", "age", "wanted"),
    [
        (1, 20_971_519, HOUR - 1, None),
        (1, 20_971_520, 0, "20971520 bytes of records, at most 20971520 between snapshots"),
        (1, 0, HOUR, "the last one was 3600000 ms ago"),
        (0, 0, 9 * HOUR, None),
        (0, 30_000_000, 9 * HOUR, None),
    ],
)
def test_snapshot_is_due_by_bytes_or_by_time_when_there_is_something_new(
    scene, records, size, age, wanted
):
    since = SinceSnapshot(records, size, 1_000)
    assert snapshot_reason(scene().controller, since, 1_000 + age) == wanted


def test_both_bounds_are_settings(scene):
    settings = {
        "metadata.log.max.record.bytes.between.snapshots": "100",
        "metadata.log.max.snapshot.interval.ms": "0",
    }
    controller = scene(settings=settings).controller
    assert snapshot_reason(controller, SinceSnapshot(5, 99, 0), 9 * HOUR) is None
    assert snapshot_reason(controller, SinceSnapshot(5, 100, 0), 0) is not None
    assert next_snapshot(controller, SinceSnapshot(5, 0, 0)) is None


def test_deadline_is_an_interval_after_the_last_one(scene):
    controller = scene().controller
    assert next_snapshot(controller, SinceSnapshot(1, 0, 7)) == 7 + HOUR
    assert next_snapshot(controller, SinceSnapshot(0, 0, 7)) is None
