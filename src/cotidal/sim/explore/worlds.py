"""The worlds there are, with the bounds within which each is searched completely. Pure.

Bounds are chosen so that a search ends within a few minutes on one core; docs/exploration.md says
what that is in states. Any of them can be given another value by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from cotidal.sim.explore import quorum_story, replica_story
from cotidal.sim.explore.quorum_world import Bounds as QuorumBounds
from cotidal.sim.explore.quorum_world import QuorumWorld
from cotidal.sim.explore.replica_bounds import Bounds as ReplicaBounds
from cotidal.sim.explore.replica_world import ReplicaWorld
from cotidal.sim.explore.search import State


class Named(NamedTuple):
    name: str
    about: str
    bounds: ReplicaBounds | QuorumBounds

    def bounded(self, values: Mapping[str, int]) -> Named:
        """With other values for some of its bounds; KeyError for a name that it has not."""
        for name in values:
            if name not in self.bounds._fields:
                raise KeyError(name)
        kind = type(self.bounds)
        return self._replace(bounds=kind(**{**self.bounds._asdict(), **values}))

    def made(self) -> ReplicaWorld | QuorumWorld:
        bounds = self.bounds
        return ReplicaWorld(bounds) if isinstance(bounds, ReplicaBounds) else QuorumWorld(bounds)

    def words(self) -> str:
        pairs = self.bounds._asdict().items()
        return " ".join(f"{name.replace('_', '-')}={int(value)}" for name, value in pairs)


def story(world: ReplicaWorld | QuorumWorld, path: list[State]) -> list[str]:
    """A way through a world, in words."""
    if isinstance(world, ReplicaWorld):
        return replica_story.story(world, path)
    return quorum_story.story(world, path)


WORLDS: Final = {
    world.name: world
    for world in (
        Named(
            "replicas",
            "three replicas of a partition and a controller; min ISR 2, a crash may lose records",
            ReplicaBounds(),
        ),
        Named(
            "replicas-late",
            "the same with one record, and one question or answer that takes its time",
            ReplicaBounds(records=1, late=1),
        ),
        Named(
            "replicas-healing",
            "a crash and a fence, and all that the controller decides until everybody is back",
            ReplicaBounds(records=1, shrinks=0, decisions=99),
        ),
        Named(
            "replicas-min-isr-1",
            "min ISR 1, and a crash that loses nothing (kill -9)",
            ReplicaBounds(min_isr=1, lossy=False),
        ),
        Named(
            "quorum",
            "three voters of the metadata log, two epochs and a crash",
            QuorumBounds(),
        ),
        Named(
            "quorum-records",
            "two epochs and a proposal, no crash",
            QuorumBounds(proposals=1, crashes=0),
        ),
    )
}
