"""Brokers come, go and fall silent. Pure. KIP-631, KIP-841, KIP-966.

  registered, fenced --- caught up with its own registration, wants in ---> active
  active --- silent for a session, or wants out ---> fenced
  active --- wants to shut down, and leads ---> in controlled shutdown --- leads nothing, and every
             active broker knows ---> told to exit, fenced
  fenced --- unregistered ---> gone

A broker that is fenced or in controlled shutdown is in no ISR and leads nothing; the same batch of
records that says so moves its leaderships. A new incarnation is treated as if the old one had been
fenced first, in the same batch, because its registration may overtake the fencing (KAFKA-18106);
and unless it names the epoch of the old one, which only a clean shutdown leaves behind, it may have
lost the end of its logs, so that it leaves every ELR too.

A broker's epoch is the offset of the record that registers it. Who is silent, and who knows what,
is soft state (sessions.py). What happens to a broker's directories is in directories.py.
"""

from __future__ import annotations

from typing import NamedTuple

from cotidal.core.cluster.controller import Controller, Decided, Records
from cotidal.core.cluster.decide.directories import decide_directories
from cotidal.core.cluster.decide.features import SUPPORTED, refuse_levels
from cotidal.core.cluster.decide.isr import refuse_sender
from cotidal.core.cluster.decide.leaders import with_broker, without_broker
from cotidal.core.cluster.image import Broker, Endpoint, FeatureRange, Image, broker_record
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.records.metadata import (
    BrokerRegistrationChangeRecord,
    UnregisterBrokerRecord,
)
from cotidal.values import BrokerEpoch, NodeId, Offset, Uuid, uuid_text

_YES = 1
_NO = -1


class Registration(NamedTuple):
    """What a broker says of itself when it starts."""

    node_id: NodeId
    incarnation_id: Uuid
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    log_dirs: tuple[Uuid, ...] = ()
    cordoned_log_dirs: tuple[Uuid, ...] | None = None
    features: tuple[FeatureRange, ...] = SUPPORTED
    previous_epoch: BrokerEpoch = BrokerEpoch(-1)
    """The epoch under which it was last shut down cleanly."""


class Heartbeat(NamedTuple):
    node_id: NodeId
    epoch: BrokerEpoch
    metadata_offset: Offset
    """The last offset of the metadata log that the broker has applied."""
    want_fence: bool
    want_shutdown: bool
    offline_log_dirs: tuple[Uuid, ...] = ()
    cordoned_log_dirs: tuple[Uuid, ...] | None = None
    """None: nothing is said of them."""


class HeartbeatDecided(NamedTuple):
    records: Records
    caught_up: bool
    fenced: bool
    should_shut_down: bool


def decide_register(
    controller: Controller,
    asked: Registration,
    *,
    epoch: BrokerEpoch,
    old_is_alive: bool = False,
) -> Decided:
    """``epoch``: the offset at which the first record of this decision will be written.
    ``old_is_alive``: the incarnation that is registered now has a session that has not expired.

    A log directory has a lock, and one owner at a time. Whoever comes with a directory of the old
    incarnation came after it: it is gone, whatever its session says, and nobody need wait for that.
    """
    image = controller.image
    old = image.brokers.get(asked.node_id)
    refusal = _refuse_registration(image, asked)
    if refusal is not None:
        return refusal
    same = old is not None and old.incarnation_id == asked.incarnation_id
    took_over = old is not None and any(each in old.log_dirs for each in asked.log_dirs)
    if old is not None and not same and old.active and old_is_alive and not took_over:
        return Refusal(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"another broker {asked.node_id} is alive (incarnation "
            f"{uuid_text(old.incarnation_id)}); stop it, or give this one another node.id",
        )
    broker = Broker(
        node_id=asked.node_id,
        epoch=old.epoch if same and old is not None else epoch,
        incarnation_id=asked.incarnation_id,
        endpoints=asked.endpoints,
        rack=asked.rack,
        fenced=old.fenced if same and old is not None else True,
        in_controlled_shutdown=(old.in_controlled_shutdown if same and old is not None else False),
        log_dirs=asked.log_dirs,
        cordoned_log_dirs=asked.cordoned_log_dirs,
        features=asked.features,
    )
    if same:
        return (broker_record(broker),)
    clean = old is not None and asked.previous_epoch == old.epoch
    moved = without_broker(controller, asked.node_id, unclean=not clean)
    return (broker_record(broker), *moved)


def decide_heartbeat(
    controller: Controller,
    beat: Heartbeat,
    *,
    everyone_knows: bool,
) -> HeartbeatDecided | Refusal:
    """``everyone_knows``: every active broker has applied the records of this broker's controlled
    shutdown, so that nobody will ask it for anything any more."""
    stale = refuse_sender(controller.image, beat.node_id, beat.epoch)
    if stale is not None:
        return stale
    broker = controller.image.brokers[beat.node_id]
    caught_up = beat.metadata_offset >= broker.epoch
    records: Records = ()
    fenced, leave = broker.fenced, False
    if broker.fenced:
        leave = beat.want_shutdown or broker.in_controlled_shutdown
        if not leave and not beat.want_fence and caught_up:
            records, fenced = decide_unfence(controller, beat.node_id), False
    elif beat.want_fence:
        records, fenced, leave = decide_fence(controller, beat.node_id), True, beat.want_shutdown
    elif beat.want_shutdown or broker.in_controlled_shutdown:
        if not broker.in_controlled_shutdown and leads(controller.image, beat.node_id):
            records = decide_controlled_shutdown(controller, beat.node_id)
        elif not broker.in_controlled_shutdown or everyone_knows:
            records, fenced, leave = decide_fence(controller, beat.node_id), True, True
    if not records:
        # A broker repeats itself with each heartbeat: its directories wait until it is told in or
        # out, because both would change the same partitions.
        records = decide_directories(
            controller, broker, offline=beat.offline_log_dirs, cordoned=beat.cordoned_log_dirs
        )
    return HeartbeatDecided(records, caught_up, fenced, leave)


def decide_fence(controller: Controller, node_id: NodeId) -> Records:
    """A broker takes no part any more: its session expired, or it asked for it."""
    broker = controller.image.brokers.get(node_id)
    if broker is None or broker.fenced:
        return ()
    fenced = BrokerRegistrationChangeRecord(
        broker_id=node_id, broker_epoch=broker.epoch, fenced=_YES
    )
    return (fenced, *without_broker(controller, node_id))


def decide_unfence(controller: Controller, node_id: NodeId) -> Records:
    """A broker has caught up with its own registration and takes part from now on; elect where
    nobody leads. For whoever knows that it has; ``decide_heartbeat`` finds out itself. Whoever is
    shutting down does not come back in this life."""
    broker = controller.image.brokers.get(node_id)
    if broker is None or not broker.fenced or broker.in_controlled_shutdown:
        return ()
    unfenced = BrokerRegistrationChangeRecord(
        broker_id=node_id, broker_epoch=broker.epoch, fenced=_NO
    )
    return (unfenced, *with_broker(controller, node_id))


def decide_controlled_shutdown(controller: Controller, node_id: NodeId) -> Records:
    """Begin a controlled shutdown: leave every ISR, hand over every leadership."""
    broker = controller.image.brokers[node_id]
    if broker.in_controlled_shutdown:
        return ()
    leaving = BrokerRegistrationChangeRecord(
        broker_id=node_id, broker_epoch=broker.epoch, in_controlled_shutdown=_YES
    )
    return (leaving, *without_broker(controller, node_id))


def decide_unregister(controller: Controller, node_id: NodeId) -> Decided:
    broker = controller.image.brokers.get(node_id)
    if broker is None:
        return Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, f"no broker {node_id} is registered")
    if not broker.fenced:
        return Refusal(
            ErrorCode.INVALID_REQUEST,
            f"broker {node_id} is running; stop it before you unregister it",
        )
    gone = UnregisterBrokerRecord(broker_id=node_id, broker_epoch=broker.epoch)
    return (*without_broker(controller, node_id), gone)


def leads(image: Image, node_id: NodeId) -> bool:
    return any(
        partition.leader == node_id
        for topic in image.topics.values()
        for partition in topic.partitions.values()
    )


def _refuse_registration(image: Image, asked: Registration) -> Refusal | None:
    if not asked.endpoints:
        return Refusal(ErrorCode.INVALID_REGISTRATION, f"broker {asked.node_id} names no listener")
    names = [endpoint.name for endpoint in asked.endpoints]
    if len(set(names)) != len(names):
        return Refusal(
            ErrorCode.INVALID_REGISTRATION, f"broker {asked.node_id} names a listener twice"
        )
    if len(set(asked.log_dirs)) != len(asked.log_dirs):
        return Refusal(
            ErrorCode.INVALID_REGISTRATION, f"broker {asked.node_id} names a directory twice"
        )
    return refuse_levels(image, f"broker {asked.node_id}", asked.features)
