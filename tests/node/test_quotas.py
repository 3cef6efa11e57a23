"""Client quotas: who is held to what, for how long, and who is not."""

from __future__ import annotations

from typing import Any

import pytest

from asking import create, fetch, node_with, produce, read
from cotidal.errors import ErrorCode
from cotidal.limits import QUOTA_METERS_MAX, THROTTLE_MS_MAX
from cotidal.messages.rpc import alter_client_quotas as altering
from cotidal.messages.rpc.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from cotidal.messages.rpc.create_topics import CreatableTopic, CreateTopicsRequest
from cotidal.messages.rpc.delete_topics import DeleteTopicsRequest
from cotidal.messages.rpc.fetch import FetchRequest, ReplicaState
from cotidal.messages.rpc.metadata import MetadataRequest
from cotidal.node import effects as fx
from cotidal.node import events as ev
from cotidal.node.connections import Connection
from cotidal.values import WallMillis
from lone_node import WALL, LoneNode

METADATA, CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS, ALTER_QUOTAS = 3, 19, 20, 37, 49
PRODUCED, FETCHED = "producer_byte_rate", "consumer_byte_rate"
TIME, MUTATIONS = "request_percentage", "controller_mutation_rate"
VALUE = b"x" * 5_000
ONE, TWO = ev.ConnectionId(1), ev.ConnectionId(2)
EVERYBODY = "ANONYMOUS"


def node(**settings: str) -> LoneNode:
    """Two windows of a second each: what a second allows may be had at once."""
    return node_with(quota_window_num="2", **settings)


def limit(node: LoneNode, key: str, value: float | None, **entity: str | None) -> None:
    parts = tuple(
        altering.AlterClientQuotasRequestEntityData(kind.replace("_", "-"), name)
        for kind, name in entity.items()
    )
    op = altering.OpData(key, value or 0.0, value is None)
    entry = altering.AlterClientQuotasRequestEntryData(parts, (op,))
    # an admin of its own, whom no quota of others holds up
    if ev.ConnectionId(9) not in node.node._state.connections:
        node.connect(9)
    reply = node.ask(ALTER_QUOTAS, 1, altering.AlterClientQuotasRequest((entry,)), connection=9)
    assert reply.entries[0].error_code == 0, reply


def send(
    node: LoneNode, *messages: tuple[int, int, Any], client_id: str = "test", connection: int = 1
) -> list[Any]:
    """The answers that come of it at once."""
    before = len(node.replies)
    requests = tuple(
        ev.Request(*message[:2], 1_000 + number, client_id, message[2])
        for number, message in enumerate(messages)
    )
    node.tell(ev.Received(ev.ConnectionId(connection), requests, WallMillis(WALL + node.now)))
    return [each.message for each in node.replies[before:]]


def connection_of(node: LoneNode, number: ev.ConnectionId = ONE) -> Connection:
    return node.node._state.connections[number]


def test_a_producer_past_its_rate_is_told_and_then_not_listened_to() -> None:
    held = node()
    limit(held, PRODUCED, 2_000, client_id="test")
    (first,) = send(held, produce(VALUE))
    size = len(produce(VALUE)[2].topic_data[0].partition_data[0].records.data)
    assert first.throttle_time_ms == -(-size * 1_000 // 2_000) - 1_000
    assert held.other[-1] == fx.PauseReading(1)
    assert send(held, produce(b"more")) == [], "it waits, if its bytes were on the way already"
    held.pass_time(first.throttle_time_ms - 1)
    assert len(held.replies[-1].message.responses) == 1
    before = len(held.replies)
    held.pass_time(1)
    assert len(held.replies) == before + 1
    assert fx.ResumeReading(1) in held.other


def test_what_is_within_the_rate_is_not_delayed() -> None:
    held = node()
    limit(held, PRODUCED, 10_000, client_id="test")
    (reply,) = send(held, produce(VALUE))
    assert reply.throttle_time_ms == 0
    assert fx.PauseReading(1) not in held.other


def test_a_steady_producer_gets_its_rate_and_no_more() -> None:
    held = node_with(quota_window_num="11")
    limit(held, PRODUCED, 10_000, client_id="test")
    began, sent = held.now, 0
    while held.now < began + 200_000:
        (reply,) = send(held, produce(VALUE))
        sent += len(VALUE)
        held.pass_time(max(1, reply.throttle_time_ms))
    at_once = 10 * 10_000
    assert (sent - at_once) * 1_000 / (held.now - began) == pytest.approx(10_000, rel=0.05)


def test_unacknowledged_writes_are_held_up_without_a_word() -> None:
    held = node()
    limit(held, PRODUCED, 1_000, client_id="test")
    assert send(held, produce(VALUE, acks=0)) == []
    assert connection_of(held).throttle_ms > 3_000
    assert send(held, (METADATA, 13, MetadataRequest())) == []


def test_connections_of_one_client_share_its_quota() -> None:
    held = node()
    held.connect(2)
    limit(held, PRODUCED, 6_000, client_id="test")
    (first,) = send(held, produce(VALUE))
    (second,) = send(held, produce(VALUE), connection=2)
    assert (first.throttle_time_ms, second.throttle_time_ms > 0) == (0, True)


def test_a_client_of_another_name_is_not_held_up() -> None:
    held = node()
    held.connect(2)
    limit(held, PRODUCED, 1_000, client_id="greedy")
    (greedy,) = send(held, produce(VALUE), client_id="greedy")
    (modest,) = send(held, produce(VALUE), client_id="modest", connection=2)
    assert greedy.throttle_time_ms > 0
    assert modest.throttle_time_ms == 0


def test_the_default_holds_each_client_by_itself() -> None:
    held = node()
    held.connect(2)
    limit(held, PRODUCED, 6_000, client_id=None)
    assert send(held, produce(VALUE), client_id="a")[0].throttle_time_ms == 0
    assert send(held, produce(VALUE), client_id="b", connection=2)[0].throttle_time_ms == 0


def test_the_quota_of_a_user_is_shared_by_all_its_clients() -> None:
    held = node()
    held.connect(2)
    limit(held, PRODUCED, 6_000, user=EVERYBODY)
    assert send(held, produce(VALUE), client_id="a")[0].throttle_time_ms == 0
    assert send(held, produce(VALUE), client_id="b", connection=2)[0].throttle_time_ms > 0


LEVELS: list[dict[str, str | None]] = [
    {"user": EVERYBODY, "client_id": "test"},
    {"user": EVERYBODY, "client_id": None},
    {"user": EVERYBODY},
    {"user": None, "client_id": "test"},
    {"user": None, "client_id": None},
    {"user": None},
    {"client_id": "test"},
    {"client_id": None},
]
"""Kafka's order of precedence."""


@pytest.mark.parametrize("nearest", range(len(LEVELS)))
def test_the_nearest_quota_holds(nearest: int) -> None:
    held = node()
    for level, entity in reversed(list(enumerate(LEVELS))):
        if level >= nearest:
            limit(held, PRODUCED, 1_000 * (level + 1), **entity)
    send(held, (METADATA, 13, MetadataRequest()))
    metering = connection_of(held).metering
    assert metering is not None
    assert metering.produced is not None
    assert metering.produced.bound == 1_000 * (nearest + 1)


def test_each_quota_is_looked_up_by_itself() -> None:
    held = node()
    limit(held, PRODUCED, 1_000, user=EVERYBODY, client_id="test")
    limit(held, FETCHED, 2_000, client_id=None)
    send(held, (METADATA, 13, MetadataRequest()))
    metering = connection_of(held).metering
    assert metering is not None
    assert metering.produced is not None
    assert metering.fetched is not None
    assert (metering.produced.bound, metering.fetched.bound) == (1_000, 2_000)
    assert (metering.time, metering.mutations) == (None, None)


def test_a_quota_that_is_taken_back_holds_nobody() -> None:
    held = node()
    limit(held, PRODUCED, 1_000, client_id="test")
    limit(held, PRODUCED, None, client_id="test")
    assert send(held, produce(VALUE))[0].throttle_time_ms == 0
    assert not held.node._state.quotas.active
    assert not held.node._state.quotas.meters


def test_a_changed_quota_holds_from_the_next_request_on() -> None:
    held = node()
    limit(held, PRODUCED, 100_000, client_id="test")
    assert send(held, produce(VALUE))[0].throttle_time_ms == 0
    limit(held, PRODUCED, 1_000, client_id="test")
    assert send(held, produce(VALUE))[0].throttle_time_ms > 4_000


def test_a_consumer_past_its_rate_gets_its_records_and_waits_for_the_next() -> None:
    held = node()
    send(held, produce(VALUE), produce(VALUE), client_id="other")
    limit(held, FETCHED, 4_000, client_id="test")
    (reply,) = send(held, fetch())
    assert len(read(reply)) > 5_000
    assert reply.throttle_time_ms > 0
    assert connection_of(held).throttle_ms == reply.throttle_time_ms


def test_no_answer_is_larger_than_what_a_window_allows() -> None:
    held = node()
    for _ in range(4):
        send(held, produce(VALUE), client_id="other")
    limit(held, FETCHED, 11_000, client_id="test")
    held.hold.add(fx.Read)
    send(held, fetch())
    (asked,) = held.held
    assert asked.max_bytes == 11_000


def test_followers_are_exempt() -> None:
    held = node()
    send(held, produce(VALUE), client_id="other")
    limit(held, FETCHED, 100, client_id=None)
    key, version, request = fetch()
    (reply,) = send(held, (key, version, request._replace(replica_id=2)))
    assert reply.throttle_time_ms == 0
    newer = FetchRequest(replica_state=ReplicaState(2, 5), min_bytes=0)
    (reply,) = send(held, (key, 17, newer))
    assert reply.throttle_time_ms == 0
    assert connection_of(held).metering is None


def test_what_comes_to_the_controllers_listener_is_exempt() -> None:
    held = node()
    limit(held, MUTATIONS, 0.001, client_id=None)
    held.tell(ev.ConnectionOpened(TWO, "CONTROLLER", "127.0.0.1"))
    request = CreateTopicsRequest((CreatableTopic("a", 50, 1), CreatableTopic("b", 50, 1)))
    (reply,) = send(held, (CREATE_TOPICS, 7, request), connection=2)
    assert [each.error_code for each in reply.topics] == [0, 0]
    (reply,) = send(held, (CREATE_TOPICS, 7, request), connection=2)
    assert reply.throttle_time_ms == 0


def test_time_is_measured_only_while_a_quota_asks_for_it() -> None:
    held = node()
    limit(held, PRODUCED, 1_000, client_id="test")
    assert not [each for each in held.other if isinstance(each, fx.MeterTime)]
    limit(held, TIME, 10, client_id="test")
    limit(held, TIME, 20, client_id="test")
    limit(held, TIME, None, client_id="test")
    assert [each for each in held.other if isinstance(each, fx.MeterTime)] == [
        fx.MeterTime(on=True),
        fx.MeterTime(on=False),
    ]


def test_who_takes_more_of_the_loop_than_allowed_waits() -> None:
    held = node()
    limit(held, TIME, 10, client_id="test")  # 100 ms a second
    ask = (METADATA, 13, MetadataRequest())
    assert send(held, ask)[0].throttle_time_ms == 0
    held.tell(ev.TimeSpent(ONE, 150_000))
    (reply,) = send(held, ask)
    assert reply.throttle_time_ms == 500
    held.pass_time(500)
    assert send(held, ask)[0].throttle_time_ms == 0


def test_time_spent_on_a_connection_that_is_gone_is_nobodys() -> None:
    held = node()
    limit(held, TIME, 10, client_id="test")
    held.tell(ev.TimeSpent(TWO, 150_000))


def creation(*sizes: int) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        tuple(CreatableTopic(f"t{size}-{n}", size, 1) for n, size in enumerate(sizes))
    )


def test_who_changes_too_many_partitions_is_refused_until_the_rate_is_right() -> None:
    held = node()
    limit(held, MUTATIONS, 2, client_id="test")
    (first,) = send(held, (CREATE_TOPICS, 7, creation(6)))
    assert first.topics[0].error_code == 0, "what exceeds it is done"
    assert first.throttle_time_ms == 2_000
    held.connect(2)
    (second,) = send(held, (CREATE_TOPICS, 7, creation(1, 2)), connection=2)
    assert {each.error_code for each in second.topics} == {ErrorCode.THROTTLING_QUOTA_EXCEEDED}
    assert second.throttle_time_ms == 2_000
    assert "t1-0" not in held.node._state.controller.committed.topics
    held.pass_time(2_000)
    (third,) = send(held, (CREATE_TOPICS, 7, creation(1)), connection=2)
    assert third.topics[0].error_code == 0


def test_versions_that_do_not_know_the_error_only_wait() -> None:
    held = node()
    held.connect(2)
    create(held, "doomed", 8)
    limit(held, MUTATIONS, 2, client_id="test")
    assert send(held, (CREATE_TOPICS, 7, creation(6)))[0].throttle_time_ms == 2_000
    request = DeleteTopicsRequest(topic_names=("doomed",))
    (reply,) = send(held, (DELETE_TOPICS, 4, request), connection=2)
    assert reply.responses[0].error_code == 0
    assert reply.throttle_time_ms == 6_000, "six created and eight deleted"


def test_nobody_is_muted_for_ever() -> None:
    held = node()
    limit(held, PRODUCED, 1, client_id="test")
    (reply,) = send(held, produce(b"x" * 900_000))
    assert reply.throttle_time_ms == THROTTLE_MS_MAX


def test_a_muted_connection_that_is_lost_is_forgotten() -> None:
    held = node()
    limit(held, PRODUCED, 1_000, client_id="test")
    send(held, produce(VALUE))
    held.tell(ev.ConnectionLost(ONE))
    held.pass_time(60_000)
    assert not held.node._state.quotas.muted


@pytest.mark.plain
def test_clients_with_ever_new_names_take_no_more_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cotidal.node.quotas.QUOTA_METERS_MAX", 50)
    assert QUOTA_METERS_MAX > 50
    held = node()
    limit(held, PRODUCED, 1_000_000, client_id=None)
    for number in range(120):
        assert len(send(held, produce(b"x"), client_id=f"c{number}")) == 1
    assert len(held.node._state.quotas.meters) == 50


def test_quotas_hold_after_a_restart() -> None:
    held = node()
    limit(held, PRODUCED, 1_000, client_id="test")
    after = held.restart()
    assert send(after, produce(VALUE))[0].throttle_time_ms > 0


def test_waiting_is_counted_by_the_quota_that_caused_it() -> None:
    held = node()
    limit(held, PRODUCED, 2_000, client_id="test")
    (reply,) = send(held, produce(VALUE))
    assert held.node.tally.throttles == {PRODUCED: (1, reply.throttle_time_ms)}


def test_partitions_that_are_added_count_and_those_that_were_there_do_not() -> None:
    held = node()
    create(held, "grown", 4)
    limit(held, MUTATIONS, 2, client_id="test")
    topic = CreatePartitionsTopic("grown", 10, None)
    (reply,) = send(held, (CREATE_PARTITIONS, 3, CreatePartitionsRequest((topic,))))
    assert reply.results[0].error_code == 0
    assert reply.throttle_time_ms == 2_000, "six more, of which two a second are allowed"
