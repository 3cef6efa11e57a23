"""How long partitions are without a leader when the broker dies that is also the controller.

ZooKeeper's era is a formula; each constant says whose it is:

  DETECT_MS  18,000   zookeeper.session.timeout.ms, the default from Kafka 2.5 to 3.9 (its
                      documentation of broker settings)
  LOAD_MS         2   to read one partition's state from ZooKeeper when a controller takes over
  ELECT_MS        5   to elect one partition's leader, one after another: both from J. Rao, "How to
                      choose the number of topics/partitions in a Kafka cluster" (Confluent, 2015),
                      who gives them as examples, not as measurements

KRaft is not modelled but run: cotidal's own controllers, in the simulator. Their metadata is in
memory before anything happens, and one batch of records moves every partition. Simulated time is
that of messages, disks and timers; what a machine computes takes none, so the real thing is slower
by its CPU time. Detection differs, too: a process that is killed is noticed by whoever talks to it,
a machine without power by its session (3 s here).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cotidal.core.cluster.image import Image
from cotidal.sim.agenda import MS, SECOND
from cotidal.sim.checkers.window import applied_by, hosted_by, image_of, leads_quorum
from cotidal.sim.probes import Probes
from cotidal.sim.process import Process
from cotidal.sim.sowing import sow
from cotidal.sim.workloads.admin import Admin
from cotidal.sim.world import Shape, World
from cotidal.values import NO_NODE, TopicPartition

DETECT_MS: Final = 18_000
LOAD_MS: Final = 2
ELECT_MS: Final = 5
NODES: Final = 3
LOOK_US: Final = 5 * MS
PATIENCE_US: Final = 60 * SECOND


def zookeeper_ms(partitions: int, *, brokers: int = NODES) -> int:
    """Until the last partition that the dead broker led has a leader again.

    Killed or without power is the same: a session in ZooKeeper outlives the sockets of its process.
    """
    return DETECT_MS + partitions * LOAD_MS + -(-partitions // brokers) * ELECT_MS


def kraft_ms(partitions: int, *, seed: int = 1, killed: bool = False) -> int:
    """The same with cotidal: the quorum's leader loses power, or is killed with -9."""
    world = World(seed, Shape(nodes=NODES))
    topics: Mapping[str, int] = {"many": partitions}
    admin = Admin(world, Probes(), topics=topics, replication=NODES, configs={}, gap_us=0)
    for node_id in world.machines:
        world.start(node_id)
    admin.begin()
    _wait(world, partitions)
    dead = next(process for process in world.running if leads_quorum(process))
    begun = world.now
    if killed:
        world.kill(dead.node_id)
    else:
        world.cut_power(dead.node_id, sow(seed, "failover"))
    _wait(world, partitions)
    return (world.now - begun) // MS


def _wait(world: World, partitions: int) -> None:
    until = world.now + PATIENCE_US
    while not _is_led(world, partitions):
        assert world.now < until, "partitions are without a leader for a minute"
        world.run_for(LOOK_US)


def _is_led(world: World, partitions: int) -> bool:
    """Every partition has a leader that lives and knows it, and the quorum has one."""
    running = world.running
    if not any(leads_quorum(process) for process in running):
        return False
    alive = {process.node_id: process for process in running}
    topic = _furthest(running).topics.get("many")
    if topic is None or len(topic.partitions) < partitions:
        return False
    for number, told in topic.partitions.items():
        leader = None if told.leader == NO_NODE else alive.get(told.leader)
        hosted = None if leader is None else hosted_by(leader).get(TopicPartition("many", number))
        leadership = None if hosted is None else hosted.replica.leadership
        if leadership is None or leadership.epoch != told.leader_epoch:
            return False
    return True


def _furthest(running: list[Process]) -> Image:
    return image_of(max(running, key=applied_by))
