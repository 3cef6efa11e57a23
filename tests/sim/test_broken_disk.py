"""Disks that fail under a simulated cluster: the log goes offline, the cluster goes on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cotidal.log.checkpoint import encode_partition_metadata
from cotidal.log.log import Log
from cotidal.sim.agenda import SECOND
from cotidal.sim.checkers.liveness import missing
from cotidal.sim.disk import DiskFault
from cotidal.sim.plan import Plan
from cotidal.sim.plans import PLANS
from cotidal.sim.run import Run
from cotidal.values import NodeId, TopicPartition, Uuid
from simulated import go_through

ORDERS = TopicPartition("orders", 0)
CLUSTER = PLANS["calm"]._replace(
    admin_gap_ms=0,
    settings={
        "leader.imbalance.check.interval.seconds": "1",
        "leader.imbalance.per.broker.percentage": "0",
    },
)
LONE = CLUSTER._replace(nodes=1, replication=1, min_isr=1)


def begun(plan: Plan, seed: int = 7) -> Run:
    one = Run(seed, plan)
    go_through(one, one._set_up())
    one.world.run_for(2 * SECOND)
    return one


def leader_of(one: Run) -> NodeId:
    told = one.watch.ghost.told(ORDERS)
    return NodeId(-1) if told is None else told.leader


def isr_of(one: Run) -> tuple[NodeId, ...]:
    told = one.watch.ghost.told(ORDERS)
    return () if told is None else told.isr


def until(one: Run, condition: Callable[[], bool], seconds: int = 60) -> None:
    for _ in range(seconds * 5):
        if condition():
            return
        one.world.run_for(SECOND // 5)
    raise AssertionError("it did not come to pass")


def restart(one: Run, node: NodeId) -> None:
    """In order, so that its logs are believed and nobody reads them before they are asked for."""
    process = one.world.machines[node].process
    assert process is not None
    process.request_stop()
    until(one, lambda: one.world.machines[node].process is None)
    assert one.world.start(node)


def acknowledged(one: Run) -> int:
    return len(one.history.acked.get(ORDERS, ()))


def damage(one: Run, node: NodeId) -> Log:
    """A bit of the first batch flips, of which nothing is in memory any more. The checkers have
    read it before, and do not read it again."""
    one.watch.audit()
    one.watch._until_audit = 1 << 62
    machine = one.world.machines[node]
    first = f"{machine.log_directory(ORDERS)}/{0:020d}.log"
    machine.files.flip(first, 70, 3)
    assert machine.process is not None
    log = machine.process.disk.log_of(ORDERS)
    assert log is not None
    for segment in log._row.segments:
        segment.forget_recent()
        segment._verified_from = segment._verified_to = segment.size
    assert len(log.verify()) == 1
    return log


def end_well(one: Run) -> None:
    """Everybody catches up, and everything that was acknowledged can be read."""
    go_through(one, one._heal())
    go_through(one, one._read_all())


@pytest.mark.parametrize("fault", list(DiskFault))
def test_a_leader_whose_disk_fails_is_replaced_and_comes_back(fault: DiskFault) -> None:
    one = begun(CLUSTER)
    before = leader_of(one)
    machine = one.world.machines[before]
    machine.break_disk(fault, machine.log_directory(ORDERS))
    until(one, lambda: leader_of(one) not in (-1, before))
    assert before not in isr_of(one)
    written = acknowledged(one)
    until(one, lambda: acknowledged(one) > written + 10)
    assert machine.process is not None, "the other logs of the node go on"
    machine.mend_disk()
    restart(one, before)
    until(one, lambda: len(isr_of(one)) == 3)
    end_well(one)


def test_a_follower_whose_disk_fails_leaves_the_isr() -> None:
    one = begun(CLUSTER)
    leader = leader_of(one)
    follower = next(node for node in isr_of(one) if node != leader)
    machine = one.world.machines[follower]
    machine.break_disk(DiskFault.FULL, machine.log_directory(ORDERS))
    until(one, lambda: follower not in isr_of(one))
    assert leader_of(one) == leader
    machine.mend_disk()
    restart(one, follower)
    end_well(one)


def test_a_leader_with_a_damaged_log_is_replaced_and_fetches_it_again() -> None:
    one = begun(CLUSTER)
    leader = leader_of(one)
    log = damage(one, leader)
    reader = one._add_consumer("reader", (ORDERS,))
    until(one, lambda: leader_of(one) not in (-1, leader))
    until(one, lambda: len(isr_of(one)) == 3)
    assert log.verify() == ()
    until(one, lambda: reader.position(ORDERS) > 100)
    reader.stop()
    end_well(one)


@pytest.mark.parametrize("fault", list(DiskFault))
def test_a_lone_log_whose_disk_fails_is_offline_until_the_restart(fault: DiskFault) -> None:
    one = begun(LONE)
    machine = one.world.machines[NodeId(1)]
    machine.break_disk(fault, machine.log_directory(ORDERS))
    until(one, lambda: leader_of(one) == -1)
    others = one.history.acknowledged
    until(one, lambda: one.history.acknowledged > others + 10)
    machine.mend_disk()
    restart(one, NodeId(1))
    until(one, lambda: leader_of(one) == 1)
    end_well(one)


def test_a_lone_log_that_is_damaged_is_never_cut() -> None:
    one = begun(LONE)
    log = damage(one, NodeId(1))
    one._add_consumer("reader", (ORDERS,))
    until(one, lambda: leader_of(one) == -1)
    end = log.end_offset
    one.world.run_for(5 * SECOND)
    assert (leader_of(one), log.end_offset) == (-1, end)
    assert len(log.verify()) == 1
    assert next(missing(one.world, one.producers), None) is not None


def test_a_log_that_nobody_gives_to_a_node_is_put_aside_when_it_starts() -> None:
    one = begun(CLUSTER)
    node = NodeId(2)
    one.world.kill(node)
    files = one.world.machines[node].files
    files.mkdir("/data/gone-0")
    files.write("/data/gone-0/partition.metadata", encode_partition_metadata(Uuid(b"g" * 16)))
    files.sync_directory("/data")
    assert one.world.start(node)
    stray = f"gone-0.{(b'g' * 16).hex()}-stray"
    until(one, lambda: stray in files.listdir("/data"))
    assert "gone-0" not in files.listdir("/data")
    assert str(ORDERS) in files.listdir("/data")
    end_well(one)
