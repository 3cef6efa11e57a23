"""Any sequence of decisions keeps what must hold of an image, and its records say all of it.

After each decision (spec, safety 1 and 9):
  - epochs never go back; the leader epoch grows whenever the leader changes
  - the ISR and the ELR are disjoint parts of the replicas, a leader is in the ISR
  - with ELR on nobody fenced is in an ISR, and a full ISR leaves nobody eligible
  - the records so far, replayed from nothing, make an equal image
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cotidal.core.cluster.controller import Controller
from cotidal.core.cluster.decide.brokers import (
    Heartbeat,
    Registration,
    decide_controlled_shutdown,
    decide_fence,
    decide_heartbeat,
    decide_register,
    decide_unfence,
    decide_unregister,
)
from cotidal.core.cluster.decide.configs import SET, ConfigChange, decide_incremental_alter
from cotidal.core.cluster.decide.features import bootstrap_records
from cotidal.core.cluster.decide.leaders import elect_leaderless
from cotidal.core.cluster.decide.topics import (
    NewTopic,
    decide_create_partitions,
    decide_create_topic,
    decide_delete_topic,
)
from cotidal.core.cluster.image import BROKER_RESOURCE, ELR_VERSION, Endpoint, Image, check
from cotidal.core.machine import Entropy
from cotidal.errors import Refusal
from cotidal.messages.records.metadata import FeatureLevelRecord
from cotidal.values import NO_NODE, BrokerEpoch, NodeId, Uuid

brokers = st.sampled_from([NodeId(1), NodeId(2), NodeId(3), NodeId(4)])
topics = st.sampled_from(["a", "b", "c.d", "c_d"])


class Decisions(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.controller = Controller(Image(), Entropy(3), {}, node_id=1)
        self.written: list = []
        self.lives = 0

    @property
    def image(self) -> Image:
        return self.controller.image

    def write(self, decided) -> None:
        """Append a whole batch, and compare each partition before and after it."""
        if isinstance(decided, Refusal):
            return
        before = self.image.copy()
        for record in decided:
            self.image.replay(record)
            self.written.append(record)
        for topic in before.topics.values():
            now = self.image.topic_by_id(topic.topic_id)
            for number, old in topic.partitions.items() if now is not None else ():
                new = now.partitions[number]
                assert new.leader_epoch >= old.leader_epoch
                assert new.partition_epoch >= old.partition_epoch
                if new != old:
                    assert new.partition_epoch > old.partition_epoch
                if new.leader != old.leader:
                    assert new.leader_epoch > old.leader_epoch
        for node_id, broker in before.brokers.items():
            if node_id in self.image.brokers:
                assert self.image.brokers[node_id].epoch >= broker.epoch

    @initialize(elr=st.booleans(), min_isr=st.integers(1, 3))
    def begin(self, elr: bool, min_isr: int) -> None:
        self.write(bootstrap_records(self.controller))
        if not elr:
            self.write((FeatureLevelRecord(ELR_VERSION, 0),))
        self.set_min_isr(min_isr)
        for node_id in (1, 2, 3):
            self.restart(NodeId(node_id), clean=False)
            self.unfence(NodeId(node_id))

    @rule(node_id=brokers, clean=st.booleans())
    def restart(self, node_id: NodeId, clean: bool) -> None:
        self.lives += 1
        old = self.image.brokers.get(node_id)
        asked = Registration(
            node_id=node_id,
            incarnation_id=Uuid(self.lives.to_bytes(16, "big")),
            endpoints=(Endpoint("PLAINTEXT", "h", 9092),),
            rack=None,
            previous_epoch=old.epoch if clean and old is not None else BrokerEpoch(-1),
        )
        self.write(decide_register(self.controller, asked, epoch=BrokerEpoch(len(self.written))))

    @rule(node_id=brokers)
    def unfence(self, node_id: NodeId) -> None:
        self.write(decide_unfence(self.controller, node_id))

    @rule(node_id=brokers)
    def fence(self, node_id: NodeId) -> None:
        self.write(decide_fence(self.controller, node_id))

    @rule(node_id=brokers)
    def unregister(self, node_id: NodeId) -> None:
        self.write(decide_unregister(self.controller, node_id))

    @rule(node_id=brokers)
    def shut_down(self, node_id: NodeId) -> None:
        if node_id in self.image.brokers:
            self.write(decide_controlled_shutdown(self.controller, node_id))

    @rule(node_id=brokers, fence=st.booleans(), leave=st.booleans(), knows=st.booleans())
    def beat(self, node_id: NodeId, fence: bool, leave: bool, knows: bool) -> None:
        broker = self.image.brokers.get(node_id)
        epoch = BrokerEpoch(0) if broker is None else broker.epoch
        beat = Heartbeat(node_id, epoch, len(self.written), fence, leave)
        decided = decide_heartbeat(self.controller, beat, everyone_knows=knows)
        if not isinstance(decided, Refusal):
            self.write(decided.records)

    @rule(name=topics, partitions=st.integers(1, 3), replicas=st.integers(1, 4))
    def create(self, name: str, partitions: int, replicas: int) -> None:
        created = decide_create_topic(self.controller, NewTopic(name, partitions, replicas))
        self.write(created if isinstance(created, Refusal) else created.records)

    @rule(name=topics, count=st.integers(1, 5))
    def create_partitions(self, name: str, count: int) -> None:
        self.write(decide_create_partitions(self.controller, name, count=count))

    @precondition(lambda self: self.image.topics)
    @rule(data=st.data())
    def delete(self, data) -> None:
        name = data.draw(st.sampled_from(sorted(self.image.topics)))
        self.write(decide_delete_topic(self.controller, self.image.topics[name].topic_id))

    @rule(min_isr=st.integers(1, 3))
    def set_min_isr(self, min_isr: int) -> None:
        change = ConfigChange("min.insync.replicas", SET, str(min_isr))
        self.write(decide_incremental_alter(self.controller, (BROKER_RESOURCE, ""), (change,)))

    @rule(allowed=st.booleans())
    def allow_unclean(self, allowed: bool) -> None:
        change = ConfigChange("unclean.leader.election.enable", SET, str(allowed).lower())
        self.write(decide_incremental_alter(self.controller, (BROKER_RESOURCE, ""), (change,)))
        self.write(tuple(elect_leaderless(self.controller)))

    @invariant()
    def image_is_sound(self) -> None:
        check(self.image)
        for name, topic in self.image.topics.items():
            for partition in topic.partitions.values():
                enough = min(self.controller.min_isr(name), len(partition.replicas))
                assert not (partition.elr and len(partition.isr) >= enough)
                if partition.leader != NO_NODE:
                    assert self.image.is_active(partition.leader)
                    assert not partition.last_known_elr
                elif self.image.elr_enabled:
                    eligible = partition.isr or partition.elr
                    assert not any(self.image.is_active(node) for node in eligible)

    @invariant()
    def records_say_all_of_it(self) -> None:
        again = Image()
        for record in self.written:
            again.replay(record)
        assert again == self.image
        from_snapshot = Image()
        for record in self.image.records():
            from_snapshot.replay(record)
        assert from_snapshot == self.image


TestDecisions = Decisions.TestCase
TestDecisions.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


@pytest.mark.parametrize("seed", range(20))
def test_long_walk_keeps_the_image_sound(seed):
    """Hypothesis tries short odd sequences and shrinks them; this one gets deep."""
    dice = Entropy(seed)
    walk = Decisions()
    walk.begin(elr=seed % 4 != 0, min_isr=1 + dice.below(3))
    for step in range(300):
        node_id, flip = NodeId(1 + dice.below(4)), dice.below(2) == 1
        match dice.below(16):
            case 0 | 1:
                walk.restart(node_id, clean=flip)
            case 2 | 3 | 4 | 5:
                walk.unfence(node_id)
            case 6 | 7:
                walk.fence(node_id)
            case 8:
                walk.beat(node_id, fence=flip, leave=dice.below(2) == 1, knows=flip)
            case 9 | 10 | 11:
                walk.create("abcd"[dice.below(4)], 1 + dice.below(3), 1 + dice.below(4))
            case 12:
                walk.create_partitions("abcd"[dice.below(4)], 1 + dice.below(5))
            case 13:
                walk.set_min_isr(1 + dice.below(3))
            case 14:
                walk.allow_unclean(dice.below(8) == 0)
            case 15:
                if walk.image.topics and flip:
                    name = sorted(walk.image.topics)[dice.below(len(walk.image.topics))]
                    topic_id = walk.image.topics[name].topic_id
                    walk.write(decide_delete_topic(walk.controller, topic_id))
                else:
                    walk.unregister(node_id)
        walk.image_is_sound()
        if step % 100 == 99:
            walk.records_say_all_of_it()
