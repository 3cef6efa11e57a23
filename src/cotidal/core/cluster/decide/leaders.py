"""Who leads a partition, who is in its ISR and who is eligible. Pure. KIP-631, KIP-966, KIP-704.

Every change of a partition goes through ``change``; it turns what should be (a new ISR, say) into
one PartitionChangeRecord, in this order:

  0  Reassignment. Once everyone in the target is in the ISR, whoever is being removed leaves. (Not
     after an unclean election: the leader has to say first that it has recovered.)
  1  ELR. Below min ISR whoever leaves the ISR becomes eligible, unless it restarted uncleanly; with
     min ISR or more in sync nobody is eligible. (ELR off: always empty.)
  2  Election, among acceptable brokers (active, the replica's directory online, and not the one
     that is leaving):
       the leader, if it is in the ISR; for a preferred election the first replica comes before it
       the first replica in the ISR
       ISR empty: the first replica in the ELR; it becomes the ISR
       ISR and ELR empty: the last known leader (counts as unclean, needs no permission)
       unclean election allowed: the first acceptable replica, but none that a reassignment is
       only adding; asked for by hand (Election.UNCLEAN), those too, after the others
       nobody
     An unclean election makes the leader the whole ISR, empties the ELR and marks it RECOVERING.
  3  The leader epoch grows iff the record names a leader: another one (also nobody), or the same
     one again when the replicas lose a member.
  4  When the ISR becomes empty the leader is written down as the last known one, until there is
     another; if it leaves the replicas meanwhile, somebody eligible stands in for it.

Without ELR the last member of an ISR is never removed: it stays there, and the partition is without
a leader until it returns.

Callers say what should be: isr.py (a leader's proposal), reassignment.py, elections.py, brokers.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import NamedTuple, TypeAlias

from cotidal.core.cluster.controller import Controller
from cotidal.core.cluster.image import (
    LEADER_UNCHANGED,
    RECOVERING,
    RECOVERY_UNCHANGED,
    Image,
    Partition,
    Topic,
)
from cotidal.messages.records.metadata import PartitionChangeRecord
from cotidal.values import NO_NODE, NodeId, Uuid

Acceptable: TypeAlias = Callable[[NodeId], bool]
"""May this broker lead?"""


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


class Assignment(NamedTuple):
    """Which brokers have a partition, and where a reassignment takes it."""

    replicas: tuple[NodeId, ...]
    """The target, then those that are being removed."""
    adding: tuple[NodeId, ...]
    removing: tuple[NodeId, ...]
    directories: tuple[Uuid, ...]

    @classmethod
    def of(cls, partition: Partition) -> Assignment:
        return cls(partition.replicas, partition.adding, partition.removing, partition.directories)

    @property
    def target(self) -> tuple[NodeId, ...]:
        return tuple([replica for replica in self.replicas if replica not in self.removing])

    def without(self, nodes: tuple[NodeId, ...]) -> Assignment:
        """These brokers have it no more."""
        kept = [place for place, node in enumerate(self.replicas) if node not in nodes]
        return Assignment(
            replicas=tuple([self.replicas[place] for place in kept]),
            adding=tuple([node for node in self.adding if node not in nodes]),
            removing=tuple([node for node in self.removing if node not in nodes]),
            directories=(
                tuple([self.directories[place] for place in kept]) if self.directories else ()
            ),
        )


def rules_of(controller: Controller, topic: str) -> Rules:
    return Rules(
        min_isr=controller.min_isr(topic),
        elr_enabled=controller.image.elr_enabled,
        unclean_allowed=controller.unclean_allowed(topic),
    )


def acceptable_in(
    image: Image,
    partition: Partition,
    *,
    joining: NodeId = NO_NODE,
    leaving: NodeId = NO_NODE,
) -> Acceptable:
    """Who may lead this partition, given that one broker is about to become active, or to leave."""

    def acceptable(node_id: NodeId) -> bool:
        broker = image.brokers.get(node_id)
        if broker is None or node_id == leaving:
            return False
        if not broker.active and node_id != joining:
            return False
        return broker.has_online(partition.directory(node_id))

    return acceptable


def without_broker(
    controller: Controller,
    node_id: NodeId,
    *,
    unclean: bool = False,
    directories: tuple[Uuid, ...] | None = None,
) -> Iterator[PartitionChangeRecord]:
    """Take a broker out of every ISR and every leadership.

    ``unclean``: it restarted without having been shut down, so its log may have lost a suffix: it
    leaves every ELR too. ``directories``: only where it keeps the partition in one of these.
    """
    image = controller.image
    for topic in image.topics.values():
        rules: Rules | None = None
        for number, partition in topic.partitions.items():
            if not (node_id in partition.isr or (unclean and node_id in partition.elr)):
                continue
            if directories is not None and partition.directory(node_id) not in directories:
                continue
            rules = rules or rules_of(controller, topic.name)
            record = change(
                topic.topic_id,
                number,
                partition,
                rules,
                acceptable_in(image, partition, leaving=node_id),
                isr=tuple([member for member in partition.isr if member != node_id]),
                unclean_restarted=(node_id,) if unclean else (),
            )
            if record is not None:
                yield record


def with_broker(controller: Controller, node_id: NodeId) -> Iterator[PartitionChangeRecord]:
    """A broker is about to become active: elect where nobody leads."""
    for topic in controller.image.topics.values():
        yield from _elect_leaderless(controller, topic, joining=node_id)


def elect_leaderless(
    controller: Controller, topic: str | None = None
) -> Iterator[PartitionChangeRecord]:
    """The sweep over partitions that have no leader: settings may allow more than before."""
    image = controller.image
    for each in image.topics.values() if topic is None else (image.topics[topic],):
        yield from _elect_leaderless(controller, each)


def change(
    topic_id: Uuid,
    number: int,
    partition: Partition,
    rules: Rules,
    acceptable: Acceptable,
    *,
    isr: tuple[NodeId, ...] | None = None,
    assignment: Assignment | None = None,
    unclean_restarted: tuple[NodeId, ...] = (),
    election: Election = Election.ONLINE,
    recovery_state: int | None = None,
) -> PartitionChangeRecord | None:
    """The record that makes a partition what it should be; None where it already is."""
    assigned = Assignment.of(partition) if assignment is None else assignment
    assigned, new_isr = completed(assigned, partition.isr if isr is None else isr)
    new_elr = _eligible(partition, new_isr, assigned.replicas, rules, unclean_restarted)
    elected = _elect(partition, new_isr, new_elr, assigned, rules, acceptable, election)

    new_state = partition.recovery_state if recovery_state is None else recovery_state
    if elected.unclean:
        new_isr, new_elr, new_state = (elected.leader,), (), RECOVERING
    elif elected.leader in new_elr:
        assigned, new_isr = completed(assigned, (elected.leader,))
        eligible = partition._replace(isr=(), elr=new_elr)
        new_elr = _eligible(eligible, new_isr, assigned.replicas, rules, unclean_restarted)
    if not new_isr and not rules.elr_enabled:
        new_isr = partition.isr

    leader = LEADER_UNCHANGED
    lost_replica = any(replica not in assigned.replicas for replica in partition.replicas)
    if elected.leader != partition.leader or lost_replica:
        leader = elected.leader
    same = Assignment.of(partition)
    record = PartitionChangeRecord(
        partition_id=number,
        topic_id=topic_id,
        isr=None if new_isr == partition.isr else new_isr,
        leader=leader,
        replicas=None if assigned.replicas == same.replicas else assigned.replicas,
        removing_replicas=None if assigned.removing == same.removing else assigned.removing,
        adding_replicas=None if assigned.adding == same.adding else assigned.adding,
        leader_recovery_state=(
            RECOVERY_UNCHANGED if new_state == partition.recovery_state else new_state
        ),
        directories=None if assigned.directories == same.directories else assigned.directories,
        eligible_leader_replicas=None if new_elr == partition.elr else new_elr,
        last_known_elr=_last_known(
            partition, new_isr, new_elr, assigned.replicas, elected.leader, rules
        ),
    )
    empty = PartitionChangeRecord(partition_id=number, topic_id=topic_id)
    return None if record == empty else record


def completed(
    assigned: Assignment, isr: tuple[NodeId, ...]
) -> tuple[Assignment, tuple[NodeId, ...]]:
    """The assignment and the ISR once a reassignment is over; as they are while it is not."""
    if not assigned.adding and not assigned.removing:
        return assigned, isr
    staying = tuple([member for member in isr if member not in assigned.removing])
    if any(replica not in staying for replica in assigned.target):
        return assigned, isr
    return assigned.without(assigned.removing)._replace(adding=()), staying


def _elect_leaderless(
    controller: Controller, topic: Topic, *, joining: NodeId = NO_NODE
) -> Iterator[PartitionChangeRecord]:
    rules: Rules | None = None
    for number, partition in topic.partitions.items():
        if partition.leader == NO_NODE:
            rules = rules or rules_of(controller, topic.name)
            acceptable = acceptable_in(controller.image, partition, joining=joining)
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
    assigned: Assignment,
    rules: Rules,
    acceptable: Acceptable,
    election: Election,
) -> Elected:
    replicas = assigned.replicas
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
    for candidate in _unclean_candidates(assigned, rules, election):
        if acceptable(candidate):
            return Elected(candidate, unclean=True)
    return Elected(NO_NODE, unclean=False)


def _unclean_candidates(
    assigned: Assignment, rules: Rules, election: Election
) -> tuple[NodeId, ...]:
    """A replica that is being added has nothing, perhaps: a setting must not make it the truth."""
    settled = tuple([replica for replica in assigned.replicas if replica not in assigned.adding])
    match election:
        case Election.UNCLEAN:
            return (*settled, *assigned.adding)
        case Election.ONLINE:
            return settled if rules.unclean_allowed else ()
        case Election.PREFERRED:
            return ()


def _last_known(
    partition: Partition,
    isr: tuple[NodeId, ...],
    elr: tuple[NodeId, ...],
    replicas: tuple[NodeId, ...],
    leader: NodeId,
    rules: Rules,
) -> tuple[NodeId, ...] | None:
    """The record's last_known_elr; None leaves it as it is."""
    wanted = partition.last_known_elr
    if leader != NO_NODE or not rules.elr_enabled:
        wanted = ()
    elif not isr and partition.isr:
        # Without ELR a partition may have an ISR and no leader: its last member was the last one.
        wanted = (partition.isr[0] if partition.leader == NO_NODE else partition.leader,)
    if any(node not in replicas for node in wanted):
        wanted = elr[:1]  # it has gone; whoever is eligible holds as much
    return None if wanted == partition.last_known_elr else wanted
