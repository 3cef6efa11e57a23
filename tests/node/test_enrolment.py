"""Controllers make themselves known, so that others find them."""

from __future__ import annotations

from cotidal.core.cluster.decide.features import OFFERED
from cotidal.errors import ErrorCode
from cotidal.messages.records.metadata import RegisterControllerRecord
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.controller_registration import ControllerRegistrationResponse
from cotidal.node import enrolment
from cotidal.node.effects import Call, Endpoint, MetadataBatch, Note
from cotidal.node.events import CallFailed, CallToken, Replied, Ticked
from cotidal.node.state import ControllerAt
from cotidal.sim.agenda import SECOND
from cotidal.values import LeaderEpoch, Millis, NodeId, WallMillis
from lone_node import LoneNode
from simulated import calm_run

HERE = Endpoint("CONTROLLER", "localhost", 9093)


def registered(node: LoneNode) -> list[RegisterControllerRecord]:
    return [
        record
        for batch in node.metadata
        if isinstance(batch, MetadataBatch)
        for record in batch.records
        if isinstance(record, RegisterControllerRecord)
    ]


def asked(node: LoneNode) -> list[Call]:
    calls = [effect for effect in node.other if isinstance(effect, Call)]
    return [call for call in calls if call.api_key == ApiKey.CONTROLLER_REGISTRATION]


def test_a_voter_registers_once_with_itself() -> None:
    node = LoneNode(voters=((NodeId(1), HERE),)).start()
    node.pass_time(5_000)
    (record,) = registered(node)
    assert record.controller_id == 1
    assert [tuple(point)[:3] for point in record.end_points] == [("CONTROLLER", "localhost", 9093)]
    assert {feature.name for feature in record.features} == {each.name for each in OFFERED}
    assert "kraft.version" in {feature.name for feature in record.features}


def test_a_cluster_by_itself_has_nobody_to_tell() -> None:
    node = LoneNode().start()
    node.pass_time(5_000)
    assert registered(node) == []


def test_every_controller_is_known_to_every_node_also_in_its_next_life() -> None:
    run = calm_run()
    lives = {}
    for process in run.world.running:
        state = process.node._state
        assert sorted(state.controller.committed.controllers) == [1, 2, 3]
        lives[state.config.node_id] = state.enrolment.incarnation
    told = run.world.running[0].node._state.controller.committed.controllers
    assert {node_id: each.incarnation_id for node_id, each in told.items()} == lives
    victim = NodeId(2)
    run.world.kill(victim)
    run.world.start(victim)
    run.world.run_for(3 * SECOND)
    for process in run.world.running:
        told = process.node._state.controller.committed.controllers
        assert told[victim].incarnation_id not in (lives[victim], None)
        assert told[NodeId(1)].incarnation_id == lives[NodeId(1)]


def test_who_is_not_heard_asks_again_later() -> None:
    node = LoneNode(voters=((NodeId(1), HERE),)).start()
    state = node.node._state
    elsewhere = ControllerAt(NodeId(2), LeaderEpoch(9), Endpoint("CONTROLLER", "other", 9093))
    state.controller.leader = elsewhere
    state.enrolment.is_due = True
    state.enrolment.not_before = Millis(0)
    for _ in range(3):
        node.tell(Ticked(WallMillis(1)))
    (call,) = asked(node)
    assert (call.peer, call.api_version) == (2, 0)
    node.tell(CallFailed(call.token, True, "refused"))
    assert asked(node) == [call]
    assert enrolment.next_deadline(state) == state.now + enrolment.RETRY_MS
    node.pass_time(enrolment.RETRY_MS)
    again = asked(node)[-1]
    assert again != call
    refused = ControllerRegistrationResponse(0, ErrorCode.UNSUPPORTED_VERSION, "too old")
    node.tell(Replied(CallToken(again.token), refused))
    assert any(isinstance(each, Note) and "too old" in each.text for each in node.other)
