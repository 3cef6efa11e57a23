"""A small committed image, a view of it and a controller over it: what handlers are tested on.

Brokers 1, 2 and 3 listen on PLAINTEXT and, except 3, on INTERNAL; broker 4 is fenced. Topic orders
has three partitions on 1, 2 and 3; topic lonely one on broker 4, without a leader.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from cotidal.api.active import Active
from cotidal.api.asked import Asked
from cotidal.api.view import ControllerView, QuorumView, VoterView
from cotidal.core.cluster.controller import Controller
from cotidal.core.cluster.decide.brokers import (
    Registration,
    decide_fence,
    decide_register,
    decide_unfence,
)
from cotidal.core.cluster.decide.features import SUPPORTED, bootstrap_records
from cotidal.core.cluster.decide.topics import NewTopic, decide_create_topic
from cotidal.core.cluster.duties import begin
from cotidal.core.cluster.image import Endpoint, Image
from cotidal.core.machine import Entropy
from cotidal.core.partition.replica import Replica
from cotidal.errors import Refusal
from cotidal.messages.records.metadata import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)
from cotidal.values import (
    BrokerEpoch,
    LeaderEpoch,
    Millis,
    NodeId,
    Offset,
    TopicPartition,
    Uuid,
    WallMillis,
)


class FakeView:
    def __init__(self, image: Image, settings: Mapping[str, str]) -> None:
        self.node_id = NodeId(1)
        self.cluster_id = "cluster-of-tests"
        self.image = image
        self.settings = settings
        voter = VoterView(NodeId(1), Uuid(b"d" * 16), Offset(40), WallMillis(7), WallMillis(6))
        self.quorum = QuorumView(
            NodeId(1),
            LeaderEpoch(3),
            Offset(40),
            (voter,),
            (),
            (ControllerView(NodeId(1), (Endpoint("CONTROLLER", "c1", 9093),)),),
        )
        self.replicas: dict[TopicPartition, Replica] = {}
        self.doubted: set[NodeId] = set()
        self.just_lost: set[NodeId] = set()

    def is_doubted(self, node_id: NodeId) -> bool:
        return node_id in self.doubted

    def is_just_lost(self, node_id: NodeId) -> bool:
        return node_id in self.just_lost

    def replica(self, partition: TopicPartition) -> Replica | None:
        return self.replicas.get(partition)


class Cluster:
    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self.controller = Controller(Image(), Entropy(5), settings or {}, node_id=1)
        self.view = FakeView(self.controller.image, settings or {})
        self._apply(bootstrap_records(self.controller))
        self.image.replay(
            RegisterControllerRecord(
                controller_id=1,
                end_points=(ControllerEndpoint("CONTROLLER", "c1", 9093, 0),),
                features=tuple(ControllerFeature(*feature) for feature in SUPPORTED),
            )
        )
        for number in (1, 2, 3, 4):
            endpoints = [Endpoint("PLAINTEXT", f"host{number}", 9090 + number)]
            if number != 3:
                endpoints.append(Endpoint("INTERNAL", f"inside{number}", 9190 + number))
            asked = Registration(
                NodeId(number), Uuid(bytes([number] * 16)), tuple(endpoints), f"rack{number}"
            )
            self._apply(decide_register(self.controller, asked, epoch=BrokerEpoch(number)))
            self._apply(decide_unfence(self.controller, NodeId(number)))
        self.create("orders", (1, 2, 3), (2, 3, 1), (3, 1, 2))
        self.create("lonely", (4,))
        self._apply(decide_fence(self.controller, NodeId(4)))

    @property
    def image(self) -> Image:
        return self.controller.image

    def create(self, name: str, *replicas: tuple[int, ...], configs=()) -> None:
        topic = NewTopic(name, assignments=tuple(enumerate(replicas)), configs=configs)
        created = decide_create_topic(self.controller, topic)
        assert not isinstance(created, Refusal), created
        self._apply(created.records)

    def active(self, *, now: int = 1_000, end_offset: int = 500) -> Active:
        """The soft state of a controller that has just begun its term."""
        duties, _ = begin(self.controller, Millis(now), end_offset=Offset(end_offset))
        return Active(duties, Millis(now), Offset(end_offset), self.view.cluster_id)

    def epoch(self, number: int) -> int:
        return self.image.brokers[NodeId(number)].epoch

    def commit(self, decision):
        """Replay what a handler decided; returns its reply."""
        self._apply(decision.records)
        return decision.reply

    def commit_records(self, decided) -> None:
        """Replay what was decided without a handler."""
        self._apply(decided)

    def unfence(self, number: int) -> None:
        self._apply(decide_unfence(self.controller, NodeId(number)))

    def _apply(self, records) -> None:
        assert not isinstance(records, Refusal), records
        for record in records:
            self.image.replay(record)


@pytest.fixture
def make_cluster() -> Callable[..., Cluster]:
    return Cluster


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def asked() -> Callable[..., Asked]:
    def make(version: int, *, listener: str = "PLAINTEXT") -> Asked:
        return Asked(version, "tests", listener, WallMillis(1_000))

    return make


@pytest.fixture
def encodes() -> Callable[[int, int, object], object]:
    """Send a response through the codec: no field may be set that its version lacks."""
    from cotidal.wire import codec

    def through(api_key: int, version: int, response: object) -> object:
        parts = codec.encode_response(api_key, version, response)
        return codec.decode_response(api_key, version, b"".join(parts))

    return through
