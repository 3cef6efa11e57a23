"""Feature levels, and the first records of a new cluster. Pure. KIP-584, KIP-778, KIP-966.

A level may be set that this software, every registered broker and every registered controller can
read. Several changes are made together or not at all. metadata.version never goes down: the records
that are in the log could not be written in an older form.

Eligible leader replicas can be switched on and off while the cluster runs:

  on    the cluster-wide min.insync.replicas becomes a record, those of single brokers go, because
        who may lead depends upon it; fenced brokers leave the ISRs that they were the last of
  off   the ELRs are cleared; refused while some partition has an empty ISR, because without ELR
        nobody could ever lead it

Only the levels of Kafka 4.3 are written. kraft.version is not among them: it is a control record of
the quorum.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from cotidal.core.cluster.controller import Controller, Records
from cotidal.core.cluster.decide.leaders import acceptable_in, change, rules_of
from cotidal.core.cluster.image import (
    BROKER_RESOURCE,
    CLUSTER_DEFAULT,
    ELR_VERSION,
    METADATA_VERSION,
    FeatureRange,
    Image,
    MetadataRecord,
)
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.records.metadata import ClearElrRecord, ConfigRecord, FeatureLevelRecord
from cotidal.settings import effective

SUPPORTED: Final = (
    FeatureRange(METADATA_VERSION, 7, 30),
    FeatureRange("group.version", 0, 1),
    FeatureRange("transaction.version", 0, 2),
    FeatureRange(ELR_VERSION, 0, 1),
)
"""What this software can read; the newest is what a new cluster begins with."""

KRAFT_VERSION: Final = FeatureRange("kraft.version", 0, 1)

OFFERED: Final = (*SUPPORTED, KRAFT_VERSION)
"""What a node says of itself: the quorum's own feature too, which has no record here."""

UPGRADE: Final = 1
SAFE_DOWNGRADE: Final = 2
UNSAFE_DOWNGRADE: Final = 3

ELR_SINCE: Final = 23
"""The metadata.version (4.0-IV1) whose records have room for an ELR."""

_MIN_ISR: Final = "min.insync.replicas"


class FeatureUpdate(NamedTuple):
    name: str
    level: int
    kind: int = UPGRADE


class FeaturesDecided(NamedTuple):
    records: Records
    """Empty where anything was refused."""
    refusals: tuple[Refusal | None, ...]
    """One for each update."""


def bootstrap_records(controller: Controller) -> Records:
    """The first records of a new cluster.

    metadata.version stands first: it says how to read the rest. With ELR on the cluster-wide
    min.insync.replicas must be a record, because who may lead depends upon it: it cannot be left to
    whatever each controller's server.properties says.
    """
    return (
        *(FeatureLevelRecord(name=name, feature_level=newest) for name, _, newest in SUPPORTED),
        _min_isr_record(controller),
    )


def decide_features(controller: Controller, updates: tuple[FeatureUpdate, ...]) -> FeaturesDecided:
    names = [update.name for update in updates]
    after = {**controller.image.features, **{update.name: update.level for update in updates}}
    refusals = tuple(
        Refusal(ErrorCode.INVALID_REQUEST, f"{update.name} is named twice")
        if names.count(update.name) > 1
        else _refuse_update(controller.image, update)
        or _refuse_elr(controller.image, update, after)
        for update in updates
    )
    if any(refusal is not None for refusal in refusals):
        return FeaturesDecided((), refusals)
    records: list[MetadataRecord] = []
    for name, level, _ in sorted(updates, key=lambda update: update.name != METADATA_VERSION):
        current = controller.image.features.get(name, 0)
        if level == current:
            continue
        records.append(FeatureLevelRecord(name=name, feature_level=level))
        if name == ELR_VERSION:
            records += _elr_on(controller) if level else [ClearElrRecord(topic_name="")]
    return FeaturesDecided(tuple(records), refusals)


def refuse_levels(image: Image, who: str, features: tuple[FeatureRange, ...]) -> Refusal | None:
    """Why a node that can read these levels cannot take part, if it cannot."""
    ranges = {feature.name: feature for feature in features}
    for name, level in image.features.items():
        offered = ranges.get(name)
        if offered is None or not offered.oldest <= level <= offered.newest:
            span = f"{offered.oldest} to {offered.newest}" if offered else "none"
            return Refusal(
                ErrorCode.UNSUPPORTED_VERSION,
                f"the cluster is at {name} {level}, {who} supports {span}",
            )
    return None


def _refuse_update(image: Image, update: FeatureUpdate) -> Refusal | None:
    current = image.features.get(update.name, 0)
    sentence = None
    if update.kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        sentence = f"there is no kind of update {update.kind}"
    elif update.level < 0:
        sentence = "a level is 0 or more"
    elif update.level < current and update.kind == UPGRADE:
        sentence = f"it is at {current}, and going down has to be asked for as a downgrade"
    elif update.level > current and update.kind != UPGRADE:
        sentence = f"it is at {current}, and a downgrade cannot go up"
    elif update.level < current and update.name == METADATA_VERSION:
        sentence = f"it is at {current}, and records cannot be written in an older form"
    else:
        sentence = _not_supported(image, update)
    if sentence is None:
        return None
    return Refusal(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"{update.name} cannot be set to {update.level}: {sentence}",
    )


def _not_supported(image: Image, update: FeatureUpdate) -> str | None:
    for who, features in _readers(image):
        for name, oldest, newest in features:
            if name == update.name:
                # Level 0 means "off", which is what software without the feature has anyway.
                if not (update.level == 0 or oldest <= update.level <= newest):
                    return f"{who} supports {oldest} to {newest}"
                break
        else:
            if update.level != 0 or who == _HERE:
                return f"{who} does not know it"
    return None


_HERE: Final = "this controller"


def _readers(image: Image) -> Iterator[tuple[str, tuple[FeatureRange, ...]]]:
    yield _HERE, SUPPORTED
    for broker in image.brokers.values():
        yield f"broker {broker.node_id}", broker.features
    for node in image.controllers.values():
        yield f"controller {node.node_id}", node.features


def _refuse_elr(image: Image, update: FeatureUpdate, after: dict[str, int]) -> Refusal | None:
    if update.name != ELR_VERSION:
        return None
    if update.level > 0:
        if after.get(METADATA_VERSION, 0) >= ELR_SINCE:
            return None
        return Refusal(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"{ELR_VERSION} needs {METADATA_VERSION} {ELR_SINCE} or more",
        )
    for topic in image.topics.values():
        for number, partition in topic.partitions.items():
            if not partition.isr:
                return Refusal(
                    ErrorCode.INVALID_UPDATE_VERSION,
                    f"nobody is in the ISR of {topic.name}-{number}: without eligible leader "
                    "replicas nobody could ever lead it; bring its brokers back first",
                )
    return None


def _elr_on(controller: Controller) -> Iterator[MetadataRecord]:
    image = controller.image
    if _MIN_ISR not in image.cluster_config:
        yield _min_isr_record(controller)
    for resource, values in image.configs.items():
        if resource[0] == BROKER_RESOURCE and resource != CLUSTER_DEFAULT and _MIN_ISR in values:
            yield ConfigRecord(
                resource_type=BROKER_RESOURCE, resource_name=resource[1], name=_MIN_ISR, value=None
            )
    for topic in image.topics.values():
        rules = rules_of(controller, topic.name)._replace(elr_enabled=True)
        for number, partition in topic.partitions.items():
            active = tuple([member for member in partition.isr if image.is_active(member)])
            if active != partition.isr:
                record = change(
                    topic.topic_id,
                    number,
                    partition,
                    rules,
                    acceptable_in(image, partition),
                    isr=active,
                )
                if record is not None:
                    yield record


def _min_isr_record(controller: Controller) -> ConfigRecord:
    text = effective(
        _MIN_ISR, cluster=controller.image.cluster_config, static=controller.settings
    ).text
    return ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="", name=_MIN_ISR, value=text)
