"""The words in which a script speaks to a partition_world. Shipped.

leader broker= epoch= [isr= replicas= min-isr= lag= start= epoch-start= end= hw= epochs=]
                          the controller appoints, and this broker hears of it; where the broker
                          is new, the rest says what is in its log, epoch-start what it found
follower broker= leader= epoch= [start= end= hw= epochs=]       the same for a follower
tell broker=              what the controller has committed reaches this broker
sync broker= [batches=]   a follower asks, the leader answers, the answer arrives
ask broker=; deliver broker=; lose broker=                      the same in pieces
fetch replica= epoch= offset= [last-epoch= broker-epoch= to=]   a replica's fetch, made by hand
send broker= records=(2@1,3@2) [hw=]
                          an answer to what this follower asks now, made by hand: batches of one
                          record each, with the epoch of each, as a leader of another house may
append VALUE... [records= acks= producer= producer-epoch= sequence= timeout= to=]
read offset= [from= epoch=]; latest [from=]; epoch-end epoch= [from=]   what a consumer asks
racks 1=east 2=west; nearest rack= offset=                      where a consumer is sent
answer-isr ok|CODE [broker=]    the controller decides, and the leader hears
grant-isr; late-answer          the controller decides, its answer is lost; or comes after all
register broker= [broker-epoch=]; fence broker=; shut-down broker=      the leader hears of it
kill broker= [keeps=]     keeps: the power fails, and all records from that offset on are lost
restart broker=; checkpoint broker=; delete-records below= [broker=]; tick TIME
log; records; compare     ranges and epochs; values; whether all logs agree
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from cotidal.core.partition.effects import AdvanceLogStart
from cotidal.core.partition.follower import (
    Answered,
    LeaderEnds,
    Question,
    follow,
    question,
)
from cotidal.core.partition.leader import ACKS_ALL, IsrAnswered, admit_delete
from cotidal.core.partition.nearest import select_read_replica
from cotidal.core.partition.reading import Granted, admit_fetch, latest_offset
from cotidal.core.trace import line, spans
from cotidal.errors import ErrorCode, Refusal
from cotidal.testing.memory_log import MemoryLog, batch_of
from cotidal.testing.partition_world import (
    FIRST_BROKER_EPOCH,
    Broker,
    FoundLog,
    PartitionWorld,
    Sender,
)
from cotidal.testing.scripts import Command, ScriptError, milliseconds
from cotidal.values import (
    NO_BROKER_EPOCH,
    NO_EPOCH,
    BrokerEpoch,
    EpochEntry,
    LeaderEpoch,
    NodeId,
    Offset,
)


class PartitionCommands:
    """A world that is spoken to in commands."""

    def __init__(self) -> None:
        self.world = PartitionWorld()

    def obey(self, command: Command) -> list[str]:
        on_command = COMMANDS.get(command.name)
        if on_command is None:
            raise ScriptError(f"there is no command '{command.name}'")
        self.world.begin()
        on_command(self.world, command)
        command.finish()
        return self.world.told()


# --- metadata -----------------------------------------------------------------------------------


def on_leader(world: PartitionWorld, command: Command) -> None:
    node_id = NodeId(command.number("broker"))
    before = world.committed
    after = before._replace(
        leader=node_id,
        epoch=LeaderEpoch(command.number("epoch", max(before.epoch, 0))),
        replicas=_nodes(command.numbers("replicas", before.replicas)),
        isr=_nodes(command.numbers("isr", before.isr)),
        min_isr=command.number("min-isr", before.min_isr),
        lag_max_ms=command.milliseconds("lag", f"{before.lag_max_ms}ms"),
    )
    world.commit(after)
    found = _found_log(command, epoch=after.epoch)
    own_start = Offset(command.number("epoch-start", found.end))
    is_new = node_id not in world.brokers
    broker = world.found(node_id, found._replace(end=own_start))
    world.tell_leader(broker)
    if is_new:
        for offset in range(own_start, found.end):
            world.append(broker, (f"r{offset}",), acks=1, quietly=True)


def on_follower(world: PartitionWorld, command: Command) -> None:
    epoch = LeaderEpoch(command.number("epoch"))
    leader = NodeId(command.number("leader"))
    found = _found_log(command, epoch=epoch)
    broker = world.found(NodeId(command.number("broker")), found)
    world.obey(broker, follow(broker.living, leader=leader, epoch=epoch))


def on_tell(world: PartitionWorld, command: Command) -> None:
    broker = world.broker(command.number("broker"))
    told = world.committed
    if told.leader == broker.node_id:
        world.tell_leader(broker)
    else:
        world.obey(broker, follow(broker.living, leader=told.leader, epoch=told.epoch))


# --- replication --------------------------------------------------------------------------------


def on_sync(world: PartitionWorld, command: Command) -> None:
    broker = world.broker(command.number("broker"))
    if world.ask(broker, batches_max=command.number("batches", 1 << 30)):
        world.deliver(broker, broker.inbox.pop())


def on_ask(world: PartitionWorld, command: Command) -> None:
    broker = world.broker(command.number("broker"))
    world.ask(broker, batches_max=command.number("batches", 1 << 30))


def on_deliver(world: PartitionWorld, command: Command) -> None:
    broker = world.broker(command.number("broker"))
    if not broker.inbox:
        raise ScriptError(f"nothing is on its way to broker {broker.node_id}")
    _hear(world, broker, broker.inbox.pop(0))


def _hear(world: PartitionWorld, broker: Broker, answer: Answered | LeaderEnds) -> None:
    world.say(broker.node_id, f"hears {line(answer)}")
    world.deliver(broker, answer)


def on_lose(world: PartitionWorld, command: Command) -> None:
    world.broker(command.number("broker")).inbox.clear()


def on_fetch(world: PartitionWorld, command: Command) -> None:
    leader = _leader(world, command, "to")
    node_id = NodeId(command.number("replica"))
    known = world.registered.get(node_id, NO_BROKER_EPOCH)
    asked = Question(
        leader_epoch=LeaderEpoch(command.number("epoch")),
        offset=Offset(command.number("offset")),
        last_fetched_epoch=LeaderEpoch(command.number("last-epoch", NO_EPOCH)),
        start_offset=Offset(command.number("start", 0)),
    )
    sender = Sender(node_id, BrokerEpoch(command.number("broker-epoch", known)))
    verdict = world.fetched(leader, sender, asked)
    if not isinstance(verdict, Granted):
        world.say(leader.node_id, line(verdict))


def on_send(world: PartitionWorld, command: Command) -> None:
    broker = world.broker(command.number("broker"))
    asked = question(broker.living, world.now)
    if asked is None:
        raise ScriptError(f"broker {broker.node_id} asks nothing")
    sent = MemoryLog(asked.offset)
    for place in command.list_of("records"):
        offset, _, epoch = place.partition("@")
        sent.write(
            batch_of((f"r{offset}",)),
            base_offset=Offset(int(offset)),
            epoch=LeaderEpoch(int(epoch)),
        )
    answer = Answered(
        asked,
        ErrorCode.NONE,
        Offset(command.number("hw", asked.offset)),
        asked.start_offset,
        None,
        sent.read(asked.offset, below=sent.end),
    )
    _hear(world, broker, answer)


# --- clients ------------------------------------------------------------------------------------


def on_append(world: PartitionWorld, command: Command) -> None:
    leader = _leader(world, command, "to")
    acks = command.text_of("acks", "all")
    first = leader.living.next_offset
    count = command.number("records", 0)
    values = tuple(command.words) or tuple(f"r{first + number}" for number in range(count))
    world.append(
        leader,
        values,
        acks=ACKS_ALL if acks == "all" else int(acks),
        producer_id=command.number("producer", -1),
        producer_epoch=command.number("producer-epoch", 0),
        sequence=command.number("sequence", 0),
        timeout_ms=command.milliseconds("timeout", "30s"),
    )


def on_read(world: PartitionWorld, command: Command) -> None:
    broker = _leader(world, command, "from")
    offset = Offset(command.number("offset"))
    verdict = admit_fetch(
        broker.living,
        offset=offset,
        current_epoch=LeaderEpoch(command.number("epoch", NO_EPOCH)),
        last_fetched_epoch=NO_EPOCH,
        isolation_level=0,
        followers_serve=True,
    )
    if not isinstance(verdict, Granted):
        world.say(broker.node_id, line(verdict))
        return
    found = [
        f"{record.offset}={record.value}"
        for record in broker.log.records()
        if offset <= record.offset < verdict.below
    ]
    world.say(broker.node_id, " ".join(found) or "nothing yet")


def on_latest(world: PartitionWorld, command: Command) -> None:
    broker = _leader(world, command, "from")
    found = latest_offset(broker.living, isolation_level=0)
    said = line(found) if isinstance(found, Refusal) else f"latest={found}"
    world.say(broker.node_id, said)


def on_epoch_end(world: PartitionWorld, command: Command) -> None:
    broker = _leader(world, command, "from")
    epoch = LeaderEpoch(command.number("epoch"))
    end = broker.living.epochs.end_of(epoch, log_end=broker.living.end_offset)
    world.say(broker.node_id, f"epoch={end.epoch} end={end.end_offset}")


def on_racks(world: PartitionWorld, command: Command) -> None:
    for node_id in world.committed.replicas:
        world.racks[node_id] = command.text_of(str(node_id), "")


def on_nearest(world: PartitionWorld, command: Command) -> None:
    leader = _leader(world, command, "from")
    found = select_read_replica(
        leader.living,
        client_rack=command.text_of("rack"),
        racks=world.racks,
        offset=Offset(command.number("offset")),
    )
    world.say(leader.node_id, f"read from broker {found}")


# --- the controller -----------------------------------------------------------------------------


def on_answer_isr(world: PartitionWorld, command: Command) -> None:
    leader = _leader(world, command, "broker")
    asked = world.proposal_of(leader)
    (decision,) = command.words
    if decision == "ok":
        world.answer_isr(leader, world.grant(asked))
    else:
        world.answer_isr(leader, IsrAnswered(asked, ErrorCode(int(decision))))


def on_grant_isr(world: PartitionWorld, command: Command) -> None:
    leader = _leader(world, command, "broker")
    world.grant(world.proposal_of(leader))
    world.touch(leader)


def on_late_answer(world: PartitionWorld, command: Command) -> None:
    leader = _leader(world, command, "broker")
    if world.last_grant is None:
        raise ScriptError("the controller has granted nothing")
    world.answer_isr(leader, world.last_grant)


def on_register(world: PartitionWorld, command: Command) -> None:
    node_id = NodeId(command.number("broker"))
    broker = world.brokers.get(node_id)
    known = FIRST_BROKER_EPOCH + node_id if broker is None else broker.broker_epoch
    world.registered[node_id] = BrokerEpoch(command.number("broker-epoch", known))
    world.tell_registrations()


def on_fence(world: PartitionWorld, command: Command) -> None:
    world.registered.pop(NodeId(command.number("broker")), None)
    world.tell_registrations()


# --- faults, disk, time -------------------------------------------------------------------------


def on_kill(world: PartitionWorld, command: Command) -> None:
    broker = world.broker(command.number("broker"))
    keeps = Offset(command.number("keeps", broker.log.end))
    broker.kill(keeps=keeps)
    world.say(broker.node_id, f"down, its disk ends at {broker.log.end}")


def on_restart(world: PartitionWorld, command: Command) -> None:
    broker = world.broker(command.number("broker"))
    broker.broker_epoch = BrokerEpoch(broker.broker_epoch + FIRST_BROKER_EPOCH)
    broker.open()
    world.touch(broker)


def on_checkpoint(world: PartitionWorld, command: Command) -> None:
    broker = world.broker(command.number("broker"))
    broker.log.checkpoint = broker.living.high_watermark
    world.say(broker.node_id, f"checkpoint hw={broker.log.checkpoint}")


def on_delete_records(world: PartitionWorld, command: Command) -> None:
    leader = _leader(world, command, "broker")
    verdict = admit_delete(leader.living, Offset(command.number("below")))
    if isinstance(verdict, Refusal):
        world.say(leader.node_id, line(verdict))
    else:
        world.obey(leader, (AdvanceLogStart(verdict),))


def on_tick(world: PartitionWorld, command: Command) -> None:
    world.tick(milliseconds(command.words[0]))


# --- what there is ------------------------------------------------------------------------------


def on_log(world: PartitionWorld, command: Command) -> None:
    for node_id, broker in sorted(world.brokers.items()):
        world.say(node_id, spans(broker.log.headers) or "empty")


def on_records(world: PartitionWorld, command: Command) -> None:
    for node_id, broker in sorted(world.brokers.items()):
        found = (f"{record.offset}={record.value}" for record in broker.log.records())
        world.say(node_id, " ".join(found) or "empty")


def on_compare(world: PartitionWorld, command: Command) -> None:
    logs = [broker.log for broker in world.brokers.values()]
    start, shared = max(log.start for log in logs), min(log.end for log in logs)
    first, *others = (
        [record for record in log.records() if start <= record.offset < shared] for log in logs
    )
    for other in others:
        for here, there in zip(first, other, strict=True):
            if here != there:
                world.say(None, f"the logs differ from offset {here.offset} on")
                return
    longest = max(log.end for log in logs)
    tail = "" if longest == shared else f"; the longest ends at {longest}"
    world.say(None, f"the logs agree below {shared}{tail}")


COMMANDS: Final[Mapping[str, Callable[[PartitionWorld, Command], None]]] = {
    "leader": on_leader,
    "follower": on_follower,
    "tell": on_tell,
    "sync": on_sync,
    "ask": on_ask,
    "deliver": on_deliver,
    "lose": on_lose,
    "fetch": on_fetch,
    "send": on_send,
    "append": on_append,
    "read": on_read,
    "latest": on_latest,
    "epoch-end": on_epoch_end,
    "racks": on_racks,
    "nearest": on_nearest,
    "answer-isr": on_answer_isr,
    "grant-isr": on_grant_isr,
    "late-answer": on_late_answer,
    "register": on_register,
    "fence": on_fence,
    "shut-down": on_fence,
    "kill": on_kill,
    "restart": on_restart,
    "checkpoint": on_checkpoint,
    "delete-records": on_delete_records,
    "tick": on_tick,
    "log": on_log,
    "records": on_records,
    "compare": on_compare,
}


def _leader(world: PartitionWorld, command: Command, option: str) -> Broker:
    """The broker that is named, or the one that the controller calls leader."""
    return world.broker(command.number(option, world.committed.leader))


def _found_log(command: Command, *, epoch: LeaderEpoch) -> FoundLog:
    """Unless it is said otherwise, everything was written in the epoch before, and committed."""
    start = Offset(command.number("start", 0))
    end = Offset(command.number("end", start))
    epochs: tuple[EpochEntry, ...] = (EpochEntry(LeaderEpoch(max(epoch - 1, 0)), start),)
    if "epochs" in command:
        epochs = tuple(_epoch_entry(text) for text in command.list_of("epochs"))
    return FoundLog(start, end, Offset(command.number("hw", end)), epochs)


def _epoch_entry(text: str) -> EpochEntry:
    epoch, _, start = text.partition("@")
    return EpochEntry(LeaderEpoch(int(epoch)), Offset(int(start)))


def _nodes(numbers: tuple[int, ...]) -> tuple[NodeId, ...]:
    return tuple(NodeId(number) for number in numbers)
