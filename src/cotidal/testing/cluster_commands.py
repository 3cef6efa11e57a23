"""The words in which a script speaks to a cluster_world. Shipped.

cluster brokers= [racks= elr=off lag=]         formatted, and these brokers are in
create TOPIC replicas=(1,2,3) [SETTING=VALUE]  more partitions: replicas=(1,2,3;2,3,1)
delete TOPIC; set TOPIC SETTING=VALUE          set without a topic: for the whole cluster, or with
                           broker= for one; VALUE removed takes it away
append ...; read ...; latest ...; nearest ...; sync ...; ask ...; deliver ...; lose ...; fetch ...;
log; records; compare      as in partition_commands
copy                       every follower asks its leader until it learns nothing more
kill broker= [keeps=] [unseen]
                           kill -9: the controller's next connection is refused (unseen: it makes
                           none). keeps: the power fails instead: records from there on are lost,
                           and nobody refuses
start broker=              a new process: opens its log, registers, catches up, is unfenced
register broker= [after=]; beat broker= [applied=] [shutdown]
                           the last two of these by themselves; after: so much later, and the
                           controller has not looked at sessions meanwhile; applied: the last
                           offset of the metadata log that the broker has applied
stop broker=               a controlled shutdown
cut broker=; heal broker=  the way between this broker and the controller
propose isr= [from= broker-epoch= epoch= partition-epoch= seen=(1@12,2@14) topic-id=]
                           an AlterPartition made by hand; broker-epoch: in which life of its sender
                           it was sent; seen: the broker epochs of its members
elect preferred|unclean TOPIC-N; reassign TOPIC-N to=(3,4)|cancel; unregister broker=
new-controller             the active controller fails over: the next one has heard nobody yet
tick TIME                  brokers beat, sessions end, leaders shrink their ISR, duties are done
partitions; metadata [from=]                   what the controller knows; the metadata log
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from cotidal.core.cluster.decide.brokers import decide_unregister
from cotidal.core.cluster.decide.configs import (
    DELETE,
    SET,
    ConfigChange,
    decide_incremental_alter,
)
from cotidal.core.cluster.decide.elections import decide_election
from cotidal.core.cluster.decide.isr import IsrProposal, Member, decide_isr, refuse_sender
from cotidal.core.cluster.decide.leaders import Election
from cotidal.core.cluster.decide.reassignment import decide_reassign
from cotidal.core.cluster.decide.topics import NewTopic, decide_create_topic, decide_delete_topic
from cotidal.core.cluster.image import BROKER_RESOURCE, CLUSTER_DEFAULT, TOPIC_RESOURCE
from cotidal.core.trace import line, partition_words
from cotidal.errors import Refusal
from cotidal.testing import partition_commands as partition
from cotidal.testing.cluster_world import ClusterWorld
from cotidal.testing.controller_world import BrokerLife
from cotidal.testing.partition_world import PARTITION
from cotidal.testing.scripts import Command, ScriptError, milliseconds
from cotidal.values import (
    NO_NODE,
    BrokerEpoch,
    LeaderEpoch,
    Millis,
    NodeId,
    Offset,
    PartitionEpoch,
)

_TOLD_OF_COPYING: Final = ("ask", "answer", "append", "complete-acks", "isr-answered")
"""What everyone says while copying, and nobody wants to read again and again."""


class ClusterCommands:
    """A world that is spoken to in commands."""

    def __init__(self) -> None:
        self.world = ClusterWorld()

    def obey(self, command: Command) -> list[str]:
        on_command = COMMANDS.get(command.name)
        if on_command is None:
            raise ScriptError(f"there is no command '{command.name}'")
        world = self.world
        world.begin()
        on_command(world, command)
        command.finish()
        world.hear_all()
        world.decide_proposals()
        return world.told()


# --- the cluster --------------------------------------------------------------------------------


def on_cluster(world: ClusterWorld, command: Command) -> None:
    racks = command.list_of("racks") if "racks" in command else []
    numbers = command.numbers("brokers")
    world.committed = world.committed._replace(lag_max_ms=command.milliseconds("lag", "10s"))
    lives = [
        BrokerLife(NodeId(number), racks[place] if racks else None)
        for place, number in enumerate(numbers)
    ]
    world.racks = {life.node_id: life.rack or "" for life in lives}
    world.cluster.found_cluster(lives, elr=command.text_of("elr", "on") == "on")


def on_create(world: ClusterWorld, command: Command) -> None:
    (name,) = command.words
    inside = command.text_of("replicas").removeprefix("(").removesuffix(")")
    replicas = [tuple(map(int, each.split(","))) for each in inside.split(";")]
    topic = NewTopic(
        name,
        assignments=tuple(enumerate(replicas)),
        configs=tuple(command.rest().items()),
    )
    created = decide_create_topic(world.cluster.controller, topic)
    if not isinstance(created, Refusal) and name == PARTITION.topic:
        world.topic_ids.append(created.topic_id)
    world.cluster.apply(created if isinstance(created, Refusal) else created.records)


def on_delete(world: ClusterWorld, command: Command) -> None:
    (name,) = command.words
    topic = world.cluster.image.topics[name]
    world.cluster.apply(decide_delete_topic(world.cluster.controller, topic.topic_id))


def on_set(world: ClusterWorld, command: Command) -> None:
    resource = (TOPIC_RESOURCE, command.words[0]) if command.words else CLUSTER_DEFAULT
    if "broker" in command:
        resource = (BROKER_RESOURCE, command.text_of("broker"))
    changes = tuple(
        ConfigChange(name, DELETE, None) if value == "removed" else ConfigChange(name, SET, value)
        for name, value in command.rest().items()
    )
    decided = decide_incremental_alter(world.cluster.controller, resource, changes)
    world.cluster.apply(decided)


def on_propose(world: ClusterWorld, command: Command) -> None:
    image = world.cluster.image
    sender = NodeId(command.number("from", world.committed.leader))
    seen = dict(each.split("@") for each in command.list_of("seen")) if "seen" in command else {}
    known = world.topic_ids[int(command.text_of("topic-id", str(len(world.topic_ids) - 1)))]
    asked = IsrProposal(
        known,
        PARTITION.partition,
        LeaderEpoch(command.number("epoch", world.committed.epoch)),
        PartitionEpoch(command.number("partition-epoch", world.committed.partition_epoch)),
        tuple(
            Member(
                NodeId(each),
                BrokerEpoch(int(seen.get(str(each), image.brokers[NodeId(each)].epoch))),
            )
            for each in command.numbers("isr")
        ),
    )
    life = BrokerEpoch(command.number("broker-epoch", image.brokers[sender].epoch))
    verdict = refuse_sender(image, sender, life) or decide_isr(
        world.cluster.controller, sender, asked
    )
    if isinstance(verdict, Refusal):
        world.cluster.apply(verdict)
    elif verdict.record is None:
        world.say(None, line(verdict))
    else:
        world.cluster.apply((verdict.record,))


def on_elect(world: ClusterWorld, command: Command) -> None:
    kind, where = command.words
    name, number = _partition(where)
    election = Election(kind)
    world.cluster.apply(decide_election(world.cluster.controller, name, number, election))


def on_reassign(world: ClusterWorld, command: Command) -> None:
    where = command.words[0]
    name, number = _partition(where)
    target = None
    if "cancel" not in command.words:
        target = tuple(NodeId(each) for each in command.numbers("to"))
    world.cluster.apply(decide_reassign(world.cluster.controller, name, number, target))


def on_unregister(world: ClusterWorld, command: Command) -> None:
    node_id = NodeId(command.number("broker"))
    world.cluster.apply(decide_unregister(world.cluster.controller, node_id))


def on_new_controller(world: ClusterWorld, command: Command) -> None:
    """A new controller probes whoever is unfenced; where nobody listens, it is told so."""
    world.cluster.take_over()
    for probe in world.cluster.probes:
        world.say(None, line(probe))
    for probe in world.cluster.probes:
        life = world.cluster.lives[probe.node_id]
        if not life.is_running:
            world.cluster.refuse(life)


# --- brokers ------------------------------------------------------------------------------------


def on_kill(world: ClusterWorld, command: Command) -> None:
    life = world.cluster.life(command.number("broker"))
    life.is_running = False
    broker = world.brokers.get(life.node_id)
    is_seen = "keeps" not in command and "unseen" not in command.words
    if broker is not None:
        broker.kill(keeps=Offset(command.number("keeps", broker.log.end)))
        world.touch(broker)
        world.say(life.node_id, f"down, its disk ends at {broker.log.end}")
    if is_seen:
        world.cluster.refuse(life)


def on_register(world: ClusterWorld, command: Command) -> None:
    life = world.cluster.life(command.number("broker"))
    world.cluster.now = Millis(world.cluster.now + command.milliseconds("after", "0ms"))
    if world.cluster.register(life) and life.node_id in world.brokers:
        world.open_again(world.brokers[life.node_id])


def on_beat(world: ClusterWorld, command: Command) -> None:
    life = world.cluster.life(command.number("broker"))
    applied = Offset(command.number("applied", world.cluster.end_offset - 1))
    stops = "shutdown" in command.words
    decided = world.cluster.beat(life, applied=applied, wants_shutdown=stops)
    if decided is not None:
        world.say(life.node_id, f"is told: {line(decided).partition(' ')[2]}")


def on_start(world: ClusterWorld, command: Command) -> None:
    number = command.number("broker")
    on_register(world, Command(f"register broker={number}"))
    world.cluster.beat(world.cluster.life(number))


def on_stop(world: ClusterWorld, command: Command) -> None:
    life = world.cluster.life(command.number("broker"))
    world.cluster.stop(life)
    broker = world.brokers.get(life.node_id)
    if broker is not None:
        broker.kill(keeps=broker.log.end)
        world.touch(broker)
        world.say(life.node_id, "stopped, its log is flushed")


def on_cut(world: ClusterWorld, command: Command) -> None:
    world.cluster.life(command.number("broker")).is_cut = True


def on_heal(world: ClusterWorld, command: Command) -> None:
    life = world.cluster.life(command.number("broker"))
    life.is_cut = False
    world.cluster.beat(life)


# --- data, time, what there is ------------------------------------------------------------------


def on_copy(world: ClusterWorld, command: Command) -> None:
    world.copy()
    world.forget_lines(_TOLD_OF_COPYING)


def on_tick(world: ClusterWorld, command: Command) -> None:
    world.tick(milliseconds(command.words[0]))


def on_partitions(world: ClusterWorld, command: Command) -> None:
    for topic in world.cluster.image.topics.values():
        for number, found in topic.partitions.items():
            world.say(None, f"{topic.name}-{number}: {partition_words(found)}")


def on_metadata(world: ClusterWorld, command: Command) -> None:
    first = command.number("from", 0)
    for offset, told in enumerate(world.cluster.log[first:], first):
        world.say(None, f"[{offset}] {told}")


_Do = Callable[[ClusterWorld, Command], None]


def _by_client(do: _Do, option: str) -> _Do:
    """A client asks whoever it knows as leader: there may be none, or it may be gone."""

    def ask(world: ClusterWorld, command: Command) -> None:
        leader = world.committed.leader
        if option in command or (leader in world.brokers and world.brokers[leader].replica):
            do(world, command)
            return
        gone = "nobody leads" if leader == NO_NODE else f"broker {leader} does not answer for"
        world.say(None, f"{gone} {PARTITION}: the client has to retry")
        command.rest()

    return ask


COMMANDS: Final[Mapping[str, _Do]] = {
    "cluster": on_cluster,
    "create": on_create,
    "delete": on_delete,
    "set": on_set,
    "propose": on_propose,
    "elect": on_elect,
    "reassign": on_reassign,
    "unregister": on_unregister,
    "new-controller": on_new_controller,
    "kill": on_kill,
    "register": on_register,
    "beat": on_beat,
    "start": on_start,
    "stop": on_stop,
    "cut": on_cut,
    "heal": on_heal,
    "copy": on_copy,
    "tick": on_tick,
    "partitions": on_partitions,
    "metadata": on_metadata,
    "append": _by_client(partition.on_append, "to"),
    "read": _by_client(partition.on_read, "from"),
    "latest": _by_client(partition.on_latest, "from"),
    "sync": partition.on_sync,
    "ask": partition.on_ask,
    "deliver": partition.on_deliver,
    "lose": partition.on_lose,
    "fetch": partition.on_fetch,
    "nearest": _by_client(partition.on_nearest, "from"),
    "log": partition.on_log,
    "records": partition.on_records,
    "compare": partition.on_compare,
}


def _partition(text: str) -> tuple[str, int]:
    name, _, number = text.rpartition("-")
    return name, int(number)
