"""A world for scripts: a real controller and brokers with real replicas of orders-0. Shipped.

``controller_world`` decides, ``partition_world`` replicates; here they hear of each other. What the
controller commits reaches every broker at once, unless it is cut off; what a leader proposes is
decided at once. (Answers that are late or lost are for ``partition_world`` alone.) Other topics
have no logs here: they are what the controller knows of them.
"""

from __future__ import annotations

from cotidal.core.cluster.decide.isr import IsrProposal, Member, decide_isr, refuse_sender
from cotidal.core.partition.effects import PartitionEffect, ProposeIsr
from cotidal.core.partition.follower import follow, stop_following
from cotidal.core.partition.leader import IsrAnswered, stop_leading
from cotidal.core.trace import line, state_line
from cotidal.errors import ErrorCode, Refusal
from cotidal.testing.controller_world import BEAT_MS, ControllerWorld
from cotidal.testing.partition_world import PARTITION, Broker, Committed, FoundLog, PartitionWorld
from cotidal.values import NO_NODE, NodeId, Uuid


class ClusterWorld(PartitionWorld):
    def __init__(self) -> None:
        super().__init__()
        self.cluster = ControllerWorld(lambda what: self.say(None, what))
        self.topic_ids: list[Uuid] = []
        """Of each orders that was ever created: the last one is there now, perhaps."""
        self._hosted: Uuid | None = None
        self._proposed: list[tuple[Broker, ProposeIsr]] = []
        self._shown: dict[NodeId, str] = {}

    def told(self) -> list[str]:
        """What happened; then where those brokers stand for whom that has changed."""
        for node_id in sorted(self._touched):
            replica = self.brokers[node_id].replica
            if replica is None:
                self._shown.pop(node_id, None)
                continue
            replica.check()
            state = state_line(replica)
            if self._shown.get(node_id) != state:
                self._shown[node_id] = state
                self.say(node_id, state)
        return [f"{who}: {what}" if who else what for who, what in self._lines]

    def forget_lines(self, beginnings: tuple[str, ...]) -> None:
        """Leave out what begins with one of these words."""
        self._lines = [
            (who, what) for who, what in self._lines if what.split(" ", 1)[0] not in beginnings
        ]

    # --- the controller is heard ----------------------------------------------------------------

    def hear_all(self) -> None:
        """What the controller has committed reaches everyone who can hear it."""
        image = self.cluster.image
        found = image.partition(*PARTITION)
        topic_id = image.topics[PARTITION.topic].topic_id if found is not None else None
        for broker in list(self.brokers.values()):
            if found is None or broker.node_id not in found.replicas or topic_id != self._hosted:
                self._drop(broker)
        self._hosted = topic_id
        if found is None:
            return
        hearing = [node for node in found.replicas if self.cluster.lives[node].is_heard]
        for node_id in hearing:
            self.found(node_id, FoundLog()).broker_epoch = self.cluster.epoch_of(node_id)
        self.registered = {node: each.epoch for node, each in image.brokers.items() if each.active}
        self.committed = Committed(
            leader=found.leader,
            epoch=found.leader_epoch,
            partition_epoch=found.partition_epoch,
            replicas=found.replicas,
            isr=found.isr,
            min_isr=self.cluster.controller.min_isr(PARTITION.topic),
            lag_max_ms=self.committed.lag_max_ms,
        )
        for node_id in hearing:
            if self.brokers[node_id].replica is not None:
                self._hear(self.brokers[node_id])

    def _drop(self, broker: Broker) -> None:
        """It has this partition no more, or the topic is gone: so is its log."""
        if not self.cluster.lives[broker.node_id].is_heard or broker.replica is None:
            return
        self.obey(broker, stop_leading(broker.replica, f"{PARTITION} is not here any more"))
        self.say(broker.node_id, "deletes its log")
        del self.brokers[broker.node_id]
        del self._touched[broker.node_id]
        self._shown.pop(broker.node_id, None)

    def _hear(self, broker: Broker) -> None:
        told, replica = self.committed, broker.living
        if told.leader == broker.node_id:
            self.tell_leader(broker)
        elif told.leader == NO_NODE:
            self.obey(broker, stop_leading(replica, f"{PARTITION} has no leader"))
            stop_following(replica)
        else:
            self.obey(broker, follow(replica, leader=told.leader, epoch=told.epoch))

    # --- the controller is asked ----------------------------------------------------------------

    def obey(self, broker: Broker, effects: tuple[PartitionEffect, ...]) -> None:
        super().obey(broker, effects)
        for effect in effects:
            if isinstance(effect, ProposeIsr):
                self._proposed.append((broker, effect))

    def decide_proposals(self) -> None:
        """Every ISR that was proposed and can be heard is accepted or refused. A leader that cannot
        asks until it can, as long as it wants the same."""
        unheard: list[tuple[Broker, ProposeIsr]] = []
        while self._proposed:
            broker, asked = self._proposed.pop(0)
            if self.cluster.lives[broker.node_id].is_heard:
                self.answer_isr(broker, self._decide(broker, asked))
                self.hear_all()
            elif _still_asks(broker, asked):
                unheard.append((broker, asked))
        self._proposed = unheard

    def _decide(self, broker: Broker, asked: ProposeIsr) -> IsrAnswered:
        controller = self.cluster.controller
        proposal = IsrProposal(
            controller.image.topics[PARTITION.topic].topic_id,
            PARTITION.partition,
            asked.leader_epoch,
            asked.partition_epoch,
            tuple(Member(*member) for member in asked.isr),
        )
        decided = refuse_sender(controller.image, broker.node_id, broker.broker_epoch)
        verdict = decided or decide_isr(controller, broker.node_id, proposal)
        if isinstance(verdict, Refusal):
            self.say(None, line(verdict))
            return IsrAnswered(asked, verdict.error)
        self.cluster.apply(() if verdict.record is None else (verdict.record,))
        if verdict.error is not ErrorCode.NONE:
            return IsrAnswered(asked, verdict.error)
        after = verdict.partition
        return IsrAnswered(
            asked, ErrorCode.NONE, after.leader_epoch, after.partition_epoch, after.isr
        )

    # --- processes ------------------------------------------------------------------------------

    def open_again(self, broker: Broker) -> None:
        """A new process finds its log; it has no role before it hears of one."""
        broker.broker_epoch = self.cluster.epoch_of(broker.node_id)
        broker.open()
        self.touch(broker)

    def copy(self) -> None:
        """Every follower that can asks until it learns nothing more."""
        for _ in range(100):
            before = [self._standing(broker) for broker in self.brokers.values()]
            for _, broker in sorted(self.brokers.items()):
                if broker.replica is None or broker.replica.following is None:
                    continue
                if self.ask(broker, batches_max=1 << 30):
                    self.deliver(broker, broker.inbox.pop())
                    self.decide_proposals()
            if before == [self._standing(broker) for broker in self.brokers.values()]:
                return

    @staticmethod
    def _standing(broker: Broker) -> str:
        return "" if broker.replica is None else state_line(broker.replica)

    def tick(self, passed_ms: int) -> None:
        """In steps of a heartbeat, so that brokers are heard while time passes."""
        left = passed_ms
        while left > 0:
            step = min(BEAT_MS, left)
            left -= step
            super().tick(step)
            self.decide_proposals()
            before = self.cluster.end_offset
            self.cluster.pass_time(step)
            if self.cluster.end_offset != before:
                self.hear_all()


def _still_asks(broker: Broker, asked: ProposeIsr) -> bool:
    leadership = None if broker.replica is None else broker.replica.leadership
    return leadership is not None and leadership.proposal == asked
