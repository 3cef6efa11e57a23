"""An administrator: creates the topics of a run, and keeps changing others while it lasts.

Topics of the workload are created before anything else. Scratch topics come, grow, are configured
and go; their records are nobody's concern, their metadata is. An answer that never came leaves the
administrator in doubt, so "exists already" and "is not there" are as good as success.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cotidal.core.cluster.image import ELR_VERSION
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from cotidal.messages.rpc.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from cotidal.messages.rpc.delete_topics import DeleteTopicsRequest
from cotidal.messages.rpc.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from cotidal.messages.rpc.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from cotidal.messages.rpc.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from cotidal.sim.agenda import SECOND
from cotidal.sim.probes import Probes
from cotidal.sim.workloads.client import Client
from cotidal.sim.world import World
from cotidal.values import TopicPartition

TOPIC_RESOURCE: Final = 2
SET: Final = 0
SAFE_DOWNGRADE: Final = 2
SCRATCH: Final = ("scratch-a", "scratch-b")
FLAVOURS: Final[tuple[Mapping[str, str], ...]] = (
    {},
    {"message.timestamp.type": "LogAppendTime"},
    {"segment.ms": "700", "retention.ms": "1500"},
    {"segment.ms": "700", "retention.bytes": "200"},
)
"""Settings of scratch topics beside the plan's: times of arrival; records that grow old."""


class Admin(Client):
    def __init__(
        self,
        world: World,
        probes: Probes,
        *,
        topics: Mapping[str, int],
        replication: int,
        configs: Mapping[str, str],
        gap_us: int,
        elr: bool = True,
    ) -> None:
        """``topics``: name -> partitions. ``gap_us`` 0: nothing but these."""
        super().__init__(world, "admin", tuple(topics))
        self._probes = probes
        self._wanted = dict(topics)
        self._replication = replication
        self._configs = configs
        self._gap_us = gap_us
        self._elr = elr
        self.ready = False
        """The workload's topics are there."""

    def begin(self) -> None:
        if self._elr:
            self._create_again()
        else:
            self._turn_elr_off()
        if self._gap_us:
            self.after(self.draw(self._gap_us) + SECOND, self._act)

    def stop(self) -> None:
        self.stopped = True

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        return tuple(
            TopicPartition(name, number)
            for name, count in self._wanted.items()
            for number in range(count)
        )

    def _create(
        self, topics: tuple[tuple[str, int], ...], configs: Mapping[str, str], then: Any
    ) -> None:
        request = CreateTopicsRequest(
            topics=tuple(
                CreatableTopic(
                    name=name,
                    num_partitions=count,
                    replication_factor=self._replication,
                    configs=tuple(CreatableTopicConfig(*each) for each in configs.items()),
                )
                for name, count in topics
            ),
            timeout_ms=5_000,
        )
        self.ask(self.anyone(), ApiKey.CREATE_TOPICS, 7, request, then)

    def _on_created(self, reply: CreateTopicsResponse | None) -> None:
        good = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
        if reply is not None and all(topic.error_code in good for topic in reply.topics):
            self.ready = True
            self.refresh()
        else:
            self.after(self.back_off(), self._create_again)

    def _create_again(self) -> None:
        self._create(tuple(self._wanted.items()), self._configs, self._on_created)

    def _turn_elr_off(self) -> None:
        update = FeatureUpdateKey(ELR_VERSION, max_version_level=0, upgrade_type=SAFE_DOWNGRADE)
        request = UpdateFeaturesRequest(timeout_ms=5_000, feature_updates=(update,))
        self.ask(self.anyone(), ApiKey.UPDATE_FEATURES, 1, request, self._on_elr_off)

    def _on_elr_off(self, reply: UpdateFeaturesResponse | None) -> None:
        if reply is not None and reply.error_code == 0:
            assert all(told.error_code == 0 for told in reply.results), reply.results
            self._create_again()
        else:
            self.after(self.back_off(), self._turn_elr_off)

    # Changing things

    def _act(self) -> None:
        if self.stopped:
            return
        self.after(self._gap_us // 2 + self.draw(self._gap_us), self._act)
        name = SCRATCH[self.draw(len(SCRATCH))]
        match self.draw(6):
            case 0 | 1:
                # Promises hold for every topic, so scratch topics have the plan's settings too.
                topic = (name, 1 + self.draw(3))
                flavour = FLAVOURS[self.draw(len(FLAVOURS))]
                self._create((topic,), {**self._configs, **flavour}, self._told("create"))
            case 2:
                request = DeleteTopicsRequest(topic_names=(name,), timeout_ms=5_000)
                self.ask(self.anyone(), ApiKey.DELETE_TOPICS, 5, request, self._told("delete"))
            case 3:
                more = CreatePartitionsTopic(name, 2 + self.draw(4))
                grow = CreatePartitionsRequest(topics=(more,), timeout_ms=5_000)
                self.ask(self.anyone(), ApiKey.CREATE_PARTITIONS, 3, grow, self._told("grow"))
            case 4:
                self._configure(name)
            case _:
                self._list_offsets()

    def _configure(self, name: str) -> None:
        if self.draw(2):
            names = tuple(self._wanted)
            name = names[self.draw(len(names))]
        settings = (
            ("segment.bytes", str(1024 * 1024 + self.draw(4) * 1000)),
            ("index.interval.bytes", str(256 + self.draw(4096))),
            ("max.message.bytes", str(1_000_000 + self.draw(1000))),
        )
        changed = AlterableConfig(*_with_set(settings[self.draw(len(settings))]))
        resource = AlterConfigsResource(TOPIC_RESOURCE, name, (changed,))
        request = IncrementalAlterConfigsRequest(resources=(resource,))
        key = ApiKey.INCREMENTAL_ALTER_CONFIGS
        self.ask(self.anyone(), key, 1, request, self._told("configure"))

    def _list_offsets(self) -> None:
        for partition, leader in list(self.leaders.items())[:1]:
            asked = ListOffsetsPartition(partition.partition, leader.epoch, -1 - self.draw(3))
            topic = ListOffsetsTopic(partition.topic, (asked,))
            request = ListOffsetsRequest(replica_id=-1, topics=(topic,))
            self.ask(leader.address, ApiKey.LIST_OFFSETS, 7, request, self._told("list offsets"))

    def _told(self, what: str) -> Any:
        return lambda reply: self._probes.see(
            f"admin: {what}, {'no answer' if reply is None else 'answered'}"
        )


def _with_set(setting: tuple[str, str]) -> tuple[str, int, str]:
    name, value = setting
    return name, SET, value
