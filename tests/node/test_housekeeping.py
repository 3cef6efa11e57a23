"""What a node does because time has passed."""

from __future__ import annotations

from asking import create, node_with, produce
from cotidal.node.effects import Compact, Retain, SaveHighWatermarks
from cotidal.values import TopicPartition
from cotidal.wire.batch import read_batches
from cotidal.wire.records import Record, build_batch

RETENTION_CHECK_MS = 300_000


def test_retention_looks_at_topics_that_delete_and_at_no_others() -> None:
    node = node_with()
    create(node, "kept", cleanup_policy="compact")
    create(node, "both", cleanup_policy="compact,delete")
    node.pass_time(RETENTION_CHECK_MS)
    looked_at = {effect.partition.topic for effect in node.other if isinstance(effect, Retain)}
    assert looked_at == {"orders", "both"}


def test_retention_never_passes_the_high_watermark() -> None:
    node = node_with()
    node.ask(*produce(b"a", b"b"))
    node.pass_time(RETENTION_CHECK_MS)
    bounds = [effect.below for effect in node.other if isinstance(effect, Retain)]
    assert bounds == [2]


def test_high_watermarks_are_written_down_when_they_have_moved() -> None:
    node = node_with()
    node.ask(*produce(b"a"))
    node.pass_time(20_000)
    saved = [effect.watermarks for effect in node.other if isinstance(effect, SaveHighWatermarks)]
    assert saved == [((TopicPartition("orders", 0), 1),)]


CLEANER_BACKOFF_MS = 15_000


def test_compaction_looks_at_topics_that_compact_and_at_no_others() -> None:
    node = node_with()
    create(node, "kept", cleanup_policy="compact")
    create(node, "both", cleanup_policy="compact,delete")
    node.pass_time(CLEANER_BACKOFF_MS)
    (asked,) = [effect for effect in node.other if isinstance(effect, Compact)]
    assert [each.partition.topic for each in asked.logs] == ["kept", "both"]
    assert asked.key_bytes == int((128 << 20) * 0.9)


def test_compaction_never_passes_the_high_watermark() -> None:
    node = node_with(log_cleanup_policy="compact")
    keyed = [Record(b"k", b"a"), Record(b"k", b"b")]
    node.ask(*produce(records=read_batches(build_batch(keyed))))
    node.pass_time(CLEANER_BACKOFF_MS)
    (asked,) = [effect for effect in node.other if isinstance(effect, Compact)]
    assert [each.below for each in asked.logs] == [2]


def test_node_whose_cleaner_is_disabled_asks_for_nothing() -> None:
    node = node_with(log_cleaner_enable="false")
    create(node, "kept", cleanup_policy="compact")
    node.pass_time(4 * CLEANER_BACKOFF_MS)
    assert not [effect for effect in node.other if isinstance(effect, Compact)]
