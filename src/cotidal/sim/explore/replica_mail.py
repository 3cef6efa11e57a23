"""What can still matter of what is under way in the partition's world. Pure.

Whatever could not change anything any more is not kept: the fewer messages there are, the fewer
states. Each rule says why nothing is lost by it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cotidal.core.partition.follower import Answered
from cotidal.errors import ErrorCode
from cotidal.sim.explore.replica_controller import Decided
from cotidal.sim.explore.replica_events import Ask, Event, Propose, Reply, Verdict
from cotidal.values import BrokerEpoch, LeaderEpoch, NodeId

NEVER_AGAIN: Final = LeaderEpoch(1 << 30)
"""The epoch of a broker without role: whatever is under way to it is of the past."""

_PATIENCE: Final = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
)


class Facts(NamedTuple):
    """What of a broker decides which moves there are. -1 stands for none."""

    is_up: bool
    life: BrokerEpoch
    epoch: LeaderEpoch
    applied: int
    asks: int
    """The number of the question that it would ask its leader."""
    leader: int
    """The place of the broker that it follows."""
    leads: bool
    proposes: int
    """The number of the proposal that it waits for."""
    behind: tuple[NodeId, ...]
    end: int
    high_watermark: int


def receiver(message: Event) -> NodeId:
    assert isinstance(message, Ask | Reply | Verdict)
    return message.to


def concerns(message: Event, facts: Facts) -> bool:
    """Epochs never go back: what is of an earlier one than the receiver's is refused or dropped."""
    match message:
        case Ask(question=question):
            return question.leader_epoch >= facts.epoch
        case Reply(_, life, answer):
            return life == facts.life and answer.question.leader_epoch >= facts.epoch
        case Verdict(_, life, answer):
            return life == facts.life and answer.asked.leader_epoch >= facts.epoch
        case _:
            raise AssertionError(message)


def is_open(message: Propose, decided: Decided) -> bool:
    """One made upon an earlier state of the partition is refused, and its leader waits on."""
    proposal, partition = message.proposal, decided.partition
    return (proposal.leader_epoch, proposal.partition_epoch) >= (
        partition.leader_epoch,
        partition.partition_epoch,
    )


def asks_patience(message: Event) -> bool:
    """A refusal that makes a follower wait, for time or for metadata: it waits as long as it likes
    anyway."""
    if not isinstance(message, Reply) or not isinstance(message.answer, Answered):
        return False
    return message.answer.error in _PATIENCE
