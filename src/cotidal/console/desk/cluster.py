"""The whole cluster: whether it is well, its brokers, and the quorum that decides."""

from __future__ import annotations

import time

from cotidal.client.admin import describe_quorum
from cotidal.client.health import health_of
from cotidal.client.quorum import quorum_json
from cotidal.client.status_report import broker_json, broker_state
from cotidal.console.desk.question import Desk
from cotidal.console.world import Command, Json


def overview(desk: Desk, asked: Command) -> Json:
    """Health in one sentence, what troubles it, and each broker."""
    status = desk.seen()
    health = health_of(status)
    partitions = [each.partition for each in status.partitions]
    leading = [each.leader for each in partitions]
    hosted = [node for each in partitions for node in each.replicas]
    return {
        "cluster_id": status.metadata.cluster_id,
        "state": health.severity.value,
        "sentence": health.sentence,
        "troubles": [
            {"state": each.severity.value, "sentence": each.sentence} for each in health.troubles
        ],
        "topics": sum(not topic.is_internal for topic in status.metadata.topics),
        "partitions": len(partitions),
        "not_preferred": sum(
            each.has_leader and each.leader != each.replicas[0] for each in partitions
        ),
        "brokers": [
            {
                **broker_json(status, broker),
                "state": broker_state(status, broker),
                "leads": leading.count(broker.node_id),
                "replicas": hosted.count(broker.node_id),
                "controls": broker.node_id == status.metadata.controller_id,
            }
            for broker in status.brokers
        ],
    }


def quorum(desk: Desk, asked: Command) -> Json:
    """Voters and observers with their lags. ``now_ms``: by the clock of this console."""
    return {**quorum_json(describe_quorum(desk.cluster)), "now_ms": time.time_ns() // 1_000_000}
