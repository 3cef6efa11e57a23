"""What somebody has written down about clients, users, groups and brokers: quotas, credentials,
settings. Some of it is right, some must be refused.

Quotas are wide enough for a run to come to its end, and narrow enough to be felt. Changes of the
workload's topics, which promises are made of, are the operator's (operator.py).
"""

from __future__ import annotations

from typing import Any, Final

from cotidal.messages.rpc.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from cotidal.messages.rpc.alter_configs import AlterableConfig as OldConfig
from cotidal.messages.rpc.alter_configs import AlterConfigsRequest
from cotidal.messages.rpc.alter_configs import AlterConfigsResource as OldResource
from cotidal.messages.rpc.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from cotidal.messages.rpc.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from cotidal.messages.rpc.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)
from cotidal.messages.rpc.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from cotidal.messages.rpc.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from cotidal.sim.workloads.blunders import Blunder, Draw

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
GROUP_RESOURCE: Final = 32
SET, DELETE, APPEND, SUBTRACT = range(4)
TIMEOUT_MS: Final = 5_000

QUOTAS: Final = (
    ("producer_byte_rate", 3_000.0),
    ("consumer_byte_rate", 6_000.0),
    ("request_percentage", 80.0),
    ("controller_mutation_rate", 2.0),
)


def entry(draw: Draw, topic: str) -> Blunder:
    kinds = (_quota, _quota, _wrong_quota, _credential, _setting, _setting, _feature, _look)
    return kinds[draw(len(kinds))](draw, topic)


def _pick(draw: Draw, choices: tuple[Any, ...]) -> Any:
    return choices[draw(len(choices))]


def _quotas(entity: tuple[tuple[str, str | None], ...], *changes: OpData) -> Blunder:
    parts = tuple(AlterClientQuotasRequestEntityData(*each) for each in entity)
    request = AlterClientQuotasRequest((AlterClientQuotasRequestEntryData(parts, changes),))
    return Blunder(ApiKey.ALTER_CLIENT_QUOTAS, 1, request)


def _quota(draw: Draw, topic: str) -> Blunder:
    whose = _pick(
        draw,
        (
            (("user", None),),
            (("client-id", None),),
            (("client-id", "p0"),),
            (("user", None), ("client-id", "admin")),
            (("user", "ANONYMOUS"), ("client-id", None)),
        ),
    )
    key, value = _pick(draw, QUOTAS)
    return _quotas(whose, OpData(key, value * (1 + draw(3)), draw(3) == 0))


def _wrong_quota(draw: Draw, topic: str) -> Blunder:
    somebody = (("user", "somebody"),)
    rate = OpData("producer_byte_rate", 1_000.0)
    whose, changes = _pick(
        draw,
        (
            ((), (rate,)),
            ((("shoe", "7"),), (rate,)),
            ((("user", "a"), ("user", "b")), (rate,)),
            ((("user", ""),), (rate,)),
            ((("ip", "127.0.0.1"),), (rate,)),
            (somebody, (rate, rate)),
            (somebody, (OpData("no_such_rate", 1.0),)),
            (somebody, (OpData("producer_byte_rate", -1.0),)),
            (somebody, (OpData("producer_byte_rate", 1.5),)),
        ),
    )
    return _quotas(whose, *changes)


def _credential(draw: Draw, topic: str) -> Blunder:
    name, mechanism = _pick(draw, (("ada", 1), ("ada", 2), ("bob", 1), ("", 1), ("ada", 9)))
    if draw(3) == 0:
        gone = ScramCredentialDeletion(name, mechanism)
        request = AlterUserScramCredentialsRequest((gone,))
    else:
        iterations = _pick(draw, (4_096, 8_192, 1))
        new = ScramCredentialUpsertion(name, mechanism, iterations, b"salt", b"salted")
        request = AlterUserScramCredentialsRequest(upsertions=(new,))
    return Blunder(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, request)


def _setting(draw: Draw, topic: str) -> Blunder:
    kind, whose, name, operation, value = _pick(
        draw,
        (
            (GROUP_RESOURCE, "group-0", "consumer.session.timeout.ms", SET, "4000"),
            (GROUP_RESOURCE, "group-0", "consumer.session.timeout.ms", DELETE, None),
            (GROUP_RESOURCE, "group-1", "consumer.heartbeat.interval.ms", SET, "400"),
            (GROUP_RESOURCE, "", "consumer.session.timeout.ms", SET, "4000"),
            (BROKER_RESOURCE, "", "max.connections.per.ip", SET, "500"),
            (BROKER_RESOURCE, "", "log.cleaner.threads", SET, "1"),
            (BROKER_RESOURCE, "", "min.insync.replicas", DELETE, None),
            (BROKER_RESOURCE, "1", "min.insync.replicas", SET, "1"),
            (BROKER_RESOURCE, "1", "min.insync.replicas", DELETE, None),
            (BROKER_RESOURCE, "", "node.id", SET, "9"),
            (BROKER_RESOURCE, "", "log.cleanup.policy", APPEND, "delete"),
            (TOPIC_RESOURCE, topic, "cleanup.policy", APPEND, "delete"),
            (TOPIC_RESOURCE, topic, "no.such.list", APPEND, "delete"),
            (TOPIC_RESOURCE, topic, "leader.replication.throttled.replicas", SUBTRACT, "0:1"),
            (TOPIC_RESOURCE, topic, "leader.replication.throttled.replicas", APPEND, "0:1"),
        ),
    )
    if draw(6) == 0:
        twice = (AlterableConfig("retention.ms", SET, "1"),) * 2
        lags = (
            AlterableConfig("min.compaction.lag.ms", SET, "900"),
            AlterableConfig("max.compaction.lag.ms", SET, "800"),
        )
        wrong = AlterConfigsResource(TOPIC_RESOURCE, topic, _pick(draw, (twice, lags)))
        return Blunder(
            ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest((wrong,))
        )
    if draw(6) == 0:
        old = OldResource(GROUP_RESOURCE, "group-1", (OldConfig(name, _pick(draw, (None, "9"))),))
        return Blunder(ApiKey.ALTER_CONFIGS, 2, AlterConfigsRequest((old,)))
    resource = AlterConfigsResource(kind, whose, (AlterableConfig(name, operation, value),))
    return Blunder(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest((resource,)))


def _feature(draw: Draw, topic: str) -> Blunder:
    """Eligible leader replicas go off, if the moment allows it, and on again."""
    key = FeatureUpdateKey
    elr = "eligible.leader.replicas.version"
    updates = _pick(
        draw,
        (
            (key(elr, 1, upgrade_type=1),),
            (key(elr, 1, upgrade_type=1),),
            (key(elr, 0, upgrade_type=2),),
            (key(elr, -1, upgrade_type=2),),
            (key(elr, 1, upgrade_type=2),),
            (key(elr, 0, upgrade_type=1),),
            (key(elr, 1), key(elr, 1)),
            (key("metadata.version", 7, upgrade_type=2),),
        ),
    )
    return Blunder(ApiKey.UPDATE_FEATURES, 2, UpdateFeaturesRequest(TIMEOUT_MS, updates))


def _look(draw: Draw, topic: str) -> Blunder:
    if draw(3) == 0:
        moved = AlterReplicaLogDir("/nowhere", (AlterReplicaLogDirTopic(topic, (0, 99)),))
        return Blunder(ApiKey.ALTER_REPLICA_LOG_DIRS, 2, AlterReplicaLogDirsRequest((moved,)))
    if draw(2):
        anybody = ComponentData("client-id", 2, None)
        request = DescribeClientQuotasRequest((anybody,), strict=draw(2) == 0)
        return Blunder(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, request)
    users = DescribeUserScramCredentialsRequest(None)
    return Blunder(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, users)
