"""Feature levels, and the first records of a new cluster. Pure. KIP-584, KIP-778.

Only the levels of Kafka 4.3 are written. kraft.version is not among them: it is a control record of
the quorum.
"""

from __future__ import annotations

from typing import Final

from cotidal.core.cluster.controller import Controller, Records
from cotidal.core.cluster.image import (
    BROKER_RESOURCE,
    ELR_VERSION,
    METADATA_VERSION,
    FeatureRange,
)
from cotidal.messages.records.metadata import ConfigRecord, FeatureLevelRecord
from cotidal.settings import effective

SUPPORTED: Final = (
    FeatureRange(METADATA_VERSION, 7, 30),
    FeatureRange("group.version", 0, 1),
    FeatureRange("transaction.version", 0, 2),
    FeatureRange(ELR_VERSION, 0, 1),
)
"""What this software can read; the newest is what a new cluster begins with."""

_MIN_ISR: Final = "min.insync.replicas"


def bootstrap_records(controller: Controller) -> Records:
    """The first records of a new cluster.

    metadata.version stands first: it says how to read the rest. With ELR on the cluster-wide
    min.insync.replicas must be a record, because who may lead depends upon it: it cannot be left to
    whatever each controller's server.properties says.
    """
    min_isr = effective(_MIN_ISR, static=controller.settings).text
    return (
        *(FeatureLevelRecord(name=name, feature_level=newest) for name, _, newest in SUPPORTED),
        ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="", name=_MIN_ISR, value=min_isr),
    )
