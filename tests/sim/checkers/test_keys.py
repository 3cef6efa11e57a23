"""Compacted logs: what their checker sees when compaction goes wrong."""

from __future__ import annotations

import pytest

from cotidal.log.key_map import KeyMap
from cotidal.log.log import Log
from cotidal.sim import probes
from cotidal.sim.plans import PLANS
from cotidal.sim.run import run

TOMBSTONES = PLANS["tombstones"]._replace(seconds=8)
COMPACTION = PLANS["compaction"]._replace(seconds=8)


def test_logs_are_compacted_and_tombstones_go() -> None:
    outcome = run(1, TOMBSTONES)
    assert (outcome.broken, outcome.sentence) == (None, "")
    assert outcome.seen[probes.COMPACTED] > 10
    assert outcome.seen[probes.TOMBSTONE_GONE] > 0


def test_key_that_loses_its_newest_record_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KeyMap, "newest", lambda self, key: 1 << 40)
    assert run(1, TOMBSTONES).broken == "ELIGIBLE_HOLD_COMMITTED"


def test_key_that_returns_after_its_tombstone_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KeyMap, "newest", lambda self, key: -1)  # nothing is ever superseded
    outcome = run(1, TOMBSTONES)
    assert outcome.broken == "ELIGIBLE_HOLD_COMMITTED"
    assert "the tombstone is gone" in outcome.sentence


@pytest.mark.plain
def test_record_that_is_lost_before_anybody_looks_is_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was acknowledged is known from producers, not from logs."""
    from cotidal.sim.checkers import keys

    def forgetful(log: Log) -> keys.Records:
        return {at: each for at, each in read(log).items() if each.key != b"3"}

    read = keys.read_log
    monkeypatch.setattr(keys, "read_log", forgetful)
    assert run(1, COMPACTION).broken == "LEADER_HOLDS_ACKED"
