"""A node that is watched: what is told of it, and to whom."""

import asyncio
import json
import os
import stat

import pytest

from cotidal.broker import witness as witness_module
from cotidal.broker.counters import Counters
from cotidal.broker.driver import Driver
from cotidal.broker.journal import Journal
from cotidal.broker.witness import Gallery, Witness
from cotidal.limits import WITNESS_HEARERS_MAX, WITNESS_LINES_MAX
from cotidal.messages.rpc.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from cotidal.messages.rpc.heartbeat import HeartbeatRequest, HeartbeatResponse
from cotidal.messages.rpc.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from cotidal.node.effects import Call, CallToken, Endpoint, Note, Respond
from cotidal.node.events import (
    ConnectionId,
    ConnectionLost,
    PeerConnected,
    Received,
    Replied,
    Request,
    ShutdownRequested,
    Ticked,
    TimeSpent,
)
from cotidal.values import Millis, NodeId, WallMillis
from cotidal.wire.batch import read_batches
from cotidal.wire.records import Record, build_batch

PRODUCE, FETCH, HEARTBEAT = 0, 1, 12
BATCH = build_batch([Record(None, b"three herrings")])
NOW = Millis(5)
CONNECTION = ConnectionId(4)


class Scripted:
    """Wants what it is told to want."""

    def __init__(self):
        self.wants = ()
        self.steps = []
        self.on_step = lambda: None

    def step(self, event, now):
        self.steps.append((event, now))
        self.on_step()
        return self.wants

    def next_deadline(self):
        return Millis(77)


class Clock:
    def __init__(self):
        self.ns = 1_000_000_000

    def time_ns(self):
        return self.ns


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(witness_module, "time", made)
    return made


@pytest.fixture
def told():
    return []


@pytest.fixture
def node():
    return Scripted()


@pytest.fixture
def watched(node, told, clock):
    return Witness(node, dict, told.append)


def asks(message, *, key=HEARTBEAT, correlation=9, client="billing"):
    return Received(CONNECTION, (Request(key, 4, correlation, client, message),), WallMillis(0))


def answers(message, *, key=HEARTBEAT, correlation=9):
    return (Respond(CONNECTION, key, 4, correlation, message),)


def test_an_event_and_what_is_wanted_about_it_are_told_as_one_step(watched, node, told):
    node.wants = answers(HeartbeatResponse())
    event = asks(HeartbeatRequest())
    assert watched.step(event, NOW) == node.wants
    assert node.steps == [(event, NOW)]
    assert watched.next_deadline() == 77
    assert told == [
        {
            "at": 1_000_000, "step": 1, "kind": "received", "said": "#4 Heartbeat v4",
            "peer": "billing", "asks": [["Heartbeat", 0]],
        },
        {
            "at": 1_000_000, "step": 1, "kind": "respond", "said": "#4 Heartbeat v4",
            "peer": "billing", "api": "Heartbeat", "bytes": 0,
        },
    ]  # fmt: skip


def test_a_producer_is_told_with_its_level_and_how_long_it_waited(watched, node, told, clock):
    watched.step(asks(ProduceRequest(acks=-1), key=PRODUCE), NOW)
    clock.ns += 3_000_000
    node.wants = answers(ProduceResponse(), key=PRODUCE)
    watched.step(PeerConnected(NodeId(2)), NOW)
    assert (told[-1]["acks"], told[-1]["took_us"]) == ("all", 3000)
    watched.step(asks(ProduceRequest(acks=1), key=PRODUCE), NOW)
    assert (told[-1]["acks"], told[-1]["took_us"]) == ("1", 0)


def test_who_was_answered_or_asked_for_no_answer_is_waited_for_no_longer(watched, node, told):
    """Its number may come again, with another question."""
    watched.step(asks(ProduceRequest(acks=0), key=PRODUCE), NOW)
    node.wants = answers(HeartbeatResponse())
    watched.step(asks(HeartbeatRequest()), NOW)
    assert "took_us" not in told[-1]
    node.wants = answers(ProduceResponse(), key=PRODUCE)
    watched.step(asks(ProduceRequest(acks=1), key=PRODUCE), NOW)
    assert "took_us" in told[-1]
    node.wants = answers(HeartbeatResponse())
    watched.step(asks(HeartbeatRequest()), NOW)
    assert "took_us" not in told[-1]


def test_how_many_bytes_of_records_travel_is_told_of_those_that_carry_any(watched, node, told):
    written = (PartitionProduceData(0, read_batches(BATCH)), PartitionProduceData(1, None))
    produce = ProduceRequest(topic_data=(TopicProduceData(partition_data=written),))
    read = (PartitionData(records=read_batches(BATCH)), PartitionData(1, records=None))
    fetched = FetchResponse(responses=(FetchableTopicResponse(partitions=read),))
    node.wants = answers(fetched, key=FETCH)
    watched.step(asks(produce, key=PRODUCE), NOW)
    assert told[0]["asks"] == [["Produce", len(BATCH)]]
    assert (told[1]["api"], told[1]["bytes"]) == ("Fetch", len(BATCH))


def test_what_is_told_of_an_event_is_what_it_was_before_the_step(watched, node, told):
    """A node may take out of an event what it needs."""
    node.on_step = lambda: told.append("stepped")
    watched.step(PeerConnected(NodeId(2)), NOW)
    assert [each if each == "stepped" else each["kind"] for each in told] == [
        "peer-connected",
        "stepped",
    ]


def test_who_does_not_name_itself_is_nobody(watched, told):
    watched.step(asks(HeartbeatRequest(), client=None), NOW)
    assert told[-1]["peer"] == ""


def test_a_producer_that_is_gone_is_waited_for_no_longer(watched, node, told):
    watched.step(asks(ProduceRequest(acks=-1), key=PRODUCE), NOW)
    watched.step(ConnectionLost(CONNECTION), NOW)
    node.wants = answers(ProduceResponse(), key=PRODUCE)
    watched.step(PeerConnected(NodeId(2)), NOW)
    assert "took_us" not in told[-1]
    assert told[-1]["peer"] == ""


def test_of_many_alike_so_many_are_told_a_second_and_the_others_counted(watched, told, clock):
    for _ in range(WITNESS_LINES_MAX + 30):
        watched.step(asks(HeartbeatRequest()), NOW)
    watched.step(PeerConnected(NodeId(2)), NOW)
    kinds = [each["kind"] for each in told]
    assert kinds == ["received"] * WITNESS_LINES_MAX + ["peer-connected"]
    clock.ns += 1_000_000_000
    watched.step(asks(HeartbeatRequest()), NOW)
    assert (told[-2]["kind"], told[-2]["count"]) == ("passed", 30)
    assert told[-1]["kind"] == "received"


def call(key):
    return Call(CallToken(1), NodeId(2), Endpoint("", "localhost", 1), "", key, 0, None, 1000)


@pytest.mark.parametrize(
    ("often", "seldom"),
    [
        (asks(HeartbeatRequest()), asks(ProduceRequest(), key=PRODUCE)),
        (Replied(CallToken(1), HeartbeatResponse()), Replied(CallToken(1), ProduceResponse())),
        (ConnectionLost(CONNECTION), PeerConnected(NodeId(2))),
    ],
)
def test_events_that_come_often_do_not_keep_a_rare_one_from_being_told(
    watched, told, often, seldom
):
    for _ in range(WITNESS_LINES_MAX + 5):
        watched.step(often, NOW)
    assert len(told) == WITNESS_LINES_MAX
    watched.step(seldom, NOW)
    assert len(told) == WITNESS_LINES_MAX + 1


def test_nor_do_effects(watched, node, told):
    node.wants = (call(HEARTBEAT),) * (WITNESS_LINES_MAX + 5) + (call(FETCH),)
    watched.step(Ticked(WallMillis(0)), NOW)
    assert len(told) == WITNESS_LINES_MAX + 1
    told.clear()
    for acks in (1,) * (WITNESS_LINES_MAX + 5) + (-1,):
        node.wants = ()
        watched.step(asks(ProduceRequest(acks=acks), key=PRODUCE), NOW)
        node.wants = answers(ProduceResponse(), key=PRODUCE)
        watched.step(Ticked(WallMillis(0)), NOW)
    answered = [each["acks"] for each in told if each["kind"] == "respond"]
    assert answered == ["1"] * WITNESS_LINES_MAX + ["all"]


@pytest.mark.parametrize("event", [Ticked(WallMillis(0)), TimeSpent(CONNECTION, 7)])
def test_that_time_passes_is_not_told_but_what_came_of_it_is(watched, node, told, event):
    node.wants = (Note("info", "all is well"),)
    watched.step(event, NOW)
    assert [each["kind"] for each in told] == ["note"]


def test_a_mistake_in_words_does_not_stop_the_node(watched, node, told, monkeypatch):
    def fail(moment, names):
        raise KeyError("nobody thought of it")

    monkeypatch.setattr(witness_module, "tell", fail)
    watched.step(PeerConnected(NodeId(2)), NOW)
    assert told[-1]["kind"] == "untold"
    assert len(node.steps) == 1


# Who listens


class Watchable:
    """A node on this loop, and its gallery. It keeps what its journal says."""

    def __init__(self, path):
        loop = asyncio.get_running_loop()
        self.notes = []
        journal = Journal(self)
        self.node = Scripted()
        counters = Counters()
        self.driver = Driver(
            self.node, loop, journal=journal, counters=counters, on_fault=lambda: None
        )
        self.driver.obey_with({}, lambda: None)
        self.gallery = Gallery(
            loop, str(path), driver=self.driver, machine=self.node, names=dict, journal=journal
        )

    def write(self, level, text):
        self.notes.append(text)


async def until(condition):
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


def run(check, path):
    async def whole():
        watchable = Watchable(path)
        await watchable.gallery.open()
        try:
            await check(watchable)
        finally:
            watchable.gallery.close()
            watchable.driver.stop()
            await asyncio.sleep(0)

    asyncio.run(whole())


def test_a_node_is_watched_only_while_somebody_listens(tmp_path):
    path = tmp_path / "witness"

    async def check(watchable):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        assert watchable.driver._node is watchable.node
        readers, witnesses = [], set()
        for _ in range(2):
            reader, writer = await asyncio.open_unix_connection(str(path))
            readers.append((reader, writer))
            await until(lambda: len(watchable.gallery._hearers) == len(readers))
            witnesses.add(watchable.driver._node)
        assert len(witnesses) == 1  # who comes later hears of those who already wait
        watchable.driver.post(ShutdownRequested())
        for reader, _ in readers:
            line = json.loads(await asyncio.wait_for(reader.readline(), 20))
            assert line["kind"] == "shutdown-requested"
        for _, writer in readers:
            writer.close()
        await until(lambda: watchable.driver._node is watchable.node)

    run(check, path)
    assert not path.exists()


def test_so_many_may_listen_and_no_more(tmp_path):
    async def check(watchable):
        most = WITNESS_HEARERS_MAX
        path = str(tmp_path / "w")
        opened = [await asyncio.open_unix_connection(path) for _ in range(most + 1)]
        reader, _ = opened[-1]
        assert await asyncio.wait_for(reader.read(), 20) == b""
        assert len(watchable.gallery._hearers) == most
        for _, writer in opened:
            writer.close()
        await until(lambda: not watchable.gallery._hearers)

    run(check, tmp_path / "w")


def test_who_listens_is_let_go_when_the_node_ends(tmp_path):
    async def check(watchable):
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "w"))
        await until(lambda: watchable.gallery._hearers)
        watchable.gallery.close()
        assert await asyncio.wait_for(reader.read(), 20) == b""
        writer.close()

    run(check, tmp_path / "w")


def test_who_does_not_read_misses_lines_and_holds_nothing_up(tmp_path, monkeypatch):
    monkeypatch.setattr(witness_module, "WITNESS_BACKLOG_BYTES_MAX", 10_000)

    async def check(watchable):
        _, writer = await asyncio.open_unix_connection(str(tmp_path / "w"))
        await until(lambda: watchable.gallery._hearers)
        (transport,) = watchable.gallery._hearers
        for _ in range(200):
            watchable.gallery._tell({"said": "x" * 20_000})
            watchable.gallery._flush()
        assert transport.get_write_buffer_size() < 10_000 + 30_000
        writer.close()
        await until(lambda: not watchable.gallery._hearers)

    run(check, tmp_path / "w")


def test_a_socket_that_cannot_be_made_is_said_and_the_node_goes_on(tmp_path):
    async def check(watchable):
        assert "the console cannot watch this node" in watchable.notes[0]

    run(check, tmp_path / "no such directory" / "witness")


def test_a_socket_that_a_killed_process_left_behind_is_no_hindrance(tmp_path):
    (tmp_path / "w").write_text("left behind")

    async def check(watchable):
        assert watchable.notes == []
        _, writer = await asyncio.open_unix_connection(str(tmp_path / "w"))
        await until(lambda: watchable.gallery._hearers)
        writer.close()
        await until(lambda: not watchable.gallery._hearers)

    run(check, tmp_path / "w")
