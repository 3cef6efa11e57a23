"""A member of the consumer protocol (KIP-848): heartbeats are all it does, besides commits.

    looking   for the coordinator                                         -> beating
    beating   joins with epoch 0, then says what it has every so often. What it is told no more it
              gives up at once, and says so soon, with its next heartbeat; of what is new to it
              it fetches first what is committed. Then it commits.
    away      it left in order, for now (a static one), or fell silent     -> looking

Fenced, or unknown: it gives up everything and joins again, under the same id.
With ``lookup_us`` it is as slow as librdkafka may be to take what is new to it: Lookup.
What it promises and watches is in member.py; besides:

  ONE_OWNER  nobody is told of a partition that another one has, and heartbeats for
"""

from __future__ import annotations

from typing import Final

from cotidal.errors import ErrorCode
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from cotidal.sim import probes as seen
from cotidal.sim.workloads.group_ledger import REBALANCE_MS
from cotidal.sim.workloads.member import BEAT_GAP_US, COMMIT_GAP_US, Member
from cotidal.values import TopicPartition, by_topic

BEAT_VERSION: Final = 1
JOINING, LEAVING, LEAVING_FOR_NOW = 0, -1, -2


class Lookup:
    """What a member was told of, and looks up before it takes it, as librdkafka does with topics
    that are new to it.

    Until then its heartbeats are full, and say that it has what it had. Then it takes all of it,
    even if it has been told of less meanwhile, and gives that up next. One that is told no more of
    anything that was new leaves it: no coordinator can know that it would have come.
    """

    __slots__ = ("done", "new", "owes", "told")

    def __init__(self, told: tuple[TopicPartition, ...], new: tuple[TopicPartition, ...]) -> None:
        self.told = told
        self.new = new
        """Of those, what it does not have, and is told of still."""
        self.owes = False
        """It was told of less since."""
        self.done = False

    def hear(self, told: tuple[TopicPartition, ...]) -> None:
        self.new = tuple(each for each in self.new if each in told)
        self.owes = any(each not in told for each in self.told)

    def end(self) -> None:
        self.done = True


class ConsumerMember(Member):
    offsets_version = 9

    _claimed: tuple[TopicPartition, ...] = ()
    """What it was told to have. It owns those of which it knows what is committed."""
    _says_all = True
    """The last answer may have been lost."""
    pattern: str | None = None
    """It subscribes by this regular expression, and not by names."""
    lookup_us = 0
    """How long it looks up what is new to it, at most."""
    _lookup: Lookup | None = None

    @property
    def _owner(self) -> str:
        return self._instance or self._member_id

    @property
    def held(self) -> tuple[TopicPartition, ...]:
        return self._claimed

    def _on_coordinator(self) -> None:
        self._lookup = None
        if not self._member_id:
            self._member_id = f"{self.name}-{self._life}"
            self._give_up()
        self._says_all = True
        self.after(self.draw(COMMIT_GAP_US), self._commit, self._life)
        self._beat(self._life)

    def _give_up(self) -> None:
        """It begins anew, with nothing."""
        self._generation = JOINING
        self._says_all = True
        self._claim(())

    def _claim(self, partitions: tuple[TopicPartition, ...]) -> None:
        self._claimed = partitions
        self._owned = {each: last for each, last in self._owned.items() if each in partitions}
        self._ledger.on_held(self._group, self._owner, partitions, self.world.now)

    def _on_error(self, error: int) -> None:
        self._probes.see(f"a member refused with {ErrorCode(error).name}")
        self.settled = False
        match error:
            case ErrorCode.STALE_MEMBER_EPOCH:
                self._life += 1  # the next heartbeat tells which epoch it is in
                self._on_coordinator()
            case (
                ErrorCode.UNKNOWN_MEMBER_ID
                | ErrorCode.FENCED_MEMBER_EPOCH
                | ErrorCode.GROUP_ID_NOT_FOUND
            ):
                # The last: without it, the group has become a classic one.
                if error != ErrorCode.FENCED_MEMBER_EPOCH:
                    self._check_kept()
                self._beaten_us = None
                self._give_up()
                self._look()
            case _:
                if error in (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID):
                    self._give_up()
                self._look()

    def _asker(self) -> tuple[str | None, int]:
        return self._member_id, self._generation

    def _beat(self, life: int) -> None:
        if life != self._life:
            return
        if self._is_restless():
            self._go_away()
            return
        sent = self.world.now
        says_all = self._says_all

        def told(reply: ConsumerGroupHeartbeatResponse) -> None:
            if reply.error_code:
                self._says_all = True
                self._on_error(reply.error_code)
                return
            if says_all or self._lookup is not None:
                # It may have been told to give up, and not have heard: that time is running.
                self._beaten_us = None
            elif self._ledger.is_coordinator(self._group, self._coordinator):
                self._beaten_us = sent
                self._ledger.on_beaten(self._group, self._owner, sent)
            self._on_beaten(reply)

        self._put(ApiKey.CONSUMER_GROUP_HEARTBEAT, BEAT_VERSION, self._said(), told)
        self._says_all = False

    def _said(self) -> ConsumerGroupHeartbeatRequest:
        has = tuple(
            ConsumerGroupHeartbeatRequestTopicPartitions(self.topic_ids[name], own)
            for name, own in by_topic(self._claimed).items()
        )
        everything = self._says_all or self._lookup is not None or self._generation == JOINING
        return ConsumerGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self._member_id,
            member_epoch=self._generation,
            instance_id=self._instance,
            rebalance_timeout_ms=REBALANCE_MS if everything else -1,
            subscribed_topic_names=self._names() if everything else None,
            subscribed_topic_regex=self.pattern if everything else None,
            topic_partitions=has,
        )

    def _names(self) -> tuple[str, ...]:
        return self.topics if self.pattern is None else ()

    def _on_beaten(self, reply: ConsumerGroupHeartbeatResponse) -> None:
        self._generation = reply.member_epoch
        before = self._claimed
        if reply.assignment is not None:
            names = {topic_id: name for name, topic_id in self.topic_ids.items()}
            told = reply.assignment.topic_partitions
            if any(topic.topic_id not in names for topic in told):
                self.refresh()
                self._look()
                return
            owned = tuple(
                TopicPartition(names[topic.topic_id], number)
                for topic in told
                for number in topic.partitions
            )
            self._probes.see(seen.GROUP_REBALANCED)
            self._ledger.on_assigned(self._group, self._generation, self._owner, owned)
            if self._waits_for(owned):
                self.settled = False
                self.after(self.draw(BEAT_GAP_US), self._beat, self._life)
                return
            self._claim(owned)
        if self._unknown():
            self._fetch()
        elif any(each not in self._claimed for each in before):
            self.after(self.draw(BEAT_GAP_US // 10), self._beat, self._life)  # to say so
        else:
            self.settled = True
            self._on_ready()

    def _waits_for(self, told: tuple[TopicPartition, ...]) -> bool:
        """Whether it goes on with what it has, until it has looked up what is new to it."""
        looked_up = self._lookup
        if looked_up is None:
            new = tuple(each for each in told if each not in self._claimed)
            if not new or not self.lookup_us:
                return False
            self._lookup = Lookup(told, new)
            self.after(self.draw(self.lookup_us), self._lookup.end)
            return True
        looked_up.hear(told)
        if looked_up.new and not looked_up.done:
            return True
        self._lookup = None
        if looked_up.new:
            if looked_up.owes:
                self._probes.see(seen.TAKEN_LATE)
            self._claim(looked_up.told)
        return False

    def _unknown(self) -> tuple[TopicPartition, ...]:
        return tuple(each for each in self._claimed if each not in self._owned)

    def _on_ready(self) -> None:
        self._works = True
        self.after(BEAT_GAP_US, self._beat, self._life)

    def _commit(self, life: int) -> None:
        if life == self._life and not self._owned and not self.stopped:
            self.after(COMMIT_GAP_US, self._commit, life)  # it may own something by then
        else:
            super()._commit(life)

    def _leave(self) -> None:
        for_now = self._instance is not None and self.draw(2) == 0
        epoch = LEAVING_FOR_NOW if for_now else LEAVING
        request = ConsumerGroupHeartbeatRequest(self._group, self._member_id, epoch, self._instance)
        self._put(ApiKey.CONSUMER_GROUP_HEARTBEAT, BEAT_VERSION, request, lambda _: None)
        self._claim(())
