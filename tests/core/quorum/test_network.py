"""Many seeds, every fault, all promises: quorums of three and five in a hostile network.

Each run is a safety phase, in which anything may happen and the promises of quorum_world.World are
checked after every event, and a liveness phase: faults end, and a new record must reach all nodes.
"""

from __future__ import annotations

import random

import pytest

from cotidal.core.quorum.dialogue import AddVoter, RaiseVersion, RemoveVoter
from cotidal.core.quorum.voters import key_of
from cotidal.messages.records.quorum import KRaftVersionFeature, KRaftVersionRecord
from quorum_world import Faults, World, asker_key

ROUNDS = 40


def misfortune(world: World, draw: random.Random) -> None:
    """One thing that goes wrong, or right again."""
    machines = list(world.machines.values())
    up = [machine for machine in machines if machine.node is not None]
    down = [machine for machine in machines if machine.node is None]
    lot = draw.randrange(100)
    leader = world.leader()
    if len(down) * 2 >= len(machines) or (down and lot < 25):
        world.start(draw.choice(down))
    elif lot < 35 and up:
        world.crash(draw.choice(up))
    elif lot < 45 and leader is not None:
        world.crash(leader)
    elif lot < 60:
        alone = draw.choice(up) if leader is None or draw.randrange(3) == 0 else leader
        world.partition({alone.id, *draw.sample(sorted(world.machines), draw.randint(0, 1))})
    elif lot < 65:
        a, b = draw.sample(sorted(world.machines), 2)
        world.cut.add((a, b))  # one way only
    elif lot < 85:
        world.cut.clear()
        for machine in machines:
            world.tell_connection_of(machine)


def propose(world: World, draw: random.Random) -> None:
    for machine in list(world.machines.values()):
        if machine.node is not None and machine.leads is not None:
            for _ in range(draw.randint(0, 3)):
                world.propose(machine, draw.randint(1, 3))


def change_voters(world: World, draw: random.Random) -> None:
    leader = world.leader()
    if leader is None or leader.node is None:
        return
    voters = leader.node.state.voter_set
    if not leader.node.state.voters.latest.can_change:
        both = KRaftVersionFeature(0, 1)
        world.change(leader, RaiseVersion(1, tuple((node, both) for node in voters.ids), 5_000))
        return
    outside = [m for m in world.machines.values() if not voters.has(asker_key(m))]
    if outside and draw.randrange(2):
        added = asker_key(draw.choice(outside))
        world.change(leader, AddVoter(added, (), KRaftVersionFeature(0, 1), 5_000))
    elif len(voters.voters) > 2:
        world.change(leader, RemoveVoter(key_of(draw.choice(voters.voters)), 5_000))


def live(world: World, *, rounds: int = ROUNDS, changes_voters: bool = False) -> None:
    draw = random.Random(world.seed)
    for machine in world.machines.values():
        world.start(machine)
    world.run(draw.randint(0, 500))
    for _ in range(rounds):
        misfortune(world, draw)
        propose(world, draw)
        if changes_voters and draw.randrange(3) == 0:
            change_voters(world, draw)
        world.run(draw.choice((3, 10, 30, 100, 300, 1_500, 4_000)))
    world.heal()
    world.settle()


def faults(seed: int) -> Faults:
    """Half of the runs have a decent network: they get further in the protocol."""
    if seed % 2:
        return Faults(persist_ms_max=seed % 30)
    return Faults(lose=50, double=50, delay_ms_max=40, persist_ms_max=seed % 50)


@pytest.mark.parametrize("block", range(8))
def test_three_voters_keep_every_promise(block: int) -> None:
    for seed in range(block * 60, block * 60 + 60):
        live(World(seed, faults=faults(seed)))


@pytest.mark.parametrize("block", range(4))
def test_five_voters_keep_every_promise(block: int) -> None:
    for seed in range(block * 20, block * 20 + 20):
        live(World(seed, size=5, faults=faults(seed)))


@pytest.mark.parametrize("block", range(4))
def test_snapshots_and_observers_keep_every_promise(block: int) -> None:
    seen: set[str] = set()
    for seed in range(block * 40, block * 40 + 40):
        world = World(seed, observers=1, snapshot_every=6, faults=faults(seed))
        live(world)
        seen |= world.seen
    assert {"snapshot", "chunk", "load"} <= seen


@pytest.mark.parametrize("block", range(4))
def test_changes_of_voters_keep_every_promise(block: int) -> None:
    changes = 0
    for seed in range(block * 40, block * 40 + 40):
        world = World(seed, observers=2, snapshot_every=seed % 3 * 8, faults=faults(seed))
        live(world, changes_voters=True)
        changes += changed(world)
    assert changes > 10


def test_static_voters_keep_every_promise() -> None:
    for seed in range(60):
        live(World(seed, kraft_version=0, faults=faults(seed)))


@pytest.mark.parametrize("block", range(4))
def test_static_voters_that_become_a_record_keep_every_promise(block: int) -> None:
    raised = changes = 0
    for seed in range(block * 30, block * 30 + 30):
        every = seed % 3 * 8
        world = World(seed, kraft_version=0, observers=2, snapshot_every=every, faults=faults(seed))
        live(world, changes_voters=True)
        changes += changed(world)
        raised += any(
            isinstance(record, KRaftVersionRecord) for _, record in world.committed.values()
        )
    assert raised > 20
    assert changes > 10


def changed(world: World) -> int:
    """Changes of voters that were committed."""
    names = [type(record).__name__ for _, record in world.committed.values()]
    return max(0, names.count("VotersRecord") - 1)
