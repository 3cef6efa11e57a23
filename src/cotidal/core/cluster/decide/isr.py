"""A leader proposes its ISR; the controller accepts or refuses. Pure. KIP-497, 704, 841, 903, 966.

What is checked, in this order, and how it is refused:

  the sender's broker epoch is not the registered one             STALE_BROKER_EPOCH, for all
  no such topic id / no such partition                            UNKNOWN_TOPIC_ID / _OR_PARTITION
  the leader or partition epoch is ahead of ours: it has seen a
    later controller than this one                                NOT_CONTROLLER
  the leader epoch is behind                                      FENCED_LEADER_EPOCH
  the sender does not lead                                        INVALID_REQUEST
  the partition epoch is behind: something else changed           INVALID_UPDATE_VERSION
  members that are no replicas, or twice; the leader not among
    them; more than the leader while RECOVERING; RECOVERING
    again after RECOVERED                                         INVALID_REQUEST
  a member that is not registered, fenced, shutting down, or of
    another incarnation than the leader saw                       INELIGIBLE_REPLICA

The last one is what keeps a restarted broker out until it has fetched in its new life: the epoch
that comes with each member is the one under which the leader saw it fetch, in its own leader epoch.
-1, from leaders that speak version 2, skips that comparison.

A proposal may finish a reassignment. If that removes the leader which proposed it, the change is
written *and* the sender is told NEW_LEADER_ELECTED.
"""

from __future__ import annotations

from typing import NamedTuple

from cotidal.core.cluster.controller import Controller
from cotidal.core.cluster.decide.leaders import acceptable_in, change, rules_of
from cotidal.core.cluster.image import RECOVERED, RECOVERING, Image, Partition, changed
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.records.metadata import PartitionChangeRecord
from cotidal.values import NO_BROKER_EPOCH, BrokerEpoch, LeaderEpoch, NodeId, PartitionEpoch, Uuid


class Member(NamedTuple):
    node_id: NodeId
    broker_epoch: BrokerEpoch = NO_BROKER_EPOCH
    """Of the incarnation that the leader saw fetching."""


class IsrProposal(NamedTuple):
    topic_id: Uuid
    partition: int
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    """The state upon which the leader decided."""
    members: tuple[Member, ...]
    recovery_state: int = RECOVERED


class IsrDecided(NamedTuple):
    record: PartitionChangeRecord | None
    """None: it is so already."""
    partition: Partition
    """As it is afterwards."""
    error: ErrorCode
    """NONE or NEW_LEADER_ELECTED."""


def refuse_sender(image: Image, node_id: NodeId, epoch: BrokerEpoch) -> Refusal | None:
    """Why a broker is not heard at all, if it is not. For everything that brokers ask."""
    broker = image.brokers.get(node_id)
    if broker is not None and broker.epoch == epoch:
        return None
    known = "is not registered" if broker is None else f"is registered with epoch {broker.epoch}"
    return Refusal(ErrorCode.STALE_BROKER_EPOCH, f"broker {node_id} {known}, not {epoch}")


def decide_isr(controller: Controller, sender: NodeId, asked: IsrProposal) -> IsrDecided | Refusal:
    """``sender`` has passed ``refuse_sender``."""
    image = controller.image
    topic = image.topic_by_id(asked.topic_id)
    if topic is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_ID)
    partition = topic.partitions.get(asked.partition)
    if partition is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    refusal = (
        _refuse_epochs(partition, sender, asked)
        or _refuse_members(partition, sender, asked)
        or _refuse_ineligible(image, asked.members)
    )
    if refusal is not None:
        return refusal
    record = change(
        topic.topic_id,
        asked.partition,
        partition,
        rules_of(controller, topic.name),
        acceptable_in(image, partition),
        isr=tuple([member.node_id for member in asked.members]),
        recovery_state=asked.recovery_state,
    )
    after = partition if record is None else changed(partition, record)
    error = ErrorCode.NONE if after.leader == sender else ErrorCode.NEW_LEADER_ELECTED
    return IsrDecided(record, after, error)


def _refuse_epochs(partition: Partition, sender: NodeId, asked: IsrProposal) -> Refusal | None:
    if (
        asked.leader_epoch > partition.leader_epoch
        or asked.partition_epoch > partition.partition_epoch
    ):
        return Refusal(ErrorCode.NOT_CONTROLLER, "the sender knows more than this controller")
    if asked.leader_epoch < partition.leader_epoch:
        return Refusal(ErrorCode.FENCED_LEADER_EPOCH)
    if sender != partition.leader:
        return Refusal(
            ErrorCode.INVALID_REQUEST, f"broker {partition.leader} leads, not broker {sender}"
        )
    if asked.partition_epoch < partition.partition_epoch:
        return Refusal(ErrorCode.INVALID_UPDATE_VERSION)
    return None


def _refuse_members(partition: Partition, sender: NodeId, asked: IsrProposal) -> Refusal | None:
    members = [member.node_id for member in asked.members]
    sentence = None
    if len(set(members)) != len(members):
        sentence = "a member is named twice"
    elif any(member not in partition.replicas for member in members):
        sentence = "a member is no replica"
    elif sender not in members:
        sentence = "the leader is not in its own ISR"
    elif asked.recovery_state not in (RECOVERED, RECOVERING):
        sentence = f"there is no recovery state {asked.recovery_state}"
    elif asked.recovery_state == RECOVERING and len(members) > 1:
        sentence = "a leader that is recovering is alone in its ISR"
    elif asked.recovery_state == RECOVERING and partition.recovery_state == RECOVERED:
        sentence = "a leader that has recovered does not recover again"
    return None if sentence is None else Refusal(ErrorCode.INVALID_REQUEST, sentence)


def _refuse_ineligible(image: Image, members: tuple[Member, ...]) -> Refusal | None:
    for node_id, epoch in members:
        broker = image.brokers.get(node_id)
        if broker is None:
            reason = "is not registered"
        elif broker.fenced:
            reason = "is fenced"
        elif broker.in_controlled_shutdown:
            reason = "is shutting down"
        elif epoch not in (NO_BROKER_EPOCH, broker.epoch):
            reason = f"was seen in epoch {epoch}, but is registered with epoch {broker.epoch}"
        else:
            continue
        return Refusal(ErrorCode.INELIGIBLE_REPLICA, f"broker {node_id} {reason}")
    return None
