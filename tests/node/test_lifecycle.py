"""A broker's life under its controller."""

from __future__ import annotations

from asking import CREATE_TOPICS, create, node_with, produce, written
from cotidal.core.cluster.decide.features import OFFERED
from cotidal.core.cluster.image import TOPIC_RESOURCE
from cotidal.errors import ErrorCode
from cotidal.messages.records.metadata import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FenceBrokerRecord,
    RemoveTopicRecord,
    UnregisterBrokerRecord,
)
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from cotidal.messages.rpc.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)
from cotidal.messages.rpc.create_topics import CreatableTopic, CreateTopicsRequest
from cotidal.node import controller, decisions, doubts, lifecycle
from cotidal.node.effects import Call, MetadataBatch, Note, OpenLog, PutStraysAside
from cotidal.node.events import (
    CallFailed,
    ConnectionId,
    ConnectionLost,
    ConnectionOpened,
    DirectoryFailed,
    Ticked,
)
from cotidal.values import Millis, NodeId, TopicPartition, Uuid, WallMillis
from lone_node import LoneNode


def fences(node: LoneNode) -> int:
    """How often the metadata log says that a broker is fenced."""
    return sum(
        isinstance(record, BrokerRegistrationChangeRecord) and record.fenced > 0
        for batch in node.metadata
        if isinstance(batch, MetadataBatch)
        for record in batch.records
    )


def test_a_broker_that_opens_the_log_of_a_new_topic_is_not_fenced() -> None:
    node = node_with()
    node.hold = {OpenLog}
    node.send(
        (
            CREATE_TOPICS,
            7,
            CreateTopicsRequest(topics=(CreatableTopic("more", 1, 1),), timeout_ms=1_000),
        )
    )
    node.pass_time(2_000)
    assert fences(node) == 0


def test_a_loop_that_stalled_does_not_fence_its_own_broker() -> None:
    node = node_with()
    node.now += 60_000
    node.tell(Ticked(WallMillis(1)))
    assert fences(node) == 0
    assert written(node.ask(*produce(b"x"))) == (0, 0)


def test_a_broker_that_was_unregistered_registers_again_and_serves() -> None:
    node = node_with()
    node.ask(*produce(b"x"))
    state = node.node._state
    epoch = state.controller.broker_epoch
    state.now = Millis(node.now)
    gone = (FenceBrokerRecord(1, epoch), UnregisterBrokerRecord(1, epoch))
    controller.propose(state, gone, decisions.Nothing())
    node.pass_time(3_000)
    assert state.controller.broker_epoch > epoch
    assert create(node, "more").error_code == 0
    assert written(node.ask(*produce(b"y", topic="more"))) == (0, 0)
    assert written(node.ask(*produce(b"y"))) == (0, 1)


def test_a_heartbeat_goes_early_with_what_a_node_does_anyway_and_a_retry_does_not() -> None:
    node = node_with()
    state = node.node._state
    interval = state.config.number("broker.heartbeat.interval.ms")
    state.life.beat_within(interval, state.now)
    begun = state.now
    for passed, goes in ((interval // 2 - 1, False), (interval // 2, True)):
        state.now = Millis(begun + passed)
        lifecycle.pump(state)
        assert state.life.is_under_way is goes
    lifecycle.on_failed(state)
    for passed, goes in ((lifecycle.RETRY_MS - 1, False), (lifecycle.RETRY_MS, True)):
        state.now = Millis(begun + interval // 2 + passed)
        lifecycle.pump(state)
        assert state.life.is_under_way is goes


def test_heartbeats_of_a_node_that_does_nothing_else_go_at_their_interval() -> None:
    node = node_with()
    life = node.node._state.life
    assert life.next_beat is not None
    due = life.next_beat
    node.pass_time(due - node.now - 1)
    assert life.next_beat == due
    node.pass_time(1)
    interval = node.node._state.config.number("broker.heartbeat.interval.ms")
    assert life.next_beat == due + interval


def test_the_last_nodes_of_a_cluster_do_not_wait_for_a_controller_that_cannot_be() -> None:
    node = node_with()
    state = node.node._state
    state.life.stage = lifecycle.Stage.LEAVING
    state.life.next_beat = None
    state.life.leave_by = Millis(state.now + lifecycle.LEAVE_ALONE_MS)
    lifecycle.pump(state)
    assert not state.gone
    for voter in state.quorum.machine.state.voter_set.ids:
        doubts.on_lost(state, voter, refused=True)
    lifecycle.pump(state)
    assert state.gone


def controller_of_broker_2() -> LoneNode:
    """A node that decides, and broker 2 elsewhere, which is registered, unfenced and talks to it on
    connection 2."""
    node = node_with()
    register = BrokerRegistrationRequest(
        broker_id=2,
        cluster_id="lone",
        incarnation_id=Uuid(b"2" * 16),
        listeners=(Listener("PLAINTEXT", "elsewhere", 9092, 0),),
        features=tuple(Feature(*each) for each in OFFERED),
        log_dirs=(Uuid(b"l" * 16),),
    )
    node.tell(ConnectionOpened(ConnectionId(2), "CONTROLLER", "127.0.0.1"))
    epoch = node.ask(ApiKey.BROKER_REGISTRATION, 4, register, connection=2).broker_epoch
    assert not beat(node, epoch).is_fenced
    return node


def beat(node: LoneNode, epoch: int, connection: int = 2) -> BrokerHeartbeatResponse:
    request = BrokerHeartbeatRequest(2, epoch, current_metadata_offset=epoch)
    return node.ask(ApiKey.BROKER_HEARTBEAT, 1, request, connection=connection)


def probes(node: LoneNode) -> list[Call]:
    """Those since this was last asked."""
    found = [each for each in node.other if isinstance(each, Call) and each.lane == "probe"]
    node.other.clear()
    return found


def is_fenced(node: LoneNode) -> bool:
    return node.node._state.controller.committed.brokers[NodeId(2)].fenced


def test_a_broker_whose_connection_ends_is_looked_for_by_a_controller_that_is_no_broker() -> None:
    """Its death is known at once, not when its session is over."""
    node = controller_of_broker_2()
    state = node.node._state
    state.config = state.config._replace(endpoints=())
    node.tell(ConnectionLost(ConnectionId(2)))
    (probe,) = probes(node)
    assert (probe.peer, probe.endpoint.host) == (2, "elsewhere")
    node.tell(CallFailed(probe.token, True, "refused"))
    assert is_fenced(node)


def test_a_probe_that_a_dying_listener_still_took_is_repeated_until_it_is_refused() -> None:
    """A process that is killed loses its connections first, and its listener a moment later."""
    node = controller_of_broker_2()
    node.tell(ConnectionLost(ConnectionId(2)))
    (probe,) = probes(node)
    for pause in (10, 20, 40):
        node.tell(CallFailed(probe.token, False, "the connection was lost"))
        node.pass_time(pause - 1)
        assert not probes(node)
        node.pass_time(1)
        (probe,) = probes(node)
    assert not is_fenced(node)
    node.tell(CallFailed(probe.token, True, "refused"))
    assert is_fenced(node)
    node.pass_time(1_000)
    assert not probes(node)


def test_a_probe_that_is_lost_is_not_repeated_once_the_broker_has_spoken() -> None:
    node = controller_of_broker_2()
    epoch = node.node._state.controller.committed.brokers[NodeId(2)].epoch
    node.pass_time(5)
    node.tell(ConnectionLost(ConnectionId(2)))
    (probe,) = probes(node)
    node.tell(CallFailed(probe.token, False, "the connection was lost"))
    node.pass_time(5)
    node.tell(ConnectionOpened(ConnectionId(3), "CONTROLLER", "127.0.0.1"))
    assert not beat(node, epoch, connection=3).is_fenced
    node.pass_time(500)
    assert not probes(node)
    assert not is_fenced(node)


def test_a_probe_without_an_answer_is_not_repeated() -> None:
    """Who is silent runs out of session."""
    node = controller_of_broker_2()
    node.tell(ConnectionLost(ConnectionId(2)))
    (probe,) = probes(node)
    node.pass_time(500)
    node.tell(CallFailed(probe.token, False, "it did not answer in time"))
    node.pass_time(1_000)
    assert not probes(node)


def test_probes_that_are_always_lost_come_to_an_end() -> None:
    """Something stands before the broker that takes every connection and ends it."""
    node = controller_of_broker_2()
    node.node._state.controller.duties.sessions.timeout_ms = 60_000
    node.tell(ConnectionLost(ConnectionId(2)))
    asked = 0
    for _ in range(5_000):
        for probe in probes(node):
            asked += 1
            node.tell(CallFailed(probe.token, False, "the connection was lost"))
        node.pass_time(1)
    assert 15 < asked < 30
    assert not node.node._state.controller.probes_due


def test_a_controller_that_decides_no_more_repeats_no_probe() -> None:
    node = controller_of_broker_2()
    node.tell(ConnectionLost(ConnectionId(2)))
    (probe,) = probes(node)
    node.tell(CallFailed(probe.token, False, "the connection was lost"))
    decisions.deactivate(node.node._state)
    assert not node.node._state.controller.probes_due
    node.pass_time(100)
    assert not probes(node)


def test_a_controller_that_is_no_broker_does_not_become_one_when_a_disk_fails() -> None:
    """It may have several log directories, as a broker has; only one of them holds anything."""
    spare = Uuid(b"s" * 16)
    node = LoneNode(log_dirs=(Uuid(b"d" * 16), spare), is_broker=False).begin()
    assert node.node._state.controller.controller is not None
    node.tell(DirectoryFailed(spare, "the disk is gone"))
    node.pass_time(2_000)
    assert not node.node._state.controller.committed.brokers


def test_why_a_registration_is_refused_is_told_once() -> None:
    """It is tried again twenty times a second."""
    node = node_with()
    state = node.node._state
    refused = BrokerRegistrationResponse(error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION)
    for _ in range(3):
        lifecycle.on_registered(state, refused)
    told = [each for each in state.out if isinstance(each, Note)]
    assert len(told) == 1
    assert "DUPLICATE_BROKER_REGISTRATION" in told[0].text


def test_what_was_decided_while_a_broker_had_to_register_again_reaches_it() -> None:
    node = node_with()
    create(node, "other")
    state = node.node._state
    gone = state.controller.committed.topics["orders"].topic_id
    state.now = Millis(node.now)
    state.life.stage, state.life.is_published = lifecycle.Stage.UNREGISTERED, False
    shorter = ConfigRecord(TOPIC_RESOURCE, "other", "retention.ms", "77")
    controller.propose(state, (RemoveTopicRecord(gone), shorter), decisions.Nothing())
    node.pass_time(3_000)
    assert state.life.stage is lifecycle.Stage.RUNNING
    assert list(state.hosted) == [TopicPartition("other", 0)]
    assert state.hosted[TopicPartition("other", 0)].settings["retention.ms"] == "77"
    assert TopicPartition("orders", 0) not in node.logs


def test_a_broker_asks_for_every_log_before_it_calls_the_others_strays() -> None:
    held = node_with().restart(OpenLog, PutStraysAside)
    assert [type(each) for each in held.held] == [OpenLog, PutStraysAside]
