"""A live cluster as a picture, and whether it is well. Pure.

A replica whose broker is silent is shown as it was last seen. What a cluster cannot tell is left
out, and ``notes`` say so: Apache Kafka tells neither epochs by replica nor a follower's high
watermark.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from cotidal.client.admin import Quorum
from cotidal.client.health import health_of
from cotidal.client.replicas import Held, Registered
from cotidal.client.standing import PartitionStanding, ReplicaStanding, Role, loss_text
from cotidal.client.status import Status
from cotidal.console.picture import Broker, Controller, Partition, Replica
from cotidal.console.picture import Quorum as QuorumShown
from cotidal.console.world import Json
from cotidal.limits import LIVE_PARTITIONS_MAX
from cotidal.values import NodeId

EPOCHS_SHOWN: Final = 40

PROMISES: Final = {
    "BROKERS_ANSWER": "Every broker that is registered answers",
    "LEADERS_LEAD": "Every partition has a leader",
    "REPLICAS_IN_SYNC": "Every replica is in sync",
    "MIN_ISR_HELD": "No partition has fewer replicas in sync than its min ISR",
    "PREFERRED_LEAD": "Every partition is led by its preferred leader",
    "CONTROLLER_LEADS": "The quorum of controllers has a leader",
}
"""The lamps of a live cluster, by their names."""


class Machine(NamedTuple):
    """What the machine knows of a node that `cotidal up` runs here."""

    state: str
    """up, starting, paused, down."""


class Seen(NamedTuple):
    """Everything that one look found."""

    status: Status
    quorum: Quorum | None
    """None: it has no leader, or does not tell."""
    machines: Mapping[int, Machine]
    """Empty where the cluster does not run on this machine."""
    links: Mapping[str, Json]


def picture_of(seen: Seen, before: Json) -> Json:
    """``before``: the last picture, for what is silent now. What is equal is the same object."""
    shown = _shown(seen.status)
    known: Mapping[str, Partition] = before.get("partitions", {})
    partitions = {
        name: _same(known.get(name), _partition(seen, each, known.get(name)))
        for name, each in shown.items()
    }
    brokers = {str(each.node_id): _broker(seen, each) for each in seen.status.brokers}
    return {
        "brokers": _same(before.get("brokers"), brokers),
        "controllers": _same(before.get("controllers"), _controllers(seen)),
        "partitions": _same(before.get("partitions"), partitions),
        "links": dict(seen.links),
        "flights": {},
        "lamps": _lamps(seen),
        "health": _health(seen),
        "notes": _notes(seen, len(shown)),
    }


def silent_picture(before: Json, reason: str) -> Json:
    """Nobody answers: what was seen last, and that nobody does."""
    brokers = {
        node: {**broker, "state": broker["state"] if broker["state"] == "down" else "silent"}
        for node, broker in before.get("brokers", {}).items()
    }
    return {
        "partitions": {},
        "links": {},
        "flights": {},
        **before,
        "brokers": brokers,
        "lamps": dict.fromkeys(PROMISES, "unknown") | {"BROKERS_ANSWER": "broken"},
        "health": {"state": "bad", "sentence": f"No broker answers: {reason}."},
        "notes": [],
    }


def _same(before: object, after: object) -> object:
    """The old one where they are equal, so that the past takes little memory."""
    return before if before == after else after


# Brokers


def _broker(seen: Seen, broker: Registered) -> Broker:
    shown: Broker = {
        "id": broker.node_id,
        "state": _state(seen, broker),
        "rack": broker.rack or "",
        "address": f"{broker.host}:{broker.port}",
    }
    quorum = _quorum(seen.quorum, broker.node_id)
    if quorum is not None:
        shown["quorum"] = quorum
    return shown


def _controllers(seen: Seen) -> dict[str, Controller]:
    """Those that are no brokers, by the quorum, and by this machine when nobody leads it."""
    quorum = seen.quorum
    voters = () if quorum is None else [member.node_id for member in quorum.voters]
    brokers = {each.node_id for each in seen.status.brokers}
    shown: dict[str, Controller] = {}
    for node_id in sorted({*voters, *map(NodeId, seen.machines)} - brokers):
        machine = seen.machines.get(node_id)
        shown[str(node_id)] = {"id": node_id, "state": "up" if machine is None else machine.state}
        told = _quorum(quorum, node_id)
        if told is not None:
            shown[str(node_id)]["quorum"] = told
    return shown


def _state(seen: Seen, broker: Registered) -> str:
    machine = seen.machines.get(broker.node_id)
    if machine is not None and machine.state != "up":
        return machine.state
    if broker.is_fenced:
        return "fenced"
    return "silent" if broker.node_id in seen.status.scene.silent else "up"


def _quorum(quorum: Quorum | None, node_id: NodeId) -> QuorumShown | None:
    if quorum is None:
        return None
    for role, members in (("follower", quorum.voters), ("observer", quorum.observers)):
        for member in members:
            if member.node_id == node_id:
                return {
                    "role": "leader" if node_id == quorum.leader else role,
                    "epoch": quorum.leader_epoch,
                    "end": member.end_offset,
                    "high_watermark": quorum.high_watermark,
                }
    return None


# Partitions


def _shown(status: Status) -> dict[str, PartitionStanding]:
    """Those of the users' topics, and of the cluster's own what is not well."""
    own = [each for each in status.partitions if each.at.topic.startswith("__")]
    users = [each for each in status.partitions if not each.at.topic.startswith("__")]
    shown = [*users, *(each for each in own if not users or not each.is_well)]
    if len(shown) > LIVE_PARTITIONS_MAX:
        shown.sort(key=lambda each: each.is_well)  # the order is kept among equals
    return {str(each.at): each for each in shown[:LIVE_PARTITIONS_MAX]}


def _partition(seen: Seen, each: PartitionStanding, before: Partition | None) -> Partition:
    partition = each.partition
    resting = {} if before is None else before["logs"]
    shown: Partition = {
        "leader": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "preferred": partition.replicas[0],
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "elr": list(each.eligible.elr),
        "logs": {},
    }
    if each.min_isr is not None:
        shown["min_isr"] = each.min_isr
    elif before is not None and "min_isr" in before:
        shown["min_isr"] = before["min_isr"]
    for replica in each.replicas:
        log = _log(seen, replica, resting.get(str(replica.node_id)))
        if log is not None:
            shown["logs"][str(replica.node_id)] = log
        if replica.why is not None:
            shown.setdefault("why_out", {})[str(replica.node_id)] = replica.why
        if replica.loss is not None and replica.role is not Role.IN_SYNC:
            shown.setdefault("if_elected", {})[str(replica.node_id)] = loss_text(replica.loss)
    return shown


def _log(seen: Seen, replica: ReplicaStanding, resting: Replica | None) -> Replica | None:
    held = replica.held
    if held is None:
        if resting is None:
            return None
        offline = replica.node_id in seen.status.scene.told
        return {**resting, "role": "offline" if offline else "down"}
    return replica_shown(held, "leader" if replica.role is Role.LEADER else "follower")


def replica_shown(held: Held, role: str) -> Replica:
    shown: Replica = {
        "start": held.start_offset,
        "end": held.end_offset,
        "epochs": [[entry.epoch, entry.start_offset] for entry in (held.epochs or ())],
        "role": role,
    }
    del shown["epochs"][:-EPOCHS_SHOWN]
    if held.high_watermark is not None:
        shown["high_watermark"] = held.high_watermark
    return shown


# Is it well?


def _lamps(seen: Seen) -> dict[str, str]:
    status = seen.status
    partitions = [each.partition for each in status.partitions]
    below = any(
        each.min_isr is not None and len(each.partition.isr) < each.min_isr
        for each in status.partitions
    )
    holds = {
        "BROKERS_ANSWER": not status.scene.silent and not status.scene.fenced,
        "LEADERS_LEAD": all(each.has_leader for each in partitions),
        "REPLICAS_IN_SYNC": not any(each.is_under_replicated for each in partitions),
        "MIN_ISR_HELD": not below,
        "PREFERRED_LEAD": all(each.leader == each.replicas[0] for each in partitions),
        "CONTROLLER_LEADS": seen.quorum is not None and seen.quorum.leader >= 0,
    }
    lamps = {name: "holds" if well else "broken" for name, well in holds.items()}
    is_told = all(each.min_isr is not None for each in status.partitions)
    if not below and not is_told:  # Apache Kafka does not, nor does a leader that is silent
        lamps["MIN_ISR_HELD"] = "unknown"
    return lamps


def _health(seen: Seen) -> Json:
    health = health_of(seen.status)
    return {"state": health.severity.value, "sentence": health.sentence}


def _notes(seen: Seen, shown: int) -> list[str]:
    status = seen.status
    notes = []
    held = [held for told in status.scene.told.values() for held in told.held.values()]
    if any(each.epochs is None for each in held):
        notes.append(
            "These brokers do not tell leader epochs or high watermarks by replica, so logs have"
            " one colour and followers no line."
        )
    if shown == LIVE_PARTITIONS_MAX < len(status.partitions):
        notes.append(
            f"{shown:,} of {len(status.partitions):,} partitions are shown: those that are not"
            " well, then the first."
        )
    if not seen.machines:
        notes.append(
            "What travels between brokers, and how long acknowledgements take, is known of a"
            " cluster that `cotidal up` runs on this machine."
        )
    return notes
