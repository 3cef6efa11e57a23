"""Logs that parted find together again: random histories, and two rules without which they do not.

A history is a few epochs. In each, any broker is made leader, whatever its log, so that logs part
as far as they can; it writes a few batches, and some of the others copy some of them. In the end
one leads, and every other one follows until it has nothing more to fetch.
"""

from __future__ import annotations

from enum import Enum, auto

import pytest

from cotidal.core.machine import Entropy
from cotidal.core.partition.effects import (
    AdvanceLogStart,
    AppendFetched,
    PartitionEffect,
    RememberEpochs,
    StartOver,
    Truncate,
)
from cotidal.core.partition.follower import (
    Answered,
    LeaderEnds,
    Question,
    follow,
    on_answered,
    on_appended,
    on_leader_ends,
    on_log_cut,
    question,
    question_of_ends,
)
from cotidal.core.partition.leader import become_leader
from cotidal.core.partition.reading import Diverged, Granted, admit_replica_fetch
from cotidal.core.partition.replica import Appointment, Replica, on_log_opened
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.batch import NO_BATCHES
from cotidal.testing.memory_log import MemoryLog, batch_of
from cotidal.values import (
    NO_BROKER_EPOCH,
    NO_EPOCH,
    ZERO_UUID,
    LeaderEpoch,
    Millis,
    NodeId,
    Offset,
    PartitionEpoch,
    TopicPartition,
)

BROKERS = (NodeId(1), NodeId(2), NodeId(3))
NOW = Millis(0)
FETCHES_MAX = 40
"""Far more than any history needs: a pair that is not done then never will be."""


class Rule(Enum):
    AS_IT_IS = auto()
    ONE_CUT = auto()
    """The first divergence cuts to the offset that the leader names, and is the last (KIP-101)."""
    EPOCH_WITH_FIRST_RECORD = auto()
    """A leader enters its epoch with its first record instead of when it takes over."""


class Broker:
    """A replica on its disk."""

    def __init__(self, node_id: NodeId, rule: Rule) -> None:
        self.node_id = node_id
        self.rule = rule
        self.log = MemoryLog()
        self.replica = Replica(TopicPartition("orders", 0), ZERO_UUID)
        self._reopen()

    def lead(self, epoch: LeaderEpoch) -> None:
        told = Appointment(self.node_id, epoch, PartitionEpoch(epoch), BROKERS, (self.node_id,), 1)
        self.obey(become_leader(self.replica, told, NOW))
        if self.rule is Rule.EPOCH_WITH_FIRST_RECORD:
            self.replica.epochs.cut_from(self.replica.end_offset)

    def write(self, value: str, epoch: LeaderEpoch) -> None:
        self.replica.epochs.assign(epoch, start_offset=self.log.end)
        self.log.epochs = tuple(self.replica.epochs.entries)
        self.log.write(batch_of((value,)), base_offset=self.log.end, epoch=epoch)
        self.replica.end_offset = self.replica.next_offset = self.log.end

    def answer(self, asker: Broker, asked: Question, batches_max: int) -> Answered:
        verdict = admit_replica_fetch(
            self.replica,
            node_id=asker.node_id,
            broker_epoch=NO_BROKER_EPOCH,
            offset=asked.offset,
            current_epoch=asked.leader_epoch,
            last_fetched_epoch=asked.last_fetched_epoch,
        )
        told = Answered(asked, ErrorCode.NONE, Offset(0), self.log.start, None, NO_BATCHES)
        match verdict:
            case Refusal(error):
                return told._replace(error=error)
            case Diverged(end):
                return told._replace(diverging=end)
            case Granted(below):
                found = self.log.read(asked.offset, below=below, batches_max=batches_max)
                return told._replace(batches=found)

    def fetch(self, leader: Broker, *, batches_max: int, checks_epoch: bool = True) -> bool:
        """One fetch and what follows from it; True if it was told that the logs part."""
        ends = question_of_ends(self.replica, NOW)
        if ends is not None:
            found = LeaderEnds(ends, leader.log.start, leader.log.end)
            self.obey(on_leader_ends(self.replica, found))
            return False
        asked = question(self.replica, NOW)
        assert asked is not None
        seen = asked if checks_epoch else asked._replace(last_fetched_epoch=NO_EPOCH)
        answer = leader.answer(self, seen, batches_max)._replace(question=asked)
        if answer.diverging is not None and self.rule is Rule.ONE_CUT:
            self.log.truncate(min(answer.diverging.end_offset, self.log.end))
            self._reopen()
            follow(self.replica, leader=leader.node_id, epoch=asked.leader_epoch)
        else:
            self.obey(on_answered(self.replica, answer, NOW))
        self.replica.check()
        return answer.diverging is not None

    def obey(self, effects: tuple[PartitionEffect, ...]) -> None:
        for effect in effects:
            match effect:
                case RememberEpochs(entries):
                    self.log.epochs = entries
                case AppendFetched(batches):
                    self.log.append(batches)
                    self.obey(on_appended(self.replica, self.log.end))
                case Truncate(offset):
                    self.log.truncate(offset)
                    self._cut()
                case StartOver(offset):
                    self.log.start_over(offset)
                    self._cut()
                case AdvanceLogStart():
                    raise AssertionError("nothing is deleted here")
                case _:
                    pass

    def _cut(self) -> None:
        effects = on_log_cut(
            self.replica,
            start_offset=self.log.start,
            end_offset=self.log.end,
            epochs=self.log.epochs,
            producers=None,
            headers_after=(),
        )
        self.obey(effects)

    def _reopen(self) -> None:
        following = self.replica.following
        self.replica = Replica(self.replica.partition, ZERO_UUID)
        on_log_opened(
            self.replica,
            start_offset=self.log.start,
            end_offset=self.log.end,
            high_watermark=Offset(0),
            epochs=self.log.epochs,
            producers=None,
            headers_after=(),
        )
        self.replica.following = following


def history(seed: int, rule: Rule) -> tuple[Broker, list[Broker]]:
    """The last leader and its followers, after a random past."""
    chance = Entropy(seed)
    brokers = [Broker(node_id, rule) for node_id in BROKERS]
    leader = brokers[0]
    epochs = 2 + chance.below(8)
    for number in range(epochs):
        epoch = LeaderEpoch(number)
        leader = brokers[chance.below(len(brokers))]
        leader.lead(epoch)
        for _ in range(0 if chance.below(4) == 0 else chance.below(4)):
            leader.write(f"{leader.node_id}.{epoch}.{leader.log.end}", epoch)
        for other in brokers:
            if other is leader or (number < epochs - 1 and chance.below(3) == 0):
                continue
            follow(other.replica, leader=leader.node_id, epoch=epoch)
            if number < epochs - 1:
                for _ in range(chance.below(4)):
                    diverged = other.fetch(leader, batches_max=1 + chance.below(2))
                    if diverged and rule is Rule.ONE_CUT:
                        break
    return leader, [broker for broker in brokers if broker is not leader]


class Outcome:
    def __init__(self) -> None:
        self.diverged_pairs = 0
        self.unequal_pairs = 0
        self.rounds_max = 0
        """Fetches that it took until a follower was given records, or had them all."""


def reconcile(seed: int, rule: Rule, outcome: Outcome) -> None:
    leader, followers = history(seed, rule)
    for follower in followers:
        before = follower.log.records()
        parts = before != leader.log.records()[: len(before)]
        outcome.diverged_pairs += parts
        rounds = 0
        checks_epoch = True
        for _ in range(FETCHES_MAX):
            if follower.fetch(leader, batches_max=1 << 30, checks_epoch=checks_epoch):
                rounds += 1
                checks_epoch = rule is not Rule.ONE_CUT
            elif follower.log.end == leader.log.end and question(follower.replica, NOW):
                break
        if parts:
            outcome.rounds_max = max(outcome.rounds_max, rounds + 1)
        outcome.unequal_pairs += follower.log.records() != leader.log.records()


def outcome_of(seeds: int, rule: Rule) -> Outcome:
    outcome = Outcome()
    for seed in range(seeds):
        reconcile(seed, rule, outcome)
    return outcome


def test_every_pair_of_logs_finds_together_in_a_few_fetches() -> None:
    outcome = outcome_of(10_000, Rule.AS_IT_IS)
    assert outcome.diverged_pairs > 5_000
    assert outcome.unequal_pairs == 0
    assert outcome.rounds_max <= 4


@pytest.mark.parametrize("rule", [Rule.ONE_CUT, Rule.EPOCH_WITH_FIRST_RECORD])
def test_without_this_rule_logs_stay_apart(rule: Rule) -> None:
    assert outcome_of(600, rule).unequal_pairs > 10
