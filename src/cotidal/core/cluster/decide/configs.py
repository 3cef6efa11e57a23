"""Dynamic settings of topics, brokers and groups. Pure. KIP-339.

One resource is changed wholly or not at all. The values that would hold together are checked, not
only the changed ones. With ELR on (KIP-966) min.insync.replicas says who may lead, so that

  - it cannot differ between brokers, and the cluster-wide value cannot be removed
  - a change of it clears the ELR of the topics that it concerns (ClearElrRecord). A partition that
    nobody leads keeps its own: nothing was written meanwhile, and it has nothing else to go by

A change of unclean.leader.election.enable elects at once where it lets somebody lead.

APPEND and SUBTRACT start from what holds now, inherited values too (Kafka starts from the default).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from itertools import islice
from typing import Final, NamedTuple

from cotidal import settings
from cotidal.core.cluster.controller import Controller, Decided
from cotidal.core.cluster.decide.elections import ELECTIONS_PER_PASS_MAX
from cotidal.core.cluster.decide.leaders import elect_leaderless
from cotidal.core.cluster.image import (
    BROKER_RESOURCE,
    CLUSTER_DEFAULT,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    ConfigResource,
    Image,
    MetadataRecord,
)
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.records.metadata import (
    ClearElrRecord,
    ConfigRecord,
    PartitionChangeRecord,
)
from cotidal.settings import Dynamic, Kind, Setting, Wrong
from cotidal.values import NodeId

SET: Final = 0
DELETE: Final = 1
APPEND: Final = 2
SUBTRACT: Final = 3

MIN_ISR: Final = "min.insync.replicas"
UNCLEAN: Final = "unclean.leader.election.enable"

_TABLES: Final[Mapping[int, Mapping[str, Setting]]] = {
    TOPIC_RESOURCE: settings.TOPIC,
    BROKER_RESOURCE: settings.BROKER,
    GROUP_RESOURCE: settings.GROUP,
}


class ConfigChange(NamedTuple):
    name: str
    operation: int
    value: str | None


def decide_incremental_alter(
    controller: Controller,
    resource: ConfigResource,
    changes: tuple[ConfigChange, ...],
    *,
    newly_created: bool = False,
) -> Decided:
    """IncrementalAlterConfigs of one resource. ``newly_created``: a topic that is not there yet."""
    refusal = refuse_resource(controller.image, resource, newly_created=newly_created)
    if refusal is None:
        refusal = _refuse_shape(changes, newly_created=newly_created)
    if refusal is not None:
        return refusal
    current = {} if newly_created else controller.image.config(*resource)
    wanted: dict[str, str | None] = {}
    for change in changes:
        value = _value_after(controller, resource, current, change)
        if isinstance(value, Refusal):
            return value
        wanted[change.name] = value
    return _decide(controller, resource, current, wanted)


def decide_alter(
    controller: Controller, resource: ConfigResource, values: Mapping[str, str | None]
) -> Decided:
    """AlterConfigs of one resource: what is not named goes back to its default."""
    refusal = refuse_resource(controller.image, resource)
    if refusal is not None:
        return refusal
    for name, value in values.items():
        if value is None:
            return Refusal(ErrorCode.INVALID_REQUEST, f"{name} was given no value")
    current = controller.image.config(*resource)
    wanted: dict[str, str | None] = dict.fromkeys(current)
    wanted.update(values)
    return _decide(controller, resource, current, wanted)


def refuse_resource(
    image: Image, resource: ConfigResource, *, newly_created: bool = False
) -> Refusal | None:
    """Why this resource's settings cannot be changed, if they cannot."""
    resource_type, name = resource
    if resource_type == TOPIC_RESOURCE:
        if not name:
            return Refusal(ErrorCode.INVALID_REQUEST, "there are no defaults for all topics here")
        if not newly_created and name not in image.topics:
            return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic '{name}' does not exist")
        return None
    if resource_type == BROKER_RESOURCE:
        return _refuse_broker(image, name)
    if resource_type == GROUP_RESOURCE:
        if not name:
            return Refusal(ErrorCode.INVALID_REQUEST, "there are no defaults for all groups here")
        return None
    return Refusal(
        ErrorCode.INVALID_REQUEST,
        f"settings of resource type {resource_type} cannot be changed here: topics (2), "
        "brokers (4) and groups (32) can",
    )


def _refuse_broker(image: Image, name: str) -> Refusal | None:
    if not name:
        return None
    if not (name.isascii() and name.isdigit() and len(name) <= 10):
        return Refusal(ErrorCode.INVALID_REQUEST, f"'{name[:100]}' is not the number of a broker")
    if NodeId(int(name)) not in image.brokers:
        return Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, f"no broker {name} is registered")
    return None


def _refuse_shape(changes: tuple[ConfigChange, ...], *, newly_created: bool) -> Refusal | None:
    seen: set[str] = set()
    for change in changes:
        if change.name in seen:
            return Refusal(ErrorCode.INVALID_REQUEST, f"{change.name} is named twice")
        seen.add(change.name)
        if change.operation not in (SET, DELETE, APPEND, SUBTRACT):
            return Refusal(
                ErrorCode.INVALID_REQUEST,
                f"{change.name}: there is no operation {change.operation}; set (0), delete (1), "
                "append (2) and subtract (3) exist",
            )
        if change.value is None and change.operation != DELETE:
            # Kafka's codes: what creates a topic is wrong in content, what alters one in form.
            error = ErrorCode.INVALID_CONFIG if newly_created else ErrorCode.INVALID_REQUEST
            return Refusal(error, f"{change.name} was given no value")
    return None


def _value_after(
    controller: Controller,
    resource: ConfigResource,
    current: Mapping[str, str],
    change: ConfigChange,
) -> str | Refusal | None:
    if change.operation == DELETE:
        return None
    assert change.value is not None
    if change.operation == SET:
        return change.value
    table = _TABLES[resource[0]]
    setting = table.get(change.name)
    if setting is None:
        return Refusal(ErrorCode.INVALID_CONFIG, settings.refusal_of_name(table, change.name))
    if setting.kind is not Kind.LIST:
        return Refusal(
            ErrorCode.INVALID_CONFIG,
            f"{change.name} is not a list, so that nothing can be appended or subtracted",
        )
    parts = _elements(current.get(change.name, _inherited(controller, resource, setting)))
    named = _elements(change.value)
    if change.operation == APPEND:
        parts += [element for element in named if element not in parts]
    else:
        parts = [element for element in parts if element not in named]
    return ",".join(parts)


def _inherited(controller: Controller, resource: ConfigResource, setting: Setting) -> str:
    image = controller.image
    found = settings.effective(
        setting.name,
        topic={} if resource[0] == TOPIC_RESOURCE else None,
        cluster={} if resource == CLUSTER_DEFAULT else image.cluster_config,
        static=controller.settings,
    )
    return found.text or ""


def _elements(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _decide(
    controller: Controller,
    resource: ConfigResource,
    current: Mapping[str, str],
    wanted: Mapping[str, str | None],
) -> Decided:
    refusal = _refuse_values(resource, current, wanted)
    if refusal is None and controller.image.elr_enabled:
        refusal = _refuse_min_isr(resource, current, wanted)
    if refusal is not None:
        return refusal
    resource_type, resource_name = resource
    records: list[MetadataRecord] = []
    for name, value in wanted.items():
        # A broker is told even of an equal value: that is how it is asked to read files again.
        if current.get(name) != value or resource_type == BROKER_RESOURCE:
            records.append(
                ConfigRecord(
                    resource_type=resource_type, resource_name=resource_name, name=name, value=value
                )
            )
    concerned = resource == CLUSTER_DEFAULT or (
        resource_type == TOPIC_RESOURCE and resource_name in controller.image.topics
    )
    min_isr_changes = MIN_ISR in wanted and wanted[MIN_ISR] != current.get(MIN_ISR)
    if controller.image.elr_enabled and concerned and min_isr_changes:
        records.append(ClearElrRecord(topic_name=resource_name))
        records += _kept_elrs(controller.image, resource_name)
    if concerned and UNCLEAN in wanted:
        records += _elected_by_now(controller, resource, {**current, **wanted})
    return tuple(records)


def _kept_elrs(image: Image, topic: str) -> Iterator[PartitionChangeRecord]:
    for each in (image.topics[topic],) if topic else image.topics.values():
        for number, partition in each.partitions.items():
            if not partition.isr and (partition.elr or partition.last_known_elr):
                yield PartitionChangeRecord(
                    partition_id=number,
                    topic_id=each.topic_id,
                    eligible_leader_replicas=partition.elr,
                    last_known_elr=partition.last_known_elr,
                )


def _elected_by_now(
    controller: Controller, resource: ConfigResource, values: Mapping[str, str | None]
) -> Iterator[PartitionChangeRecord]:
    """Elections that these settings of the resource allow; the clock's sweep finds the rest."""
    held = {name: value for name, value in values.items() if value is not None}
    image = copy(controller.image)  # shallow: nothing of it is changed but what ``configs`` names
    image.configs = {**image.configs, resource: held}
    after = Controller(image, controller.entropy, controller.settings, node_id=controller.node_id)
    topic = resource[1] if resource[0] == TOPIC_RESOURCE else None
    return islice(elect_leaderless(after, topic), ELECTIONS_PER_PASS_MAX)


def _refuse_values(
    resource: ConfigResource, current: Mapping[str, str], wanted: Mapping[str, str | None]
) -> Refusal | None:
    table = _TABLES[resource[0]]
    for name, value in wanted.items():
        if value is None:
            continue
        verdict = settings.judge(table, name, value)
        if isinstance(verdict, Wrong):
            return Refusal(ErrorCode.INVALID_CONFIG, verdict.sentence)
        if resource[0] == BROKER_RESOURCE and table[name].dynamic is Dynamic.READ_ONLY:
            return Refusal(
                ErrorCode.INVALID_REQUEST,
                f"{name} cannot be changed while a broker runs; set it in server.properties",
            )
    if resource[0] == TOPIC_RESOURCE:
        after = {**current, **wanted}
        lags = [after.get("min.compaction.lag.ms"), after.get("max.compaction.lag.ms")]
        if lags[0] is not None and lags[1] is not None and int(lags[0]) > int(lags[1]):
            return Refusal(
                ErrorCode.INVALID_CONFIG,
                f"min.compaction.lag.ms ({lags[0]}) is more than max.compaction.lag.ms ({lags[1]})",
            )
    return None


def _refuse_min_isr(
    resource: ConfigResource, current: Mapping[str, str], wanted: Mapping[str, str | None]
) -> Refusal | None:
    """Of a resource that is a broker or the cluster, with ELR on."""
    if resource[0] != BROKER_RESOURCE or MIN_ISR not in wanted:
        return None
    if resource != CLUSTER_DEFAULT:
        if wanted[MIN_ISR] is None:
            return None
        return Refusal(
            ErrorCode.INVALID_CONFIG,
            f"{MIN_ISR} cannot differ between brokers while eligible leader replicas are on; "
            "set it for the cluster or for a topic",
        )
    if wanted[MIN_ISR] is None and MIN_ISR in current:
        return Refusal(
            ErrorCode.INVALID_CONFIG,
            f"the cluster's {MIN_ISR} cannot be removed while eligible leader replicas are on; "
            "set another value",
        )
    return None
