"""A small cluster whose controller decides and whose image replays: where tests here start."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from cotidal.core.cluster.controller import Controller
from cotidal.core.cluster.decide.brokers import Registration, decide_register, decide_unfence
from cotidal.core.cluster.decide.features import bootstrap_records
from cotidal.core.cluster.decide.topics import NewTopic, decide_create_topic
from cotidal.core.cluster.image import ELR_VERSION, Endpoint, Image, Partition, check
from cotidal.core.machine import Entropy
from cotidal.errors import Refusal
from cotidal.messages.records.metadata import FeatureLevelRecord
from cotidal.values import BrokerEpoch, NodeId, Uuid


class Scene:
    def __init__(
        self,
        *,
        brokers: int = 3,
        racks: tuple[str | None, ...] = (),
        settings: Mapping[str, str] | None = None,
        elr: bool = True,
    ) -> None:
        self.controller = Controller(Image(), Entropy(7), settings or {}, node_id=1)
        self.end_offset = 0
        self.apply(bootstrap_records(self.controller))
        if not elr:
            self.apply((FeatureLevelRecord(name=ELR_VERSION, feature_level=0),))
        for number in range(1, brokers + 1):
            self.join(number, rack=racks[number - 1] if racks else None)

    @property
    def image(self) -> Image:
        return self.controller.image

    def apply(self, decided):
        """Replay a decision, as appending does, and check what must hold; returns its records."""
        assert not isinstance(decided, Refusal), decided
        for record in decided:
            self.image.replay(record)
        self.end_offset += len(decided)
        check(self.image)
        return decided

    def register(self, number: int, *, life: int = 0, previous_epoch: int = -1, rack=None):
        return self.apply(
            decide_register(
                self.controller,
                registration(number, life=life, previous_epoch=previous_epoch, rack=rack),
                epoch=BrokerEpoch(self.end_offset),
            )
        )

    def join(self, number: int, *, life: int = 0, previous_epoch: int = -1, rack=None) -> None:
        self.register(number, life=life, previous_epoch=previous_epoch, rack=rack)
        self.apply(decide_unfence(self.controller, NodeId(number)))

    def create(self, name: str, *replicas: tuple[int, ...], **configs: str) -> None:
        """Partitions on these brokers; settings with _ for the dots of their names."""
        created = decide_create_topic(
            self.controller,
            NewTopic(
                name,
                assignments=tuple(enumerate(replicas)),
                configs=tuple((key.replace("_", "."), value) for key, value in configs.items()),
            ),
        )
        assert not isinstance(created, Refusal), created
        self.apply(created.records)

    def partition(self, topic: str = "orders", number: int = 0) -> Partition:
        found = self.image.partition(topic, number)
        assert found is not None
        return found

    def epoch(self, number: int) -> BrokerEpoch:
        return self.image.brokers[NodeId(number)].epoch


def registration(
    number: int, *, life: int = 0, previous_epoch: int = -1, rack=None, disk: int | None = None
):
    return Registration(
        node_id=NodeId(number),
        incarnation_id=Uuid(bytes([number, life] * 8)),
        endpoints=(Endpoint("PLAINTEXT", f"host{number}", 9092),),
        rack=rack,
        log_dirs=(Uuid(bytes([100 + number if disk is None else disk] * 16)),),
        previous_epoch=BrokerEpoch(previous_epoch),
    )


@pytest.fixture
def scene() -> Callable[..., Scene]:
    return Scene


@pytest.fixture
def registers() -> Callable[..., Registration]:
    return registration
