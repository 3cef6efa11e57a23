"""What happens is written to __cotidal_events, within bounds, and nothing waits for it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asking import create, produce
from cotidal.core.cluster.decide.topics import EVENTS_TOPIC
from cotidal.core.cluster.image import TOPIC_RESOURCE
from cotidal.core.partition.effects import Truncate
from cotidal.core.partition.replica import Replica
from cotidal.limits import (
    EVENT_WRITE_ATTEMPTS_MAX,
    EVENTS_PER_WRITE_MAX,
    EVENTS_QUEUED_MAX,
    HEALTH_PARTITIONS_MAX,
)
from cotidal.node import chronicle
from cotidal.node import effects as fx
from cotidal.node.chronicle import SAMPLE_MS, SETTLE_MS
from cotidal.node.events import LogFailed
from cotidal.node.happenings import BrokerUnregistered, LogOffline
from cotidal.node.partition_effects import move, obey
from cotidal.node.state import NodeState
from cotidal.values import Millis, NodeId, Offset, TopicPartition, WallMillis
from cotidal.wire.records import read_records
from json_schema import EVENTS, violations
from lone_node import LoneNode

TOPIC = TopicPartition(EVENTS_TOPIC, 0)
ORDERS = TopicPartition("orders", 0)
WHAT = BrokerUnregistered(NodeId(9), Offset(1))


def told_of(node: LoneNode) -> NodeState:
    return node.node._state


def telling(**settings: str) -> LoneNode:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return LoneNode({"cotidal.events.enable": "true"} | given).start()


def written(node: LoneNode) -> list[dict[str, Any]]:
    """Every record of the topic, each of them valid."""
    if TOPIC not in node.logs:
        return []
    found = [
        json.loads(record.value or b"")
        for _, _, batch in node.logs[TOPIC].batches
        for record in read_records(batch)
    ]
    for each in found:
        assert violations(each, EVENTS) == []
    return found


def kinds(node: LoneNode) -> list[str]:
    return [each["kind"] for each in written(node)]


def test_a_node_tells_how_it_came_to_serve_and_then_how_it_is() -> None:
    node = telling()
    node.pass_time(SETTLE_MS + 3 * SAMPLE_MS)
    assert kinds(node)[:3] == ["controller_changed", "broker_registered", "broker_unfenced"]
    assert set(kinds(node)[3:]) == {"health"}
    sequence = [each["sequence"] for each in written(node)]
    assert sequence == list(range(1, len(sequence) + 1))
    assert len({each["incarnation"] for each in written(node)}) == 1


def test_samples_are_of_full_seconds_whenever_a_node_began() -> None:
    node = LoneNode({"cotidal.events.enable": "true"})
    node.now = Millis(node.now + 345)
    node.start()
    node.pass_time(SETTLE_MS + 5 * SAMPLE_MS)
    _, *samples = (each["time"] for each in written(node) if each["kind"] == "health")
    # The first may be of before the node knew the time.
    assert len(samples) > 3
    assert {at % SAMPLE_MS for at in samples} == {0}


@pytest.mark.parametrize(
    ("past_ms", "wait_ms"), [(0, 1_000), (1, 999), (499, 501), (500, 1_500), (999, 1_001)]
)
def test_a_second_that_is_nearly_over_is_let_go(past_ms: int, wait_ms: int) -> None:
    """A tick may come a moment before its time; there is one sample of a second all the same."""
    state = told_of(telling())
    state.wall = WallMillis(1_700_000_000_000 + past_ms)
    assert chronicle._next_sample(state) == state.now + wait_ms


def test_the_topic_is_created_by_need_with_settings_of_its_own() -> None:
    node = telling()
    node.pass_time(SETTLE_MS - SAMPLE_MS)
    assert TOPIC not in node.logs, "others may be about to come"
    node.pass_time(2 * SAMPLE_MS)
    image = told_of(node).controller.committed
    assert len(image.topics[EVENTS_TOPIC].partitions) == 1
    assert image.config(TOPIC_RESOURCE, EVENTS_TOPIC) == {
        "cleanup.policy": "delete",
        "retention.ms": "86400000",
        "retention.bytes": "1073741824",
        "segment.ms": "3600000",
        "min.insync.replicas": "1",
    }


def test_nothing_is_told_unless_it_is_asked_for() -> None:
    node = LoneNode().start()
    node.pass_time(10 * SAMPLE_MS)
    assert TOPIC not in node.logs
    assert not told_of(node).chronicle.queue


def test_a_topic_that_waits_for_more_brokers_is_asked_for_again() -> None:
    node = telling(default_replication_factor="2")
    node.pass_time(60 * SAMPLE_MS)
    assert TOPIC not in node.logs
    assert node.node.tally.events_dropped > 0
    assert len(told_of(node).chronicle.queue) < 60, "given up, not gathered for ever"


def test_a_partition_is_sampled_when_it_has_changed() -> None:
    node = telling()
    create(node, "orders")
    node.pass_time(SETTLE_MS + 2 * SAMPLE_MS)
    before = len(written(node))
    node.pass_time(SAMPLE_MS)
    (quiet,) = written(node)[before:]
    assert (quiet["leads"], quiet["partitions"]) == (1, [])
    node.ask(*produce(b"x"))
    node.pass_time(SAMPLE_MS)
    (sample,) = written(node)[before + 1 :]
    (orders,) = sample["partitions"]
    assert (orders["topic"], orders["end_offset"], orders["high_watermark"]) == ("orders", 1, 1)


def test_partitions_without_room_in_a_sample_come_first_in_the_next() -> None:
    node = telling()
    create(node, "orders", partitions=HEALTH_PARTITIONS_MAX + 20)
    node.pass_time(SETTLE_MS + 4 * SAMPLE_MS)
    first, second, third = [
        each for each in written(node) if each["kind"] == "health" and each["leads"]
    ][:3]
    assert (len(first["partitions"]), first["left_out"]) == (HEALTH_PARTITIONS_MAX, 20)
    assert (len(second["partitions"]), second["left_out"]) == (20, 0)
    assert third["partitions"] == []
    sampled = {each["partition"] for each in first["partitions"] + second["partitions"]}
    assert len(sampled) == HEALTH_PARTITIONS_MAX + 20


def test_what_does_not_fit_into_the_queue_is_dropped_and_counted() -> None:
    node = LoneNode({"cotidal.events.enable": "true"}).start()
    state = told_of(node)
    room = EVENTS_QUEUED_MAX - len(state.chronicle.queue)
    for _ in range(room + 5):
        chronicle.tell(state, WHAT)
    assert node.node.tally.events_dropped == 5
    assert len(state.chronicle.queue) == EVENTS_QUEUED_MAX
    node.pass_time(SETTLE_MS + SAMPLE_MS)
    sequences = [each["sequence"] for each in written(node)]
    missing = set(range(1, sequences[-1] + 1)) - set(sequences)
    assert len(missing) == node.node.tally.events_dropped, "a gap for each"


def test_a_batch_is_bounded() -> None:
    node = telling()
    for _ in range(3 * EVENTS_PER_WRITE_MAX):
        chronicle.tell(told_of(node), WHAT)
    node.pass_time(SETTLE_MS + SAMPLE_MS)
    sizes = [after - base for base, after, _ in node.logs[TOPIC].batches]
    assert max(sizes) == EVENTS_PER_WRITE_MAX


def test_a_batch_that_nobody_takes_is_tried_a_few_times_and_dropped() -> None:
    node = telling()
    node.pass_time(SETTLE_MS + SAMPLE_MS)
    state = told_of(node)
    node.hold.add(fx.Append)
    chronicle.tell(state, WHAT)
    attempts = 0
    while not node.node.tally.events_dropped:
        node.pass_time(100)
        attempts = len(node.held)
    assert attempts == EVENT_WRITE_ATTEMPTS_MAX


def test_what_the_first_attempt_did_not_bring_the_next_one_does() -> None:
    node = telling()
    node.pass_time(SETTLE_MS + SAMPLE_MS)
    node.hold.add(fx.Append)
    chronicle.tell(told_of(node), WHAT)
    node.pass_time(SAMPLE_MS)
    assert "broker_unregistered" not in kinds(node)
    node.hold.clear()
    node.held.clear()  # the disk forgets: nobody will ever answer the first attempt
    told_of(node).hosted[TOPIC].replica.next_offset = Offset(node.logs[TOPIC].end)
    node.pass_time(5 * SAMPLE_MS)
    assert kinds(node).count("broker_unregistered") == 1
    assert node.node.tally.events_dropped == 0


def test_the_topic_does_not_tell_of_itself() -> None:
    node = telling()
    node.pass_time(SETTLE_MS + SAMPLE_MS)
    chronicle.tell(told_of(node), LogOffline(EVENTS_TOPIC, 0, "x"))
    node.pass_time(5 * SAMPLE_MS)
    assert "log_offline" not in kinds(node)
    assert all(each["partitions"] == [] for each in written(node) if each["kind"] == "health")


def test_records_that_a_replica_drops_are_told_and_counted() -> None:
    node = telling()
    create(node, "orders")
    node.ask(*produce(b"a", b"b", b"c", b"d", b"e"))
    node.pass_time(SETTLE_MS + SAMPLE_MS)
    state = told_of(node)
    obey(state, state.hosted[ORDERS], (Truncate(Offset(3)),))
    node.pass_time(SAMPLE_MS)
    (told,) = [each for each in written(node) if each["kind"] == "log_truncated"]
    assert (told["topic"], told["offset"], told["records"]) == ("orders", 3, 2)
    assert told["high_watermark"] == 5
    assert (node.node.tally.truncations, node.node.tally.truncated_records) == (1, 2)


def test_a_cut_that_drops_nothing_is_not_told() -> None:
    node = telling()
    create(node, "orders")
    node.ask(*produce(b"a"))
    state = told_of(node)
    obey(state, state.hosted[ORDERS], (Truncate(Offset(1)),))
    assert node.node.tally.truncations == 0


def test_a_high_watermark_that_moves_back_is_told_and_counted() -> None:
    node = telling()
    create(node, "orders")
    node.ask(*produce(b"a", b"b"))
    node.pass_time(SETTLE_MS + SAMPLE_MS)

    def move_back(replica: Replica) -> tuple[()]:
        replica.high_watermark = Offset(1)
        return ()

    state = told_of(node)
    move(state, state.hosted[ORDERS], move_back)
    node.pass_time(SAMPLE_MS)
    (told,) = [each for each in written(node) if each["kind"] == "high_watermark_regressed"]
    assert (told["previous"], told["high_watermark"]) == (2, 1)
    assert node.node.tally.high_watermark_regressions == 1


def test_a_restarted_node_does_not_tell_its_history_again() -> None:
    node = telling()
    node.pass_time(SETTLE_MS + 2 * SAMPLE_MS)
    before = len(written(node))
    end = told_of(node).quorum.applied
    after = node.restart()
    after.pass_time(3 * SAMPLE_MS)
    again = written(after)[before:]
    assert {"controller_changed", "broker_registered"} <= {each["kind"] for each in again}
    assert all(each["metadata_offset"] >= end for each in again if "metadata_offset" in each)


def test_a_disk_that_fails_is_told() -> None:
    node = telling()
    create(node, "orders")
    node.pass_time(SETTLE_MS + SAMPLE_MS)
    node.tell(LogFailed(ORDERS, node.logs[ORDERS].topic_id, "it smokes"))
    node.pass_time(SAMPLE_MS)
    (told,) = [each for each in written(node) if each["kind"] == "log_offline"]
    assert (told["topic"], told["partition"], told["reason"]) == ("orders", 0, "it smokes")
    sample = next(each for each in reversed(written(node)) if each["kind"] == "health")
    assert sample["offline_replicas"] == 1


@pytest.mark.parametrize("asked", ["true", "false"])
def test_a_call_of_a_node_to_itself_keeps_no_place_in_line(asked: str) -> None:
    node = LoneNode({"cotidal.events.enable": asked}).start()
    node.pass_time(30 * SAMPLE_MS)
    assert len(told_of(node).inward.slots) == 0


def test_a_sample_counts_acknowledgements_by_how_long_they_took() -> None:
    node = telling()
    create(node, "orders")
    node.pass_time(SETTLE_MS + SAMPLE_MS)
    before = len(written(node))
    node.ask(*produce(b"at once"))
    node.ask(*produce(b"of the leader alone", acks=1))
    node.hold = {fx.Append}
    node.send(produce(b"late"))
    node.pass_time(5)
    node.hold = set()
    node.release()
    node.pass_time(3 * SAMPLE_MS)
    samples = [each["ack_ms"] for each in written(node)[before:] if each["kind"] == "health"]
    # One in less than 1 ms, one in less than 8; and none in the samples after that.
    assert (samples[0], samples[-1]) == ([1, 0, 0, 1], [])
