"""What members of groups were told: who owns what, and what is committed.

  ONE_OWNER           a partition is claimed by one member in one generation of a group (or
                      epoch, in the consumer protocol: there also by nobody while another one has
                      it and heartbeats)
  GENERATIONS_ASCEND  whoever got an assignment never gets one of an earlier generation
  COMMITS_KEPT        what a fetch finds is not below what was acknowledged before it was sent

Every commit of a partition is one more than what its owner found or committed last, so that a
commit that is lost shows as a smaller number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cotidal.invariants import COMMITS_KEPT, GENERATIONS_ASCEND, ONE_OWNER
from cotidal.sim.agenda import MS
from cotidal.sim.network import Address
from cotidal.sim.violation import Violation
from cotidal.values import TopicPartition

NOTHING = -1
REBALANCE_MS: Final = 2_000
KEPT_US: Final = REBALANCE_MS * MS * 9 // 10
"""Whoever was heard less long ago is a member, and has what it has. What it was told to give up was
told after that; clocks may be a little off."""


class GroupLedger:
    def __init__(
        self, *, may_lose: bool, coordinator: Callable[[str], Address | None] | None = None
    ) -> None:
        """``coordinator``: of a group, as the metadata log says; without it, whoever answers."""
        self._may_lose = may_lose
        self._coordinator = coordinator
        self._owners: dict[tuple[str, int], dict[TopicPartition, str]] = {}
        self._generations: dict[tuple[str, str], int] = {}
        self._acked: dict[tuple[str, TopicPartition], int] = {}
        self._holders: dict[tuple[str, TopicPartition], str] = {}
        """Of the consumer protocol: who has each partition, as it knows itself."""
        self._beaten: dict[tuple[str, str], int] = {}
        """When each sent the last heartbeat that was answered well."""
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

    def is_coordinator(self, group: str, address: Address | None) -> bool:
        """What one that is deposed, and has not heard of it, tells a member, its successor never
        hears of."""
        return self._coordinator is None or self._coordinator(group) == address

    def on_beaten(self, group: str, owner: str, sent_us: int) -> None:
        self._beaten[group, owner] = sent_us

    def on_held(
        self, group: str, owner: str, partitions: tuple[TopicPartition, ...], now_us: int
    ) -> None:
        """It has these from now on, and no others."""
        holders = self._holders
        for key in [key for key, holder in holders.items() if holder == owner and key[0] == group]:
            del holders[key]
        for partition in partitions:
            other = holders.get((group, partition), owner)
            # Of one that was never heard nobody knows since when it is to give something up.
            silent_us = now_us - self._beaten.get((group, other), now_us - KEPT_US)
            if other != owner and silent_us < KEPT_US and not self._may_lose:
                raise Violation(
                    ONE_OWNER,
                    f"{owner} of {group} is given {partition}, which {other} has, who was heard"
                    f" {silent_us // MS} ms ago",
                )
            holders[group, partition] = owner

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
