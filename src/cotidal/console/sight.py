"""A simulated cluster as a picture, and what is found when something in it is looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from cotidal import invariants
from cotidal.console.losses import Losses
from cotidal.console.picture import Broker, Client, Flight, Partition, Quorum, Replica
from cotidal.console.tap import SeenWorld
from cotidal.console.teller import Teller
from cotidal.console.world import Command, Json, Refused
from cotidal.core.partition.replica import Replica as ReplicaState
from cotidal.core.trace import tell_record
from cotidal.sim.agenda import MS
from cotidal.sim.checkers.watch import Watch
from cotidal.sim.checkers.window import hosted_by, quorum_of
from cotidal.sim.process import Machine, Process, Watcher
from cotidal.sim.workloads.history import History
from cotidal.values import NodeId, Offset, TopicPartition, Uuid
from cotidal.wire.batch import read_batches
from cotidal.wire.metadata_batch import read_metadata_batches
from cotidal.wire.records import read_records

LAMPS: Final = (
    "ACKED_IS_KEPT",
    "LEADER_HOLDS_ACKED",
    "CONSUMED_NEVER_CHANGES",
    "HIGH_WATERMARK_WAITS",
    "HIGH_WATERMARK_MONOTONIC",
    "LOG_PREFIXES_MATCH",
    "ELIGIBLE_HOLD_COMMITTED",
    "ELIGIBLE_NEVER_CUT",
    "ONE_LEADER_PER_EPOCH",
    "ELECTED_FROM_ELIGIBLE",
    "IDEMPOTENT_ONCE",
    "WRITTEN_BEFORE_TOLD",
    "ONE_QUORUM_LEADER",
    "VOTE_ONCE_PER_EPOCH",
    "METADATA_COMMITTED_KEPT",
)
"""Those of the promises that are shown; all of them are looked after."""
READ_BYTES: Final = 1 << 20
EPOCHS_SHOWN: Final = 40
VALUE_SHOWN: Final = 4_000
"""Characters of a record's value."""


class Box(Protocol):
    """A simulated cluster with all that there is to see in it."""

    world: SeenWorld
    watch: Watch
    losses: Losses
    teller: Teller
    told: list[Json]
    samples: list[Json]

    @property
    def history(self) -> History: ...

    @property
    def ready(self) -> bool:
        """It has begun; what was before is of no interest to most."""

    @property
    def acts(self) -> Mapping[str, Callable[[Command], None]]:
        """What can be done to it, by name."""

    @property
    def partitions(self) -> tuple[TopicPartition, ...]: ...

    @property
    def exempt(self) -> frozenset[str]:
        """Promises that are given up, by their texts."""

    def min_isr_of(self, partition: TopicPartition) -> int: ...

    def clients(self) -> dict[str, Client]: ...

    def settings_shown(self) -> Json | None:
        """What can be changed while it runs, if anything can."""


class Sight(Watcher):
    def __init__(self, box: Box) -> None:
        self._box = box
        self._resting: dict[tuple[NodeId, TopicPartition], Replica] = {}
        """The logs of brokers that are down, as they were when they went down."""
        self._disks: dict[NodeId, Uuid] = {}
        """Where those logs are: a disk that is replaced takes them with it."""
        box.world.watchers.append(self)
        self._metadata: list[Json] = []
        self._metadata_read = 0

    def picture(self) -> Json:
        box = self._box
        picture: Json = {
            "now_us": int(box.world.now),
            "brokers": {str(id_): self._broker(m) for id_, m in box.world.machines.items()},
            "partitions": self._partitions(),
            "flights": self._flights(),
            "links": self._links(),
            "clients": box.clients(),
            "lamps": {name: self._lamp(name) for name in LAMPS},
            "counts": {
                "sent": box.history.sent,
                "acknowledged": box.history.acknowledged,
                "read": box.history.read,
            },
        }
        settings = box.settings_shown()
        if settings is not None:
            picture["settings"] = settings
        return picture

    def _lamp(self, name: str) -> str:
        return "given up" if getattr(invariants, name) in self._box.exempt else "holds"

    # Brokers

    def _broker(self, machine: Machine) -> Broker:
        process = machine.process
        found: Broker = {
            "id": machine.node_id,
            "state": self._state(machine, process),
            "rack": machine.config.rack or "",
            "incarnation": machine.incarnations,
        }
        if process is not None:
            found["quorum"] = _quorum(process)
        return found

    def _state(self, machine: Machine, process: Process | None) -> str:
        if process is None:
            return "down"
        if process.paused:
            return "paused"
        told = self._box.watch.ghost.image.brokers.get(machine.node_id)
        if not process.serving:
            return "starting"
        return "fenced" if told is None or told.fenced else "up"

    # Partitions

    def _partitions(self) -> dict[str, Partition]:
        found: dict[str, Partition] = {}
        image = self._box.watch.ghost.image
        for partition in self._box.partitions:
            told = image.partition(*partition)
            if told is None:
                continue
            shown: Partition = {
                "leader": told.leader,
                "leader_epoch": told.leader_epoch,
                "partition_epoch": told.partition_epoch,
                "preferred": told.replicas[0],
                "replicas": list(told.replicas),
                "isr": list(told.isr),
                "elr": list(told.elr),
                "min_isr": self._box.min_isr_of(partition),
                "logs": {},
            }
            for node_id in told.replicas:
                log = self._log(node_id, partition)
                if log is not None:
                    shown["logs"][str(node_id)] = log
            self._add_proposal(shown, told.leader, partition)
            found[str(partition)] = shown
        return found

    def _add_proposal(self, shown: Partition, leader: NodeId, partition: TopicPartition) -> None:
        machine = self._box.world.machines.get(leader)
        if machine is None or machine.process is None:
            return
        hosted = hosted_by(machine.process).get(partition)
        leadership = None if hosted is None else hosted.replica.leadership
        if leadership is not None and leadership.proposed is not None:
            shown["proposed"] = list(leadership.proposed)

    def _log(self, node_id: NodeId, partition: TopicPartition) -> Replica | None:
        process = self._box.world.machines[node_id].process
        if process is None:
            return self._rest(node_id, partition)
        hosted = hosted_by(process).get(partition)
        if hosted is None or not hosted.replica.opened:
            return self._rest(node_id, partition)
        return replica_shown(hosted.replica)

    def _rest(self, node_id: NodeId, partition: TopicPartition) -> Replica | None:
        disk = self._box.world.machines[node_id].config.directory_id
        known = self._resting.get((node_id, partition))
        return known if self._disks.get(node_id) == disk else None

    def on_ended(self, process: Process, reason: str) -> None:
        self._disks[process.node_id] = process.machine.config.directory_id
        for partition, hosted in hosted_by(process).items():
            shown = replica_shown(hosted.replica)
            shown["role"] = "down"
            self._resting[process.node_id, partition] = shown

    # What travels

    def _flights(self) -> dict[str, Flight]:
        network = self._box.world.network
        return {
            str(number): {
                "source": flight.source,
                "target": flight.target,
                "sent_us": flight.sent_us,
                "arrives_us": flight.arrives_us,
                "api": network.api(flight),
                "answer": not flight.from_caller,
                "bytes": len(flight.data),
            }
            for number, flight in network.flights.items()
        }

    def _links(self) -> dict[str, Json]:
        """Those between brokers that are not as they should be, in either direction."""
        machines = self._box.world.machines
        links: dict[str, Json] = {}
        for one in machines.values():
            for other in machines.values():
                link = self._box.world.network.known_link(one.host, other.host)
                if one is other or link is None:
                    continue
                pair = f"{min(one.host, other.host)}-{max(one.host, other.host)}"
                if link.blocked:
                    links.setdefault(pair, {})["cut"] = True
                if link.delay_us > link.usual_us:
                    by_ms = (link.delay_us - link.usual_us) // MS
                    links.setdefault(pair, {})["slow_ms"] = by_ms
        return links

    # The metadata log

    def metadata(self) -> list[Json]:
        """Every committed record as a line that a person can read."""
        ghost = self._box.watch.ghost
        if ghost.applied > self._metadata_read:
            self._read_metadata(ghost.applied)
        return self._metadata

    def _read_metadata(self, applied: int) -> None:
        names = self._box.watch.ghost.image.topic_names
        for process in self._box.world.running:
            log = process.disk.metadata.log
            if log.end_offset < applied or log.start_offset > self._metadata_read:
                continue
            with process.machine.files.unharmed():
                while self._metadata_read < applied:
                    data = log.read(
                        Offset(self._metadata_read), max_bytes=READ_BYTES, below=Offset(applied)
                    )
                    batches = read_metadata_batches(read_batches(data))
                    if not batches:
                        return
                    for batch in batches:
                        self._add_metadata(batch, names)
            return

    def _add_metadata(self, batch: Any, names: Any) -> None:
        for number, record in enumerate(batch.records):
            if not batch.control:
                self._metadata.append(
                    {
                        "offset": batch.base_offset + number,
                        "epoch": batch.leader_epoch,
                        "text": tell_record(record, names=names).line,
                    }
                )
        self._metadata_read = batch.base_offset + len(batch.records)

    # Looking

    def look(self, command: Command) -> Json:
        match command.one_of("what", ("record", "message", "promise")):
            case "record":
                return self._look_at_record(command)
            case "message":
                return self._look_at_message(command)
            case _:
                name = command.text("name")
                return {"name": name, "promise": getattr(invariants, name, "")}

    def _look_at_message(self, command: Command) -> Json:
        number = command.number("number", least=1, most=1 << 53)
        network = self._box.world.network
        flight = network.flights.get(number) or network.landed.get(number)
        if flight is None:
            raise Refused("that message is long gone")
        names = self._box.watch.ghost.image.topic_names
        return {
            "source": flight.source,
            "target": flight.target,
            "sent_us": flight.sent_us,
            "arrives_us": flight.arrives_us,
            "under_way": number in network.flights,
            "bytes": len(flight.data),
            "said": [said._asdict() for said in network.said(flight, names)],
        }

    def _look_at_record(self, command: Command) -> Json:
        box = self._box
        node = NodeId(command.number("node", least=1, most=len(box.world.machines)))
        by_name = {str(each): each for each in box.partitions}
        partition = by_name[command.one_of("partition", tuple(by_name), next(iter(by_name)))]
        offset = command.number("offset", least=0, most=1 << 53)
        machine = box.world.machines[node]
        process = machine.process
        log = None if process is None else process.disk.log_of(partition)
        if log is None:
            raise Refused(f"broker {node} is down: its log cannot be read")
        if not log.start_offset <= offset < log.end_offset:
            raise Refused(f"broker {node} has no offset {offset} of {partition}")
        with machine.files.unharmed():
            data = log.read(Offset(offset), max_bytes=1, below=log.end_offset)
        header = read_batches(data).headers[0]
        record = next(each for each in read_records(data, 0) if each.offset == offset)
        value = record.value or b""
        return {
            "offset": offset,
            "epoch": header.leader_epoch,
            "timestamp": record.timestamp,
            "producer": header.producer_id,
            "sequence": header.base_sequence,
            "value": value[:VALUE_SHOWN].decode("utf-8", "replace"),
            "hex": value[:64].hex(" "),
            "bytes": len(value),
        }


def _quorum(process: Process) -> Quorum:
    state = quorum_of(process)
    found: Quorum = {
        "role": type(state.role).__name__.lower(),
        "epoch": state.epoch,
        "end": state.log.end_offset,
        "high_watermark": state.high_watermark,
    }
    if state.voted is not None:
        found["voted"] = state.voted.node_id
    return found


def replica_shown(replica: ReplicaState) -> Replica:
    if replica.offline_reason is not None:
        role = "offline"
    elif replica.leadership is not None:
        role = "leader"
    else:
        role = "follower" if replica.following is not None else "idle"
    entries = replica.epochs.entries
    return {
        "start": replica.start_offset,
        "high_watermark": replica.high_watermark,
        "end": replica.end_offset,
        "epochs": [[entry.epoch, entry.start_offset] for entry in entries[-EPOCHS_SHOWN:]],
        "role": role,
        "epoch": replica.leader_epoch,
    }
