"""Who leads a partition, who is in its ISR and who is eligible. Pure. KIP-631, KIP-966, KIP-704.

Every change of a partition goes through ``change``; it turns what should be (a new ISR, say) into
one PartitionChangeRecord, in this order:

  1  ELR. Below min ISR whoever leaves the ISR becomes eligible, unless it restarted uncleanly; with
     min ISR or more in sync nobody is eligible. (ELR off: always empty.)
  2  Election, among acceptable brokers (active, and not the one that is leaving):
       the leader, if it is in the ISR; for a preferred election the first replica comes before it
       the first replica in the ISR
       ISR empty: the first replica in the ELR; it becomes the ISR
       ISR and ELR empty: the last known leader (counts as unclean, needs no permission)
       unclean election allowed: the first acceptable replica
       nobody
     An unclean election makes the leader the whole ISR, empties the ELR and marks it RECOVERING.
  3  The leader epoch grows iff the record names a leader: another one (also nobody), or the same
     one again when the replicas lose a member.
  4  When the ISR becomes empty the leader is written down as the last known one, until there is
     another.

Without ELR the last member of an ISR is never removed: it stays there, and the partition is without
a leader until it returns.

Accepting a leader's proposal for its ISR, reassignment and the preferred-leader timer are not here
yet; they are further callers of ``change``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import NamedTuple

from cotidal.core.cluster.controller import Controller
from cotidal.core.cluster.image import (
    LEADER_UNCHANGED,
    RECOVERING,
    RECOVERY_UNCHANGED,
    Partition,
    Topic,
)
from cotidal.messages.records.metadata import PartitionChangeRecord
from cotidal.values import NO_NODE, NodeId, Uuid


class Election(Enum):
    PREFERRED = "preferred"
    ONLINE = "online"
    UNCLEAN = "unclean"


class Rules(NamedTuple):
    """What holds for the partitions of one topic."""

    min_isr: int
    elr_enabled: bool
    unclean_allowed: bool


class Elected(NamedTuple):
    leader: NodeId
    unclean: bool


def rules_of(controller: Controller, topic: str) -> Rules:
    return Rules(
        min_isr=controller.min_isr(topic),
        elr_enabled=controller.image.elr_enabled,
        unclean_allowed=controller.unclean_allowed(topic),
    )


def without_broker(
    controller: Controller, node_id: NodeId, *, unclean: bool = False
) -> Iterator[PartitionChangeRecord]:
    """Take a broker out of every ISR and every leadership.

    ``unclean``: it restarted without having been shut down, so its log may have lost a suffix: it
    leaves every ELR too.
    """
    image = controller.image

    def acceptable(other: NodeId) -> bool:
        return other != node_id and image.is_active(other)

    for topic in image.topics.values():
        rules: Rules | None = None
        for number, partition in topic.partitions.items():
            if node_id in partition.isr or (unclean and node_id in partition.elr):
                rules = rules or rules_of(controller, topic.name)
                record = change(
                    topic.topic_id,
                    number,
                    partition,
                    rules,
                    acceptable,
                    isr=tuple([member for member in partition.isr if member != node_id]),
                    unclean_restarted=(node_id,) if unclean else (),
                )
                if record is not None:
                    yield record


def with_broker(controller: Controller, node_id: NodeId) -> Iterator[PartitionChangeRecord]:
    """A broker is about to become active: elect where nobody leads."""
    image = controller.image

    def acceptable(other: NodeId) -> bool:
        return other == node_id or image.is_active(other)

    for topic in image.topics.values():
        yield from _elect_leaderless(controller, topic, acceptable)


def elect_leaderless(controller: Controller) -> Iterator[PartitionChangeRecord]:
    """The sweep over all partitions that have no leader: settings may allow more than before."""
    for topic in controller.image.topics.values():
        yield from _elect_leaderless(controller, topic, controller.image.is_active)


def change(
    topic_id: Uuid,
    number: int,
    partition: Partition,
    rules: Rules,
    acceptable: Callable[[NodeId], bool],
    *,
    isr: tuple[NodeId, ...] | None = None,
    replicas: tuple[NodeId, ...] | None = None,
    unclean_restarted: tuple[NodeId, ...] = (),
    election: Election = Election.ONLINE,
    recovery_state: int | None = None,
) -> PartitionChangeRecord | None:
    """The record that makes a partition what it should be; None where it already is.

    ``replicas``: while a reassignment runs; whoever passes it says the rest of it in the record.
    """
    new_replicas = partition.replicas if replicas is None else replicas
    new_isr = partition.isr if isr is None else isr
    new_elr = _eligible(partition, new_isr, new_replicas, rules, unclean_restarted)
    if rules.unclean_allowed and election is Election.ONLINE:
        election = Election.UNCLEAN
    elected = _elect(partition, new_isr, new_elr, new_replicas, rules, acceptable, election)

    new_state = partition.recovery_state if recovery_state is None else recovery_state
    if elected.unclean:
        new_isr, new_elr, new_state = (elected.leader,), (), RECOVERING
    elif elected.leader in new_elr:
        new_isr = (elected.leader,)
        new_elr = _eligible(
            partition._replace(isr=(), elr=new_elr), new_isr, new_replicas, rules, unclean_restarted
        )
    if not new_isr and not rules.elr_enabled:
        new_isr = partition.isr

    leader = LEADER_UNCHANGED
    lost_replica = replicas is not None and not set(replicas).issuperset(partition.replicas)
    if elected.leader != partition.leader or lost_replica:
        leader = elected.leader
    record = PartitionChangeRecord(
        partition_id=number,
        topic_id=topic_id,
        isr=None if new_isr == partition.isr else new_isr,
        leader=leader,
        replicas=None if new_replicas == partition.replicas else new_replicas,
        leader_recovery_state=(
            RECOVERY_UNCHANGED if new_state == partition.recovery_state else new_state
        ),
        eligible_leader_replicas=None if new_elr == partition.elr else new_elr,
        last_known_elr=_last_known(partition, new_isr, elected.leader, rules),
    )
    empty = PartitionChangeRecord(partition_id=number, topic_id=topic_id)
    return None if record == empty else record


def _elect_leaderless(
    controller: Controller, topic: Topic, acceptable: Callable[[NodeId], bool]
) -> Iterator[PartitionChangeRecord]:
    rules: Rules | None = None
    for number, partition in topic.partitions.items():
        if partition.leader == NO_NODE:
            rules = rules or rules_of(controller, topic.name)
            record = change(topic.topic_id, number, partition, rules, acceptable)
            if record is not None:
                yield record


def _eligible(
    partition: Partition,
    isr: tuple[NodeId, ...],
    replicas: tuple[NodeId, ...],
    rules: Rules,
    unclean_restarted: tuple[NodeId, ...],
) -> tuple[NodeId, ...]:
    """The ELR beside a new ISR, in the order of the replicas."""
    if not rules.elr_enabled or len(isr) >= min(rules.min_isr, len(replicas)):
        return ()
    return tuple(
        [
            replica
            for replica in replicas
            if (replica in partition.elr or replica in partition.isr)
            and replica not in isr
            and replica not in unclean_restarted
        ]
    )


def _elect(
    partition: Partition,
    isr: tuple[NodeId, ...],
    elr: tuple[NodeId, ...],
    replicas: tuple[NodeId, ...],
    rules: Rules,
    acceptable: Callable[[NodeId], bool],
    election: Election,
) -> Elected:
    clean = isr or elr
    order = (partition.leader, *replicas)
    if election is Election.PREFERRED:
        order = (replicas[0], *order)
    for candidate in order:
        if candidate in clean and acceptable(candidate):
            return Elected(candidate, unclean=False)
    if rules.elr_enabled and not clean and len(partition.last_known_elr) == 1:
        last_known = partition.last_known_elr[0]
        if last_known in replicas and acceptable(last_known):
            return Elected(last_known, unclean=True)
    if election is Election.UNCLEAN:
        for candidate in replicas:
            if acceptable(candidate):
                return Elected(candidate, unclean=True)
    return Elected(NO_NODE, unclean=False)


def _last_known(
    partition: Partition, isr: tuple[NodeId, ...], leader: NodeId, rules: Rules
) -> tuple[NodeId, ...] | None:
    """The record's last_known_elr; None leaves it as it is."""
    if rules.elr_enabled and not isr and partition.leader != NO_NODE:
        wanted: tuple[NodeId, ...] = (partition.leader,)
    elif leader != NO_NODE or not rules.elr_enabled:
        wanted = ()
    else:
        return None
    return None if wanted == partition.last_known_elr else wanted
