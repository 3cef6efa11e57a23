"""Clients of the sandbox: the simulator's own, with a hand on their taps.

Source      produces at one level of acks, at a rate that can be changed, or a record by hand
Reader      consumes, from leaders or from the nearest replica
Clerk       changes settings as an administrator does, with requests
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from cotidal.core.cluster.image import ELR_VERSION, TOPIC_RESOURCE
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from cotidal.messages.rpc.elect_leaders import ElectLeadersRequest, TopicPartitions
from cotidal.messages.rpc.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from cotidal.messages.rpc.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from cotidal.sim.agenda import SECOND
from cotidal.sim.probes import Probes
from cotidal.sim.workloads.client import Client
from cotidal.sim.workloads.consumer import Consumer
from cotidal.sim.workloads.history import Acked, History
from cotidal.sim.workloads.producer import Producer
from cotidal.sim.world import World
from cotidal.values import TopicPartition
from cotidal.wire.records import Record

TIMEOUT_MS: Final = 10_000
UPGRADE: Final = 1
SAFE_DOWNGRADE: Final = 2

IN_FLIGHT_MAX: Final = 5
"""As Kafka's producers have it."""

Then = Callable[[str], None]
"""Told how it went: an error's name, or nothing."""


class Source(Producer):
    """One record a batch, partitions in turn."""

    def __init__(
        self,
        world: World,
        name: str,
        partitions: tuple[TopicPartition, ...],
        history: History,
        probes: Probes,
        *,
        acks: int,
    ) -> None:
        super().__init__(
            world, name, partitions, history, probes, acks=acks, idempotent=acks == -1, gap_us=0
        )
        self.in_flight_max = IN_FLIGHT_MAX
        self.per_second = 0
        self.made = 0
        self._value: bytes | None = None
        self._ticking = False

    def begin(self) -> None:
        self.refresh()
        if self.idempotent:
            self._ask_for_id()

    @property
    def is_ready(self) -> bool:
        knows_all = all(partition in self.leaders for partition in self._partitions)
        return knows_all and (not self.idempotent or self._producer_id >= 0)

    def set_rate(self, per_second: int) -> None:
        self.per_second = per_second
        if per_second and not self._ticking:
            self._ticking = True
            self.after(SECOND // per_second, self._produce)

    def produce(self, partition: TopicPartition, value: str | None = None) -> None:
        if self.idempotent and self._producer_id < 0:
            self._ask_for_id()
            return
        self._value = None if value is None else value.encode()
        line = self._lines[partition]
        line.pending.append(self._make(partition, line))
        self._pump(partition, line)

    def _produce(self) -> None:
        if not self.per_second:
            self._ticking = False
            return
        self.after(SECOND // self.per_second, self._produce)
        partition = self._partitions[self.made % len(self._partitions)]
        line = self._lines[partition]
        if len(line.pending) + len(line.in_flight) < WAITING_MAX:
            self.produce(partition)

    def _records(self) -> list[Record]:
        self.made += 1
        value = self._value
        if value is None:
            value = b"%s #%d" % (self.name.encode(), self.made)
        return [Record(None, value, timestamp=1_700_000_000_000 + self.world.now // 1000)]


WAITING_MAX: Final = 20
"""Batches of one partition without an answer: a source then waits."""


class Ledger(History):
    """The history of the sandbox; whoever listens hears of every acknowledgement."""

    def __init__(self, heard: Callable[[Acked], None]) -> None:
        super().__init__()
        self._heard = heard

    def on_acked(self, acked: Acked) -> None:
        super().on_acked(acked)
        self._heard(acked)


class Reader(Consumer):
    def __init__(
        self,
        world: World,
        name: str,
        partitions: tuple[TopicPartition, ...],
        history: History,
        probes: Probes,
        *,
        rack: str,
    ) -> None:
        super().__init__(world, name, partitions, history, probes, may_lose=False, rack=rack)
        self.rack = rack
        self.restless = False
        self._max_bytes = 1 << 20

    def reads_from(self, partition: TopicPartition) -> str:
        """The host's name; empty while it does not know."""
        address = self._source(partition)
        return "" if address is None else address[0]


class Clerk(Client):
    """Asks until it is answered; a refusal is told and not repeated."""

    def __init__(self, world: World, topic: str, topics: tuple[str, ...] = ()) -> None:
        super().__init__(world, "clerk", topics or (topic,))
        self._topic = topic
        self.is_ready = False
        """The topic is there."""

    def create(self, assignments: int, replication: int, configs: dict[str, str]) -> None:
        request = CreateTopicsRequest(
            topics=(
                CreatableTopic(
                    name=self._topic,
                    num_partitions=assignments,
                    replication_factor=replication,
                    configs=tuple(CreatableTopicConfig(*each) for each in configs.items()),
                ),
            ),
            timeout_ms=TIMEOUT_MS,
        )

        def created(reply: CreateTopicsResponse | None) -> None:
            good = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
            if reply is not None and all(topic.error_code in good for topic in reply.topics):
                self.is_ready = True
            else:
                self.after(self.back_off(), self.create, assignments, replication, configs)

        self.ask(self.anyone(), ApiKey.CREATE_TOPICS, 7, request, created)

    def configure_topic(self, name: str, value: str, then: Then) -> None:
        changed = AlterableConfig(name, 0, value)
        request = IncrementalAlterConfigsRequest(
            resources=(AlterConfigsResource(TOPIC_RESOURCE, self._topic, (changed,)),)
        )

        def told(reply: Any) -> None:
            if reply is None:
                self.after(self.back_off(), self.configure_topic, name, value, then)
            else:
                then(_error(reply.responses[0].error_code))

        self.ask(self.anyone(), ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request, told)

    def keep_elr(self, wanted: bool, then: Then) -> None:
        """Eligible leader replicas are a feature of the cluster (KIP-966)."""
        level, how = (1, UPGRADE) if wanted else (0, SAFE_DOWNGRADE)
        update = FeatureUpdateKey(ELR_VERSION, max_version_level=level, upgrade_type=how)
        request = UpdateFeaturesRequest(timeout_ms=TIMEOUT_MS, feature_updates=(update,))

        def told(reply: Any) -> None:
            if reply is None:
                self.after(self.back_off(), self.keep_elr, wanted, then)
            else:
                codes = [reply.error_code, *(each.error_code for each in reply.results)]
                then(_error(max(codes)))

        self.ask(self.anyone(), ApiKey.UPDATE_FEATURES, 1, request, told)

    def elect(self, partition: TopicPartition, *, unclean: bool, then: Then) -> None:
        asked = TopicPartitions(partition.topic, (partition.partition,))
        request = ElectLeadersRequest(
            election_type=int(unclean), topic_partitions=(asked,), timeout_ms=TIMEOUT_MS
        )

        def told(reply: Any) -> None:
            if reply is None:
                self.after(self.back_off(), self._elect_again, partition, unclean, then)
                return
            codes = [reply.error_code]
            for result in reply.replica_election_results:
                codes += [each.error_code for each in result.partition_result]
            then(_error(max(codes)))

        self.ask(self.anyone(), ApiKey.ELECT_LEADERS, 2, request, told)

    def _elect_again(self, partition: TopicPartition, unclean: bool, then: Then) -> None:
        self.elect(partition, unclean=unclean, then=then)


def _error(code: int) -> str:
    return "" if code == 0 else ErrorCode(code).name
