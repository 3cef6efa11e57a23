"""Where a broker keeps its replicas, and what happens when a directory fails. Pure. KIP-858.

A replica whose directory is not online cannot lead or be in sync: it leaves the ISR and stays
eligible, because what it holds may come back with the disk. It is different when a broker says that
it keeps a replica elsewhere *and* the old place is not online: then the replica there is a new one,
without what was acknowledged, leaves the ELR too and is not remembered as the last known leader.

A broker that has lost one log, and not a directory, says that it keeps it in LOST_DIRECTORY. What
comes back from there may have been cut, so it leaves the ELR; but it is the same log, and if its
broker was the last one to lead, it is still remembered for that (docs/adr/0003).

Not there: moving replicas between directories (AlterReplicaLogDirs) is a matter of the broker; it
tells the outcome through ``decide_assign``.
"""

from __future__ import annotations

from typing import NamedTuple

from cotidal.core.cluster.controller import Controller, Records
from cotidal.core.cluster.decide.leaders import (
    Assignment,
    acceptable_in,
    change,
    rules_of,
    without_broker,
)
from cotidal.core.cluster.image import Broker
from cotidal.core.cluster.registered import LOST_DIRECTORY
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.records.metadata import BrokerRegistrationChangeRecord, PartitionChangeRecord
from cotidal.values import NodeId, Uuid


class Housed(NamedTuple):
    """A broker says where it keeps a partition."""

    topic_id: Uuid
    partition: int
    directory: Uuid


def decide_directories(
    controller: Controller,
    broker: Broker,
    *,
    offline: tuple[Uuid, ...] = (),
    cordoned: tuple[Uuid, ...] | None = None,
) -> Records:
    """What a heartbeat says of a broker's directories: some have failed, some take nothing new."""
    failed = tuple([each for each in broker.log_dirs if each in offline])
    if cordoned == broker.cordoned_log_dirs:
        cordoned = None
    if not failed and cordoned is None:
        return ()
    remaining = tuple([each for each in broker.log_dirs if each not in failed])
    if not remaining:
        # No record can say "none". A broker whose last directory failed stops by itself.
        remaining, failed = broker.log_dirs, ()
    said = BrokerRegistrationChangeRecord(
        broker_id=broker.node_id,
        broker_epoch=broker.epoch,
        log_dirs=remaining if failed else (),
        cordoned_log_dirs=cordoned,
    )
    if not failed:
        return (said,) if cordoned is not None else ()
    return (said, *without_broker(controller, broker.node_id, directories=failed))


def decide_assign(
    controller: Controller, node_id: NodeId, housed: Housed
) -> PartitionChangeRecord | Refusal | None:
    """AssignReplicasToDirs of one partition; None where it is known already."""
    image = controller.image
    topic = image.topic_by_id(housed.topic_id)
    if topic is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_ID)
    partition = topic.partitions.get(housed.partition)
    if partition is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if node_id not in partition.replicas:
        return Refusal(
            ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {node_id} has no replica of the partition"
        )
    broker = image.brokers[node_id]
    old = partition.directory(node_id)
    if old == housed.directory:
        return None
    directories = tuple(
        housed.directory if replica == node_id else partition.directory(replica)
        for replica in partition.replicas
    )
    anew = not broker.has_online(old)
    rules = rules_of(controller, topic.name)
    isr = partition.isr
    if anew or not broker.has_online(housed.directory):
        isr = tuple([member for member in isr if member != node_id])
    if not isr and not rules.elr_enabled and broker.has_online(housed.directory):
        isr = partition.isr  # without ELR the last member is the truth, whatever it has left
    forgotten = anew and old != LOST_DIRECTORY and node_id in partition.last_known_elr
    if forgotten:
        partition = partition._replace(last_known_elr=())
    record = change(
        topic.topic_id,
        housed.partition,
        partition,
        rules,
        acceptable_in(image, partition._replace(directories=directories)),
        isr=isr,
        assignment=Assignment.of(partition)._replace(directories=directories),
        unclean_restarted=(node_id,) if anew else (),
    )
    assert record is not None, "the directory is another one"
    return record._replace(last_known_elr=()) if forgotten else record
