"""What members of groups were told: who owns what, and what is committed.

  ONE_OWNER           a partition is claimed by one member in one generation of a group
  GENERATIONS_ASCEND  whoever got an assignment never gets one of an earlier generation
  COMMITS_KEPT        what a fetch finds is not below what was acknowledged before it was sent

Every commit of a partition is one more than what its owner found or committed last, so that a
commit that is lost shows as a smaller number.
"""

from __future__ import annotations

from cotidal.invariants import COMMITS_KEPT, GENERATIONS_ASCEND, ONE_OWNER
from cotidal.sim.violation import Violation
from cotidal.values import TopicPartition

NOTHING = -1


class GroupLedger:
    def __init__(self, *, may_lose: bool) -> None:
        self._may_lose = may_lose
        self._owners: dict[tuple[str, int], dict[TopicPartition, str]] = {}
        self._generations: dict[tuple[str, str], int] = {}
        self._acked: dict[tuple[str, TopicPartition], int] = {}
        self.commits = 0
        self.assignments = 0

    def on_assigned(
        self, group: str, generation: int, owner: str, partitions: tuple[TopicPartition, ...]
    ) -> None:
        self.assignments += 1
        if self._may_lose:
            return
        before = self._generations.get((group, owner), generation)
        if generation < before:
            raise Violation(
                GENERATIONS_ASCEND,
                f"{owner} of {group} is assigned generation {generation} after {before}",
            )
        self._generations[group, owner] = generation
        owners = self._owners.setdefault((group, generation), {})
        for partition in partitions:
            first = owners.setdefault(partition, owner)
            if first != owner:
                raise Violation(
                    ONE_OWNER,
                    f"{partition} belongs to {first} and to {owner} in generation {generation} of"
                    f" {group}",
                )

    def on_committed(self, group: str, partition: TopicPartition, value: int) -> None:
        """A member was told that its commit is kept."""
        self.commits += 1
        key = (group, partition)
        self._acked[key] = max(self._acked.get(key, NOTHING), value)

    def highest(self, group: str, partition: TopicPartition) -> int:
        """Acknowledged so far."""
        return self._acked.get((group, partition), NOTHING)

    def on_fetched(self, group: str, partition: TopicPartition, value: int, at_least: int) -> None:
        if value < at_least and not self._may_lose:
            raise Violation(
                COMMITS_KEPT,
                f"{group} is told {value} for {partition}, and {at_least} was acknowledged before",
            )
