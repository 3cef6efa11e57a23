"""Any sequence of decisions keeps what must hold of an image, and its records say all of it.

After each decision (spec, safety 1, 9 and 14):
  - epochs never go back; the partition epoch grows with each change, the leader epoch exactly when
    the leader changes or the replicas lose a member
  - the ISR and the ELR are disjoint parts of the replicas, a leader is in the ISR and active
  - with ELR on nobody fenced is in an ISR, a full ISR leaves nobody eligible, and somebody is
    always left to wait for; with ELR off no ISR is empty
  - whoever enters an ISR was proposed in its present life by the present leader, or was elected
  - whoever enters an ELR was in the ISR; whoever restarts uncleanly is in neither
  - whoever leads was in the ISR or the ELR, or the election was unclean: by permission, by hand, or
    of the last known leader; and it is marked
  - a partition is without a leader only while nobody may lead it
  - a reassignment whose target is in sync is over
  - the records so far, replayed from nothing, make an equal image
"""

from __future__ import annotations

import json
from collections.abc import Iterable

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
from cotidal.core.cluster.decide.directories import Housed, decide_assign
from cotidal.core.cluster.decide.elections import (
    decide_election,
    decide_leaderless,
    decide_preferred,
)
from cotidal.core.cluster.decide.features import (
    SAFE_DOWNGRADE,
    UPGRADE,
    FeatureUpdate,
    bootstrap_records,
    decide_features,
)
from cotidal.core.cluster.decide.isr import IsrProposal, Member, decide_isr
from cotidal.core.cluster.decide.leaders import Election, acceptable_in
from cotidal.core.cluster.decide.reassignment import decide_reassign
from cotidal.core.cluster.decide.topics import (
    NewTopic,
    decide_create_partitions,
    decide_create_topic,
    decide_delete_topic,
)
from cotidal.core.cluster.image import (
    BROKER_RESOURCE,
    ELR_VERSION,
    RECOVERED,
    RECOVERING,
    Endpoint,
    Image,
    Partition,
    check,
)
from cotidal.core.machine import Entropy
from cotidal.core.trace import tell_record
from cotidal.errors import Refusal
from cotidal.messages.records.metadata import FeatureLevelRecord, PartitionChangeRecord
from cotidal.values import NO_BROKER_EPOCH, NO_NODE, BrokerEpoch, NodeId, Uuid

NODES = [NodeId(1), NodeId(2), NodeId(3), NodeId(4)]
brokers = st.sampled_from(NODES)
topics = st.sampled_from(["a", "b", "c.d", "c_d"])
picks = st.integers(0, 50)


def directory(node_id: int, which: int) -> Uuid:
    return Uuid(bytes([node_id, which] * 8))


def allowed_to_enter(old: Partition, new: Partition, proposed: Iterable[NodeId]) -> bool:
    """Invariant 14."""
    entered = [member for member in new.isr if member not in old.isr]
    elected = new.isr == (new.leader,) and new.leader_epoch > old.leader_epoch
    return elected or all(member in proposed for member in entered)


class Decisions(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.controller = Controller(Image(), Entropy(3), {}, node_id=1)
        self.written: list = []
        self.lives = 0
        self.seen: set[str] = set()
        """What has happened on this walk: a walk that never gets anywhere proves nothing."""
        self.lost_last_known = False
        """A last known leader came back without its log: then nobody may be left."""

    @property
    def image(self) -> Image:
        return self.controller.image

    def write(self, decided, *, proposed: Iterable[NodeId] = (), by_hand: bool = False) -> None:
        """Append a whole batch, and compare each partition before and after it."""
        if isinstance(decided, Refusal):
            self.seen.add(decided.error.name)
            return
        before = self.image.copy()
        elr = before.elr_enabled
        for record in decided:
            self.image.replay(record)
            self.written.append(record)
        for topic in before.topics.values():
            now = self.image.topic_by_id(topic.topic_id)
            for number, old in topic.partitions.items() if now is not None else ():
                new = now.partitions[number]
                self.compare(old, new, proposed)
                if new.leader not in (old.leader, NO_NODE):
                    self.compare_leaders(topic.name, old, new, proposed, by_hand)
                if elr and self.image.elr_enabled:
                    assert {*new.elr} <= {*old.elr, *old.isr}
        for node_id, broker in before.brokers.items():
            if node_id in self.image.brokers:
                assert self.image.brokers[node_id].epoch >= broker.epoch

    def compare(self, old: Partition, new: Partition, proposed: Iterable[NodeId]) -> None:
        lost = not {*old.replicas} <= {*new.replicas}
        if new.leader != old.leader or lost:
            assert new.leader_epoch == old.leader_epoch + 1
        else:
            assert new.leader_epoch == old.leader_epoch
        assert new.partition_epoch >= old.partition_epoch
        if new != old:
            assert new.partition_epoch > old.partition_epoch
        assert allowed_to_enter(old, new, proposed)
        if old.reassigning and not new.reassigning:
            self.seen.add("reassignment over")

    def compare_leaders(
        self,
        topic: str,
        old: Partition,
        new: Partition,
        proposed: Iterable[NodeId],
        by_hand: bool,
    ) -> None:
        if new.leader in old.isr or new.leader in proposed:
            self.seen.add("in sync elected")
            return
        if new.leader in old.elr and new.recovery_state == old.recovery_state:
            acceptable = acceptable_in(self.image, new)
            assert not any(acceptable(node) for node in old.isr if node in new.replicas)
            self.seen.add("eligible elected")
            return
        assert new.recovery_state == RECOVERING
        assert (new.isr, new.elr, new.last_known_elr) == ((new.leader,), (), ())
        last_known = new.leader in old.last_known_elr
        assert last_known or by_hand or self.controller.unclean_allowed(topic)
        self.seen.add("last known elected" if last_known else "unclean elected")

    def partition_at(self, pick: int):
        every = [
            (topic, number, partition)
            for topic in self.image.topics.values()
            for number, partition in topic.partitions.items()
        ]
        return every[pick % len(every)] if every else None

    # Brokers ---------------------------------------------------------------------------------

    @initialize(elr=st.booleans(), min_isr=st.integers(1, 3))
    def begin(self, elr: bool, min_isr: int) -> None:
        self.write(bootstrap_records(self.controller))
        if not elr:
            self.write((FeatureLevelRecord(ELR_VERSION, 0),))
        self.set_min_isr(min_isr)
        for node_id in (1, 2, 3):
            self.restart(NodeId(node_id), clean=False, both=True)
            self.unfence(NodeId(node_id))
        self.create("a", 2, 3)

    @rule(node_id=brokers, clean=st.booleans(), both=st.booleans())
    def restart(self, node_id: NodeId, clean: bool, both: bool) -> None:
        """``both``: with both of its directories; otherwise one of them is gone."""
        self.lives += 1
        old = self.image.brokers.get(node_id)
        asked = Registration(
            node_id=node_id,
            incarnation_id=Uuid(self.lives.to_bytes(16, "big")),
            endpoints=(Endpoint("PLAINTEXT", "h", 9092),),
            rack=None,
            log_dirs=tuple(directory(node_id, which) for which in range(2 if both else 1)),
            previous_epoch=old.epoch if clean and old is not None else BrokerEpoch(-1),
        )
        self.write(decide_register(self.controller, asked, epoch=BrokerEpoch(len(self.written))))
        for topic in self.image.topics.values():
            for partition in topic.partitions.values():
                assert node_id not in partition.isr or not self.image.elr_enabled
                assert node_id not in partition.elr or clean

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

    @rule(
        node_id=brokers,
        fence=st.booleans(),
        leave=st.booleans(),
        knows=st.booleans(),
        offline=st.booleans(),
    )
    def beat(self, node_id: NodeId, fence: bool, leave: bool, knows: bool, offline: bool) -> None:
        broker = self.image.brokers.get(node_id)
        epoch = BrokerEpoch(0) if broker is None else broker.epoch
        gone = (directory(node_id, 1),) if offline else ()
        beat = Heartbeat(node_id, epoch, len(self.written), fence, leave, gone)
        decided = decide_heartbeat(self.controller, beat, everyone_knows=knows)
        self.write(decided if isinstance(decided, Refusal) else decided.records)

    @rule(node_id=brokers, pick=picks, which=st.integers(0, 1))
    def assign(self, node_id: NodeId, pick: int, which: int) -> None:
        found = self.partition_at(pick)
        if found is None or node_id not in self.image.brokers:
            return
        topic, number, partition = found
        housed = Housed(topic.topic_id, number, directory(node_id, which))
        decided = decide_assign(self.controller, node_id, housed)
        if decided is not None and not isinstance(decided, Refusal):
            if partition.last_known_elr and decided.last_known_elr == ():
                self.lost_last_known = True
            decided = (decided,)
        self.write(decided or ())

    # Partitions ------------------------------------------------------------------------------

    @rule(name=topics, partitions=st.integers(1, 3), replicas=st.integers(1, 4))
    def create(self, name: str, partitions: int, replicas: int) -> None:
        created = decide_create_topic(self.controller, NewTopic(name, partitions, replicas))
        self.write(created if isinstance(created, Refusal) else created.records)

    @rule(name=topics, count=st.integers(1, 5))
    def create_partitions(self, name: str, count: int) -> None:
        self.write(decide_create_partitions(self.controller, name, count=count))

    @precondition(lambda self: self.image.topics)
    @rule(pick=picks)
    def delete(self, pick: int) -> None:
        name = sorted(self.image.topics)[pick % len(self.image.topics)]
        self.write(decide_delete_topic(self.controller, self.image.topics[name].topic_id))

    @rule(pick=picks, mask=st.integers(0, 15), stale=st.integers(0, 9), back=st.integers(0, 9))
    def propose(self, pick: int, mask: int, stale: int, back: int) -> None:
        """A leader proposes an ISR: mostly one that makes sense, of what it knows now."""
        found = self.partition_at(pick)
        if found is None or found[2].leader == NO_NODE:
            return
        topic, number, partition = found
        chosen = [
            replica
            for place, replica in enumerate(partition.replicas)
            if mask >> place & 1 or replica == partition.leader
        ]
        claimed = {
            member: NO_BROKER_EPOCH
            if stale == 1 or member not in self.image.brokers
            else BrokerEpoch(self.image.brokers[member].epoch - (stale == 0))
            for member in chosen
        }
        proposal = IsrProposal(
            topic.topic_id,
            number,
            partition.leader_epoch - (back == 0),
            partition.partition_epoch - (back == 1),
            tuple(Member(*each) for each in claimed.items()),
            RECOVERED if back != 2 else RECOVERING,
        )
        decided = decide_isr(self.controller, partition.leader, proposal)
        if isinstance(decided, Refusal):
            self.write(decided)
            return
        assert proposal.leader_epoch == partition.leader_epoch
        assert proposal.partition_epoch == partition.partition_epoch
        for member, epoch in claimed.items():
            assert self.image.is_active(member)
            assert epoch in (NO_BROKER_EPOCH, self.image.brokers[member].epoch)
        self.seen.add(decided.error.name)
        self.write(() if decided.record is None else (decided.record,), proposed=chosen)
        assert self.image.partition(topic.name, number) == decided.partition

    @rule(pick=picks, nodes=st.lists(brokers, min_size=1, max_size=3, unique=True))
    def reassign(self, pick: int, nodes: list[NodeId]) -> None:
        found = self.partition_at(pick)
        if found is not None:
            self.write(decide_reassign(self.controller, found[0].name, found[1], tuple(nodes)))

    @rule(pick=picks)
    def cancel(self, pick: int) -> None:
        found = self.partition_at(pick)
        if found is not None:
            topic, number, partition = found
            self.write(decide_reassign(self.controller, topic.name, number, None))
            if partition.reassigning and not topic.partitions[number].reassigning:
                self.seen.add("reassignment cancelled")

    @rule(pick=picks, kind=st.sampled_from([Election.PREFERRED, Election.UNCLEAN]))
    def elect(self, pick: int, kind: Election) -> None:
        found = self.partition_at(pick)
        if found is not None:
            decided = decide_election(self.controller, found[0].name, found[1], kind)
            self.write(decided, by_hand=kind is Election.UNCLEAN)

    @rule()
    def balance(self) -> None:
        self.write(decide_preferred(self.controller))

    @rule()
    def sweep(self) -> None:
        assert decide_leaderless(self.controller) == (), "whoever may lead does already"

    # Settings --------------------------------------------------------------------------------

    @rule(min_isr=st.integers(1, 3))
    def set_min_isr(self, min_isr: int) -> None:
        change = ConfigChange("min.insync.replicas", SET, str(min_isr))
        self.write(decide_incremental_alter(self.controller, (BROKER_RESOURCE, ""), (change,)))

    @rule(allowed=st.booleans())
    def allow_unclean(self, allowed: bool) -> None:
        change = ConfigChange("unclean.leader.election.enable", SET, str(allowed).lower())
        self.write(decide_incremental_alter(self.controller, (BROKER_RESOURCE, ""), (change,)))

    @rule(level=st.integers(0, 1))
    def switch_elr(self, level: int) -> None:
        kind = UPGRADE if level else SAFE_DOWNGRADE
        decided = decide_features(self.controller, (FeatureUpdate(ELR_VERSION, level, kind),))
        self.write(decided.refusals[0] or decided.records)

    # What must hold --------------------------------------------------------------------------

    @invariant()
    def image_is_sound(self) -> None:
        check(self.image)
        for name, topic in self.image.topics.items():
            for partition in topic.partitions.values():
                self.partition_is_sound(name, partition)

    def partition_is_sound(self, name: str, partition: Partition) -> None:
        acceptable = acceptable_in(self.image, partition)
        enough = min(self.controller.min_isr(name), len(partition.replicas))
        assert not (partition.elr and len(partition.isr) >= enough)
        if not self.image.elr_enabled:
            assert partition.isr
            assert not partition.elr
            assert not partition.last_known_elr
        waited_for = partition.isr or partition.elr or partition.last_known_elr
        assert waited_for or self.lost_last_known
        if partition.leader != NO_NODE:
            assert acceptable(partition.leader)
            assert not partition.last_known_elr
        else:
            assert not any(acceptable(node) for node in waited_for)
            if self.controller.unclean_allowed(name):
                settled = [node for node in partition.replicas if node not in partition.adding]
                assert not any(acceptable(node) for node in settled)
        if partition.recovery_state == RECOVERING:
            return
        target = [node for node in partition.replicas if node not in partition.removing]
        staying = [node for node in partition.isr if node not in partition.removing]
        assert not (partition.reassigning and {*target} <= {*staying})

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
TestDecisions.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)


def walk(seed: int, steps: int = 300) -> Decisions:
    """Hypothesis tries short odd sequences and shrinks them; this one gets deep."""
    dice = Entropy(seed)
    machine = Decisions()
    machine.begin(elr=seed % 4 != 0, min_isr=1 + dice.below(3))
    for step in range(steps):
        take_step(machine, dice)
        machine.image_is_sound()
        if step % 100 == 99:
            machine.records_say_all_of_it()
    return machine


def take_step(machine: Decisions, dice: Entropy) -> None:
    node_id, flip, pick = NODES[dice.below(4)], dice.below(2) == 1, dice.below(50)
    match dice.below(28):
        case 0 | 1:
            machine.restart(node_id, clean=flip, both=dice.below(4) > 0)
        case 2 | 3 | 4 | 5:
            machine.unfence(node_id)
        case 6 | 7:
            machine.fence(node_id)
        case 8:
            leave = dice.below(2) == 1
            machine.beat(node_id, flip, leave, knows=flip, offline=dice.below(3) == 0)
        case 9:
            machine.create("abcd"[dice.below(4)], 1 + dice.below(3), 1 + dice.below(4))
        case 10:
            machine.create_partitions("abcd"[dice.below(4)], 1 + dice.below(5))
        case 11:
            machine.set_min_isr(1 + dice.below(3))
        case 12:
            machine.allow_unclean(dice.below(8) == 0)
        case 13 if dice.below(4) == 0 and machine.image.topics:
            machine.delete(pick)
        case 14:
            machine.unregister(node_id)
        case 15 | 16 | 17 | 18 | 19 | 20 | 21 | 22:
            machine.propose(pick, dice.below(16), dice.below(20), dice.below(20))
        case 23 | 24:
            nodes = [NodeId(1 + (pick + turn) % 4) for turn in range(1 + dice.below(3))]
            machine.reassign(dice.below(50), nodes)
        case 25:
            machine.cancel(pick)
        case 26:
            machine.elect(pick, Election.PREFERRED if dice.below(5) else Election.UNCLEAN)
            machine.balance()
        case 27:
            machine.assign(node_id, pick, dice.below(2))
            if dice.below(4) == 0:
                machine.switch_elr(dice.below(2))


@pytest.mark.parametrize("seed", range(24))
def test_long_walk_keeps_the_image_sound(seed):
    walk(seed)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_decided_can_be_told(seed):
    image = Image()
    for record in walk(seed).written:
        told = tell_record(record, image)
        assert "\n" not in told.line
        assert json.loads(json.dumps(told.json)) == told.json
        if isinstance(record, PartitionChangeRecord):
            assert ", epoch " in told.line
        image.replay(record)


def test_walks_get_everywhere():
    seen: set[str] = set()
    for seed in range(24):
        seen |= walk(seed).seen
    assert seen >= {
        "NONE",
        "NEW_LEADER_ELECTED",
        "FENCED_LEADER_EPOCH",
        "INVALID_UPDATE_VERSION",
        "INELIGIBLE_REPLICA",
        "INVALID_REQUEST",
        "INVALID_REPLICA_ASSIGNMENT",
        "NO_REASSIGNMENT_IN_PROGRESS",
        "ELECTION_NOT_NEEDED",
        "PREFERRED_LEADER_NOT_AVAILABLE",
        "reassignment over",
        "reassignment cancelled",
        "in sync elected",
        "eligible elected",
        "last known elected",
        "unclean elected",
    }
