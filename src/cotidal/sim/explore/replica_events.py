"""What is said and what happens in the partition's world. Pure values."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from cotidal.core.cluster.image import Partition
from cotidal.core.partition import effects as fx
from cotidal.core.partition import follower, leader
from cotidal.sim.explore.held import Held
from cotidal.values import BrokerEpoch, NodeId, Offset, TopicPartition

PARTITION: Final = TopicPartition("orders", 0)


class Acked(NamedTuple):
    offset: Offset
    held: Held


class Heard(NamedTuple):
    """What the world learns from a step: committed records as their leader has them, and acks."""

    committed: tuple[Held, ...] = ()
    acked: tuple[Acked, ...] = ()


NOTHING_HEARD: Final = Heard()

# messages


class Ask(NamedTuple):
    """A follower's fetch; ``ends``: it asks where the leader's log begins and ends instead."""

    sender: NodeId
    life: BrokerEpoch
    to: NodeId
    question: follower.Question
    ends: bool


class Reply(NamedTuple):
    to: NodeId
    life: BrokerEpoch
    answer: follower.Answered | follower.LeaderEnds


class Propose(NamedTuple):
    """AlterPartition, to the controller."""

    sender: NodeId
    life: BrokerEpoch
    proposal: fx.ProposeIsr


class Verdict(NamedTuple):
    to: NodeId
    life: BrokerEpoch
    answer: leader.IsrAnswered


Message: TypeAlias = Ask | Reply | Propose | Verdict

# what else happens to a broker


class Told(NamedTuple):
    """Metadata up to ``version`` is applied. ``partition``: None if nothing of it changed."""

    version: int
    partition: Partition | None
    active: tuple[tuple[NodeId, BrokerEpoch], ...]
    min_isr: int


class Written(NamedTuple):
    """A producer's batch of one record, acks=all."""

    value: str


class FellBehind(NamedTuple):
    """replica.lag.time.max.ms has passed for these members, as far as they are behind."""

    members: tuple[NodeId, ...]


class Asking(NamedTuple):
    """The proposal that waits is sent once more."""


class Crashed(NamedTuple):
    """The records below ``keeps`` are found again, and the high watermark or none."""

    keeps: int
    high_watermark: bool


class Restarted(NamedTuple):
    life: BrokerEpoch
    told: Told


Event: TypeAlias = Message | Told | Written | FellBehind | Asking | Crashed | Restarted
