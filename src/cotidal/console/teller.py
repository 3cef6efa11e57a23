"""What happens in the sandbox, one plain sentence for each thing that happens.

Told from what can be seen: a node's state before and after a step, the committed metadata, what
clients were answered. Nothing here is a script: a sentence is there because the thing has happened.

``big`` is what a person would tell another; the rest is the steady work of replication.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from cotidal.console.losses import Losses
from cotidal.console.world import Json
from cotidal.core.cluster.image import Partition
from cotidal.core.partition.replica import Leadership, Replica
from cotidal.core.quorum.states import Candidate, Leader, Prospective
from cotidal.errors import ErrorCode
from cotidal.limits import PAGE_ALIKE_MAX
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.produce import ProduceResponse
from cotidal.node.effects import Effect, Respond, Serve, StartOver, TruncateTo
from cotidal.node.events import Event
from cotidal.sim.checkers.ghost import Ghost
from cotidal.sim.checkers.window import hosted_by, quorum_of
from cotidal.sim.process import POWER_LOST, Process, Watcher
from cotidal.sim.workloads.history import Acked
from cotidal.sim.world import World
from cotidal.values import NO_NODE, NodeId, TopicPartition, Uuid
from cotidal.words import counted

FIRST_ALIKE = 3
"""Sentences that stand for many of their kind."""
SHOWN = 6
"""Offsets that are named; the rest is counted."""


class _Seen(NamedTuple):
    """A replica, as it was after the last step."""

    topic_id: Uuid
    end: int
    high_watermark: int
    leads: bool
    epoch: int
    isr: tuple[NodeId, ...]
    proposed: tuple[NodeId, ...] | None


def _seen(replica: Replica) -> _Seen:
    leadership = replica.leadership
    return _Seen(
        replica.topic_id,
        replica.end_offset,
        replica.high_watermark,
        leadership is not None,
        replica.leader_epoch,
        leadership.isr if leadership else (),
        leadership.proposed if leadership else None,
    )


class Teller(Watcher):
    def __init__(self, world: World, ghost: Ghost, losses: Losses, told: list[Json]) -> None:
        self._world = world
        self._ghost = ghost
        self._losses = losses
        self._told = told
        self._replicas: dict[tuple[NodeId, TopicPartition], _Seen] = {}
        self._quorum: dict[NodeId, tuple[type, int, object]] = {}
        self._lost: dict[tuple[TopicPartition, int], None] = {}
        self._summed = 0
        """So far what was told is as it stays."""
        self.after_election: Callable[[], None] = lambda: None

    def say(
        self,
        kind: str,
        text: str,
        *,
        node: int | None = None,
        partition: TopicPartition | None = None,
        big: bool = False,
    ) -> None:
        item: Json = {"at": self._world.now, "kind": kind, "text": text}
        if node is not None:
            item["node"] = node
        if partition is not None:
            item["partition"] = str(partition)
        if big:
            item["big"] = True
        self._told.append(item)

    # Processes

    def on_started(self, process: Process) -> None:
        node = process.node_id
        again = "starts" if process.incarnation == 1 else "starts again and reads its disk"
        self.say("start", f"Broker {node} {again}.", node=node, big=process.incarnation > 1)

    def on_ended(self, process: Process, reason: str) -> None:
        node = process.node_id
        for key in [key for key in self._replicas if key[0] == node]:
            del self._replicas[key]
        self._quorum.pop(node, None)
        match reason:
            case "killed":
                text = f"Broker {node} is killed. Its disk keeps what was written."
            case "stopped":
                text = f"Broker {node} has stopped."
            case _ if reason == POWER_LOST:
                text = f"Broker {node} loses power: what was not synced to its disk may be gone."
            case _:
                text = f"Broker {node} ends: {reason}."
        self.say("kill", text, node=node, big=True)

    def on_wiped(self, node: NodeId) -> None:
        text = f"Broker {node} has a new, empty disk. Everything that it held is gone."
        self.say("wipe", text, node=node, big=True)

    def on_stepped(self, process: Process, event: Event, effects: tuple[Effect, ...]) -> None:
        self._look_at_quorum(process)
        for effect in effects:
            match effect:
                case TruncateTo(partition, offset):
                    self._on_cut(process, partition, offset)
                case StartOver(partition, offset):
                    node = process.node_id
                    text = f"Broker {node} drops its log of {partition} and begins at {offset}."
                    self.say("cut", text, node=node, partition=partition, big=True)
                case Respond(api_key=ApiKey.PRODUCE, message=ProduceResponse() as message):
                    self._look_at_answer(process, message)
                case Serve() if not process.serving:
                    text = f"Broker {process.node_id} is up and serves clients."
                    self.say("start", text, node=process.node_id, big=process.incarnation > 1)
                case _:
                    pass
        hosted_all = hosted_by(process)
        touched = getattr(event, "partition", None)  # one, or it may be any of them
        for partition in hosted_all if touched is None else (touched,):
            hosted = hosted_all.get(partition)
            if hosted is not None:
                self._look_at_replica(process, partition, hosted.replica)
        if len(self._told) - self._summed > PAGE_ALIKE_MAX:
            self._sum_up()
        self._summed = len(self._told)

    def _sum_up(self) -> None:
        """What one step did to very many partitions is told of the first, and counted."""
        new = self._told[self._summed :]
        counts = Counter((item["kind"], item.get("big", False)) for item in new)
        seen: Counter[tuple[str, bool]] = Counter()
        del self._told[self._summed :]
        for item in new:
            alike = (item["kind"], item.get("big", False))
            seen[alike] += 1
            if counts[alike] <= PAGE_ALIKE_MAX or seen[alike] <= FIRST_ALIKE:
                self._told.append(item)
            elif seen[alike] == counts[alike]:
                rest = counts[alike] - FIRST_ALIKE
                text = f"And so for {rest} more, up to {item.get('partition', 'the last')}."
                self._told.append(item | {"text": text})

    # Replicas

    def _look_at_replica(
        self, process: Process, partition: TopicPartition, replica: Replica
    ) -> None:
        key = (process.node_id, partition)
        after = _seen(replica)
        before = self._replicas.get(key)
        if before == after:
            return
        self._replicas[key] = after
        if before is None or before.topic_id != after.topic_id:
            return  # new here, or another topic of the same name
        if after.end > before.end:
            self._on_written(process.node_id, partition, replica, before.end)
        if after.proposed is not None and after.proposed != before.proposed:
            self._on_proposed(process, partition, replica)
        if after.leads and not before.leads:
            self._on_leads(process.node_id, partition, replica)
        elif before.leads and not after.leads:
            text = f"Broker {process.node_id} leads {partition} no more."
            self.say("elect", text, node=process.node_id, partition=partition)
        if after.high_watermark != before.high_watermark:
            self._on_watermark(process.node_id, partition, replica, before.high_watermark)

    def _on_written(
        self, node: NodeId, partition: TopicPartition, replica: Replica, before: int
    ) -> None:
        what = _span(before, replica.end_offset)
        if replica.leadership is not None:
            text = (
                f"Broker {node}, the leader, writes offset {what} of {partition}:"
                " not committed yet."
            )
            self.say("append", text, node=node, partition=partition)
        elif replica.following is not None:
            leader = replica.following.leader
            text = f"Broker {node} copies offset {what} of {partition} from broker {leader}."
            self.say("copy", text, node=node, partition=partition)

    def _on_watermark(
        self, node: NodeId, partition: TopicPartition, replica: Replica, before: int
    ) -> None:
        now = replica.high_watermark
        leadership = replica.leadership
        if leadership is None:
            text = f"Broker {node} hears that everything of {partition} below {now} is committed."
            if now < before:
                text = (
                    f"Broker {node} hears of a lower high watermark of {partition}, {now} after"
                    f" {before}: its new leader does not know better yet."
                )
            self.say("learn", text, node=node, partition=partition, big=now < before)
            return
        all_hold = f"All of the ISR ({ids(leadership.isr)}) hold {partition} below {now}"
        text = f"{all_hold}: the high watermark moves from {before} to {now}, consumers may read."
        self.say("commit", text, node=node, partition=partition)

    def _on_leads(self, node: NodeId, partition: TopicPartition, replica: Replica) -> None:
        leadership = replica.leadership
        assert leadership is not None
        text = (
            f"Broker {node} leads {partition} in epoch {leadership.epoch}, from offset"
            f" {leadership.epoch_start} on; the high watermark it knows is"
            f" {replica.high_watermark}."
        )
        self.say("elect", text, node=node, partition=partition, big=leadership.epoch > 0)

    def _on_proposed(self, process: Process, partition: TopicPartition, replica: Replica) -> None:
        leadership = replica.leadership
        assert leadership is not None
        assert leadership.proposed is not None
        proposed, node = leadership.proposed, process.node_id
        gone = [each for each in leadership.isr if each not in proposed]
        new = [each for each in proposed if each not in leadership.isr]
        if gone:
            why = "; ".join(self._behind(process, leadership, replica, each) for each in gone)
            text = f"{why}: broker {node} asks the controller to shrink the ISR to {ids(proposed)}."
        else:
            text = (
                f"Broker {ids(new)} has caught up with {partition}: broker {node} asks the"
                f" controller for the ISR {ids(proposed)}, and waits for all of them from now on."
            )
        self.say("propose", text, node=node, partition=partition, big=True)

    def _behind(
        self, process: Process, leadership: Leadership, replica: Replica, node: NodeId
    ) -> str:
        progress = leadership.followers[node]
        now = process.machine.clock.monotonic(self._world.now)
        seconds = (now - progress.last_caught_up) / 1000
        records = max(0, replica.end_offset - max(progress.end_offset, 0))
        return f"Broker {node} was behind by {counted(records, 'record')} for {seconds:.1f} s"

    def _on_cut(self, process: Process, partition: TopicPartition, offset: int) -> None:
        node = process.node_id
        held = hosted_by(process)[partition].replica
        known = self._replicas.get((node, partition))
        end = max(held.end_offset, known.end if known else 0)
        gone = _span(offset, end) if end > offset else "nothing"
        text = (
            f"Broker {node}'s log of {partition} parted from its leader's at {offset}: it cuts"
            f" {gone}."
        )
        self.say("cut", text, node=node, partition=partition, big=True)
        self.tell_losses()

    def tell_losses(self) -> None:
        """Of what was acknowledged by a leader alone; acks=all is a promise, and judged as one."""
        by_partition: dict[TopicPartition, list[int]] = {}
        for lost in self._losses.found():
            if lost.acks == "1" and (lost.partition, lost.offset) not in self._lost:
                self._lost[lost.partition, lost.offset] = None
                by_partition.setdefault(lost.partition, []).append(lost.offset)
        for partition, offsets in by_partition.items():
            text = (
                f"Lost: {counted(len(offsets), 'record')} of {partition} that acks=1 had"
                f" acknowledged (offset {listed(offsets)}). acks=1 promised nothing more."
            )
            self.say("lost", text, partition=partition, big=True)

    # The controller

    def on_partition_changed(
        self, partition: TopicPartition, before: Partition, after: Partition
    ) -> None:
        if partition.topic.startswith("__"):
            return
        if after.leader_epoch != before.leader_epoch:
            self._on_election(partition, before, after)
        elif after.isr != before.isr or after.elr != before.elr:
            verb = "grows" if len(after.isr) > len(before.isr) else "shrinks"
            text = f"Committed: the ISR of {partition} {verb} to {ids(after.isr)}."
            if after.elr and after.elr != before.elr:
                text = f"{text[:-1]}; {ids(after.elr)} may still be elected (ELR)."
            self.say("isr", text, partition=partition, big=True)

    def _on_election(self, partition: TopicPartition, before: Partition, after: Partition) -> None:
        if after.leader == NO_NODE:
            text = (
                f"No replica of {partition} that is sure to hold everything is alive: it has no"
                f" leader, epoch {after.leader_epoch}."
            )
        elif after.leader == before.leader:
            text = f"Broker {after.leader} leads {partition} on, in epoch {after.leader_epoch}."
        else:
            why = _why_elected(before, after)
            text = (
                f"The controller elects broker {after.leader} leader of {partition} in epoch"
                f" {after.leader_epoch}{why}; the ISR is {ids(after.isr)}."
            )
        self.say("elect", text, node=after.leader, partition=partition, big=True)
        self.after_election()

    def on_fenced(self, node_id: NodeId) -> None:
        text = f"The controller fences broker {node_id}: it has not been heard, and leads nothing."
        self.say("fence", text, node=node_id, big=True)

    def on_registered(self, node_id: NodeId) -> None:
        self.say("register", f"Broker {node_id} registers with the controller.", node=node_id)

    def on_unregistered(self, node_id: NodeId) -> None:
        self.say("register", f"Broker {node_id} is unregistered.", node=node_id)

    def _look_at_quorum(self, process: Process) -> None:
        state = quorum_of(process)
        node = process.node_id
        after = (type(state.role), state.epoch, state.voted)
        before = self._quorum.get(node)
        if before == after:
            return
        self._quorum[node] = after
        if before is None:
            return
        role = state.role
        if isinstance(role, Leader) and before[0] is not Leader:
            text = f"Node {node} has a majority: it is the active controller of term {state.epoch}."
            self.say("quorum", text, node=node, big=True)
        elif isinstance(role, Candidate) and before[0] is not Candidate:
            text = f"Node {node} stands for term {state.epoch} and asks for votes."
            self.say("quorum", text, node=node, big=True)
        elif isinstance(role, Prospective) and before[0] is not Prospective:
            text = f"Node {node} hears from no active controller: it asks if it could win."
            self.say("quorum", text, node=node, big=True)
        elif state.voted is not None and state.voted.node_id != node and before[2] != state.voted:
            text = f"Node {node} votes for node {state.voted.node_id} in term {state.epoch}."
            self.say("quorum", text, node=node)

    # Clients

    def on_acked(self, acked: Acked, level: str) -> None:
        took = (acked.moment_us - acked.made_us) / 1000
        text = (
            f"The producer hears that offset {acked.offset} of {acked.partition} is written"
            f" (acks={level}), after {took:.1f} ms."
        )
        self.say("ack", text, partition=acked.partition)

    def _look_at_answer(self, process: Process, message: ProduceResponse) -> None:
        names = self._ghost.image.topic_names
        for topic in message.responses:
            name = topic.name or names.get(topic.topic_id, "")
            for told in topic.partition_responses:
                if told.error_code:
                    partition = TopicPartition(name, told.partition_index)
                    self._on_refused(process, partition, ErrorCode(told.error_code))

    def _on_refused(self, process: Process, partition: TopicPartition, error: ErrorCode) -> None:
        node = process.node_id
        hosted = hosted_by(process).get(partition)
        leadership = None if hosted is None else hosted.replica.leadership
        why = ""
        if error is ErrorCode.NOT_ENOUGH_REPLICAS and leadership is not None:
            why = f": {len(leadership.isr)} in the ISR, and min ISR is {leadership.min_isr}"
        text = f"Broker {node} refuses a write to {partition} with {error.name}{why}."
        self.say("refuse", text, node=node, partition=partition, big=True)


def _why_elected(before: Partition, after: Partition) -> str:
    if after.leader in before.isr:
        return ", from the ISR"
    if after.leader in before.elr:
        return ", from the eligible replicas (ELR)"
    if after.leader in before.last_known_elr:
        return ", as the last known leader"
    return ", UNCLEANLY: it may lack what was acknowledged"


def _span(first: int, below: int) -> str:
    return str(first) if below == first + 1 else f"{first} to {below - 1}"


def ids(nodes: Iterable[int]) -> str:
    return ", ".join(map(str, nodes)) or "nobody"


def listed(offsets: list[int]) -> str:
    shown = ", ".join(map(str, offsets[:SHOWN]))
    return shown if len(offsets) <= SHOWN else f"{shown} and {len(offsets) - SHOWN} more"
