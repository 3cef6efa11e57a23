from __future__ import annotations

import pytest

from cotidal.core.cluster.decide.brokers import (
    Heartbeat,
    decide_controlled_shutdown,
    decide_fence,
    decide_heartbeat,
    decide_register,
    decide_unfence,
    decide_unregister,
)
from cotidal.core.cluster.image import Endpoint, FeatureRange
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.records.metadata import BrokerRegistrationChangeRecord, RegisterBrokerRecord
from cotidal.values import NO_NODE, Uuid


def beat(cluster, number, *, offset=None, fence=False, shutdown=False, knows=False, epoch=None):
    return decide_heartbeat(
        cluster.controller,
        Heartbeat(
            node_id=number,
            epoch=cluster.epoch(number) if epoch is None else epoch,
            metadata_offset=cluster.end_offset if offset is None else offset,
            want_fence=fence,
            want_shutdown=shutdown,
        ),
        everyone_knows=knows,
    )


def test_broker_registers_fenced_with_the_offset_of_its_record_as_epoch(scene):
    cluster = scene(brokers=0)
    at = cluster.end_offset
    records = cluster.register(4)
    assert isinstance(records[0], RegisterBrokerRecord)
    assert cluster.epoch(4) == at
    assert cluster.image.brokers[4].fenced


def test_same_incarnation_keeps_its_epoch_and_its_leaderships(scene):
    cluster = scene()
    cluster.create("orders", (1, 2, 3))
    epoch = cluster.epoch(1)
    cluster.register(1, life=0)
    assert cluster.epoch(1) == epoch
    assert not cluster.image.brokers[1].fenced
    assert cluster.partition().leader == 1


def test_new_incarnation_leaves_isr_and_leadership_in_the_same_batch(scene):
    """Regression script 20: it may register before the fencing of the old one."""
    cluster = scene()
    cluster.create("orders", (1, 2, 3))
    records = cluster.register(1, life=1)
    assert len(records) == 2
    assert cluster.epoch(1) > cluster.epoch(2)
    assert (cluster.partition().leader, cluster.partition().isr) == (2, (2, 3))
    assert cluster.partition().leader_epoch == 1


def test_second_incarnation_is_refused_while_the_first_is_alive(scene, registers):
    cluster = scene()
    other = registers(1, life=1, disk=9)
    refused = decide_register(cluster.controller, other, epoch=99, old_is_alive=True)
    assert isinstance(refused, Refusal)
    assert refused.error is ErrorCode.DUPLICATE_BROKER_REGISTRATION


def test_second_incarnation_with_the_directory_of_the_first_need_not_wait_for_its_session(
    scene, registers
):
    """The directory is locked: whoever has it came after the process that had it before."""
    cluster = scene()
    cluster.create("orders", (1, 2, 3))
    again = registers(1, life=1)
    decided = decide_register(cluster.controller, again, epoch=99, old_is_alive=True)
    assert not isinstance(decided, Refusal)
    cluster.apply(decided)
    assert cluster.epoch(1) == 99
    assert (cluster.partition().leader, cluster.partition().isr) == (2, (2, 3))


def test_second_incarnation_is_welcome_once_the_first_is_fenced(scene, registers):
    cluster = scene()
    cluster.apply(decide_fence(cluster.controller, 1))
    decided = decide_register(cluster.controller, registers(1, life=1), epoch=99, old_is_alive=True)
    assert not isinstance(decided, Refusal)


def test_clean_restart_stays_eligible_and_unclean_does_not(scene):
    for previous, elr in (("right", (1,)), ("wrong", ())):
        cluster = scene(brokers=2)
        cluster.create("orders", (1, 2), min_insync_replicas="2")
        cluster.apply(decide_controlled_shutdown(cluster.controller, 1))
        cluster.apply(decide_fence(cluster.controller, 1))
        assert cluster.partition().elr == (1,)
        epoch = cluster.epoch(1)
        cluster.register(1, life=1, previous_epoch=epoch if previous == "right" else epoch + 1)
        assert cluster.partition().elr == elr


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"endpoints": ()}, ErrorCode.INVALID_REGISTRATION),
        ({"endpoints": (Endpoint("A", "h", 1),) * 2}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": (Uuid(b"d" * 16), Uuid(b"d" * 16))}, ErrorCode.INVALID_REGISTRATION),
        ({"features": (FeatureRange("metadata.version", 7, 29),)}, ErrorCode.UNSUPPORTED_VERSION),
        ({"features": ()}, ErrorCode.UNSUPPORTED_VERSION),
    ],
)  # fmt: skip
def test_registration_that_makes_no_sense_is_refused(scene, registers, wrong, error):
    refused = decide_register(scene(brokers=0).controller, registers(1)._replace(**wrong), epoch=5)
    assert isinstance(refused, Refusal)
    assert refused.error is error


def test_fencing_takes_a_broker_out_of_every_isr_and_moves_its_leaderships(scene):
    cluster = scene()
    cluster.create("orders", (1, 2, 3), (2, 3, 1), (3, 1, 2))
    cluster.apply(decide_fence(cluster.controller, 1))
    assert [cluster.partition(number=number).leader for number in range(3)] == [2, 2, 3]
    assert all(1 not in cluster.partition(number=number).isr for number in range(3))
    assert decide_fence(cluster.controller, 1) == ()


def test_unfencing_elects_where_nobody_leads(scene):
    cluster = scene(brokers=1)
    cluster.create("orders", (1,))
    cluster.apply(decide_fence(cluster.controller, 1))
    assert cluster.partition().leader == NO_NODE
    cluster.apply(decide_unfence(cluster.controller, 1))
    assert (cluster.partition().leader, cluster.partition().leader_epoch) == (1, 2)
    assert decide_unfence(cluster.controller, 1) == ()


def test_unregistering_removes_the_broker_from_the_image(scene):
    cluster = scene()
    cluster.create("orders", (1, 2, 3))
    cluster.apply(decide_fence(cluster.controller, 1))
    cluster.apply(decide_unregister(cluster.controller, 1))
    assert 1 not in cluster.image.brokers
    assert (cluster.partition().leader, cluster.partition().isr) == (2, (2, 3))
    refused = decide_unregister(cluster.controller, 1)
    assert isinstance(refused, Refusal)
    assert refused.error is ErrorCode.BROKER_ID_NOT_REGISTERED


def test_broker_that_runs_cannot_be_unregistered(scene):
    cluster = scene()
    refused = decide_unregister(cluster.controller, 1)
    assert isinstance(refused, Refusal)
    assert refused.error is ErrorCode.INVALID_REQUEST


def test_heartbeat_of_another_epoch_is_stale(scene):
    cluster = scene()
    refused = beat(cluster, 1, epoch=cluster.epoch(1) + 1)
    assert isinstance(refused, Refusal)
    assert refused.error is ErrorCode.STALE_BROKER_EPOCH


def test_heartbeat_unfences_once_the_broker_has_seen_its_own_registration(scene):
    cluster = scene(brokers=0)
    cluster.register(1)
    behind = beat(cluster, 1, offset=cluster.epoch(1) - 1)
    assert (behind.records, behind.caught_up, behind.fenced) == ((), False, True)
    wants_out = beat(cluster, 1, offset=cluster.epoch(1), fence=True)
    assert (wants_out.records, wants_out.caught_up, wants_out.fenced) == ((), True, True)
    seen = beat(cluster, 1, offset=cluster.epoch(1))
    assert not seen.fenced
    cluster.apply(seen.records)
    assert cluster.image.brokers[1].active


def test_heartbeat_that_wants_to_be_fenced_is(scene):
    cluster = scene()
    decided = beat(cluster, 2, fence=True)
    assert (decided.fenced, decided.should_shut_down) == (True, False)
    cluster.apply(decided.records)
    assert cluster.image.brokers[2].fenced


def test_controlled_shutdown_goes_in_three_steps(scene):
    cluster = scene()
    cluster.create("orders", (1, 2, 3))
    first = beat(cluster, 1, shutdown=True)
    assert isinstance(first.records[0], BrokerRegistrationChangeRecord)
    assert not first.should_shut_down
    cluster.apply(first.records)
    assert (cluster.partition().leader, cluster.partition().isr) == (2, (2, 3))
    waiting = beat(cluster, 1, shutdown=True, knows=False)
    assert (waiting.records, waiting.should_shut_down) == ((), False)
    last = beat(cluster, 1, shutdown=True, knows=True)
    assert last.should_shut_down
    cluster.apply(last.records)
    assert cluster.image.brokers[1].fenced


def test_broker_that_leads_nothing_may_go_at_once(scene):
    cluster = scene()
    decided = beat(cluster, 1, shutdown=True)
    assert (decided.should_shut_down, decided.fenced) == (True, True)
    cluster.apply(decided.records)


def test_fenced_broker_that_wants_to_go_may_go(scene):
    cluster = scene(brokers=0)
    cluster.register(1)
    decided = beat(cluster, 1, shutdown=True)
    assert (decided.records, decided.should_shut_down) == ((), True)


def test_broker_that_was_told_to_go_does_not_come_back_in_the_same_life(scene):
    cluster = scene(brokers=1)
    cluster.create("orders", (1,))
    cluster.apply(decide_controlled_shutdown(cluster.controller, 1))
    cluster.apply(decide_fence(cluster.controller, 1))
    assert decide_unfence(cluster.controller, 1) == ()
    again = beat(cluster, 1)
    assert (again.records, again.fenced, again.should_shut_down) == ((), True, True)
    cluster.join(1, life=1, previous_epoch=cluster.epoch(1))
    assert cluster.partition().leader == 1
