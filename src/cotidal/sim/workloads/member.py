"""What every simulated member of a group does, whichever protocol it speaks.

It looks for its coordinator, claims what it is assigned (ONE_OWNER, GENERATIONS_ASCEND), holds what
it is told against what was acknowledged to anybody before it asked (COMMITS_KEPT), commits, each
time one more than the last, and complains if it is forgotten sooner after a heartbeat than any
time-out allows (MEMBERS_KEPT). Now and then it goes away, in order or not. It reads no records.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from cotidal.invariants import MEMBERS_KEPT
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from cotidal.messages.rpc.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from cotidal.sim import probes as seen
from cotidal.sim.agenda import MS, SECOND
from cotidal.sim.network import Address
from cotidal.sim.probes import Probes
from cotidal.sim.violation import Violation
from cotidal.sim.workloads.client import Client
from cotidal.sim.workloads.find import find_coordinator
from cotidal.sim.workloads.group_ledger import KEPT_US, GroupLedger
from cotidal.sim.world import World
from cotidal.values import TopicPartition, by_topic

BEAT_GAP_US: Final = 300 * MS
COMMIT_GAP_US: Final = 60 * MS
AWAY_ONE_IN: Final = 60
"""Heartbeats after which a member goes away."""
AWAY_US: Final = 4 * SECOND


class Member(Client):
    STABLE: ClassVar[bool] = False
    """Whether it wants to be told no offset that a transaction may be about to replace."""
    offsets_version: int
    """Of OffsetCommit and OffsetFetch."""

    def __init__(
        self,
        world: World,
        name: str,
        group: str,
        partitions: tuple[TopicPartition, ...],
        ledger: GroupLedger,
        probes: Probes,
        *,
        static: bool,
    ) -> None:
        super().__init__(world, name, tuple(dict.fromkeys(each.topic for each in partitions)))
        self._group = group
        self._partitions = partitions
        self._ledger = ledger
        self._probes = probes
        self._instance = f"{name}-instance" if static else None
        self._coordinator: Address | None = None
        self._member_id = ""
        self._generation = -1
        """Or its epoch."""
        self._owned: dict[TopicPartition, int] = {}
        """What was last committed of each; -1: nothing yet."""
        self._works = False
        self._beaten_us: int | None = None
        """When it sent the last heartbeat that was answered well."""
        self._life = 0
        """Answers to what an earlier life asked mean nothing."""
        self.settled = False
        """It works, and its last heartbeat said so."""
        self.restless = True

    def begin(self) -> None:
        self._look()

    @property
    def group(self) -> str:
        return self._group

    @property
    def wanted(self) -> tuple[TopicPartition, ...]:
        """What its group is to share."""
        return self._partitions

    @property
    def held(self) -> tuple[TopicPartition, ...]:
        """What it has now, as far as it knows."""
        return tuple(self._owned)

    # What each protocol has its own of

    def _on_coordinator(self) -> None:
        """It is found."""
        raise NotImplementedError

    def _on_error(self, error: int) -> None:
        """What a client does about each."""
        raise NotImplementedError

    def _leave(self) -> None:
        raise NotImplementedError

    def _unknown(self) -> tuple[TopicPartition, ...]:
        """Partitions of its own of which it does not know what is committed."""
        raise NotImplementedError

    def _on_ready(self) -> None:
        """What is committed of its partitions is known."""
        raise NotImplementedError

    def _asker(self) -> tuple[str | None, int]:
        """As whom it fetches offsets."""
        raise NotImplementedError

    # Looking for the coordinator

    def _look(self) -> None:
        self.settled = False
        self._life += 1
        self._coordinator = None
        self.after(self.back_off(), self._find, self._life)

    def _find(self, life: int) -> None:
        if life != self._life:
            return

        def found(address: Address | None) -> None:
            if life != self._life:
                return
            if address is None:
                self._look()
                return
            self._coordinator = address
            self._on_coordinator()

        find_coordinator(self, self._group, found)

    def _put(self, key: ApiKey, version: int, request: Any, then: Any) -> None:
        """Ask the coordinator; ``then`` hears of answers to this life only, None for silence."""
        life = self._life
        assert self._coordinator is not None

        def told(reply: Any) -> None:
            if life == self._life:
                if reply is None:
                    self._look()
                else:
                    then(reply)

        self.ask(self._coordinator, key, version, request, told, 8 * SECOND)

    def _check_kept(self) -> None:
        beaten = self._beaten_us
        if beaten is not None and self.world.now - beaten < KEPT_US:
            raise Violation(
                MEMBERS_KEPT,
                f"{self.name} ({self._member_id}) is unknown to {self._group}"
                f" {(self.world.now - beaten) // MS} ms after a heartbeat",
            )

    # Offsets

    def _fetch(self) -> None:
        wanted = self._unknown()
        topics = tuple(
            OffsetFetchRequestTopics(name, partition_indexes=own)
            for name, own in by_topic(wanted).items()
        )
        group = OffsetFetchRequestGroup(self._group, *self._asker(), topics)
        at_least = {each: self._ledger.highest(self._group, each) for each in wanted}
        request = OffsetFetchRequest(groups=(group,), require_stable=self.STABLE)
        self._put(
            ApiKey.OFFSET_FETCH,
            self.offsets_version,
            request,
            lambda reply: self._on_fetched(reply, at_least),
        )

    def _on_fetched(self, reply: OffsetFetchResponse, at_least: dict[TopicPartition, int]) -> None:
        (group,) = reply.groups
        if group.error_code:
            self._on_error(group.error_code)
            return
        if any(told.error_code for topic in group.topics for told in topic.partitions):
            self._probes.see(seen.OFFSETS_UNSTABLE)
            self.after(self.back_off(), self._fetch_again, self._life)
            return
        for topic in group.topics:
            for told in topic.partitions:
                partition = TopicPartition(topic.name, told.partition_index)
                self._ledger.on_fetched(
                    self._group, partition, told.committed_offset, at_least[partition]
                )
                self._owned[partition] = told.committed_offset
        self._on_ready()

    def _fetch_again(self, life: int) -> None:
        if life == self._life:
            self._fetch()

    def _commit(self, life: int) -> None:
        if life != self._life or not self._owned or self.stopped:
            return
        owned = tuple(self._owned)
        partition = owned[self.draw(len(owned))]
        value = self._owned[partition] + 1
        one = OffsetCommitRequestPartition(partition.partition, value)
        request = OffsetCommitRequest(
            self._group,
            self._generation,
            self._member_id,
            self._instance,
            topics=(OffsetCommitRequestTopic(partition.topic, partitions=(one,)),),
        )

        def told(reply: OffsetCommitResponse) -> None:
            error = reply.topics[0].partitions[0].error_code
            if error:
                self._on_error(error)
                return
            if partition in self._owned:
                self._owned[partition] = value
            self._ledger.on_committed(self._group, partition, value)
            self.after(1 + self.draw(2 * COMMIT_GAP_US), self._commit, self._life)

        self._put(ApiKey.OFFSET_COMMIT, self.offsets_version, request, told)

    # Going away

    def _is_restless(self) -> bool:
        """Whether it goes away now, instead of a heartbeat."""
        return self.restless and self.draw(AWAY_ONE_IN) == 0

    def _go_away(self) -> None:
        if self.draw(2) == 0 and self._coordinator is not None:
            self._probes.see(seen.MEMBER_LEFT)
            self._leave()
        else:
            self._probes.see(seen.MEMBER_FELL_SILENT)
        self.settled = self._works = False
        self._beaten_us = None
        self._life += 1
        self._member_id = ""
        self.after(self.draw(AWAY_US), self._come_back, self._life)

    def _come_back(self, life: int) -> None:
        if life == self._life:
            self._look()

    def stop(self) -> None:
        """Commit nothing more, and stay."""
        self.stopped = True
        self.restless = False
