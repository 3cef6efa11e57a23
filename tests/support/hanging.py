"""A transaction that nobody will end."""

from __future__ import annotations

from cotidal.client.backoff import Backoff
from cotidal.client.cluster import Cluster
from cotidal.client.failures import known_code
from cotidal.errors import RETRIABLE, ErrorCode
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from cotidal.wire.batch import read_batches
from cotidal.wire.records import Record, build_batch

UNVERIFIED = {"transaction.partition.verification.enable": "false"}
"""Brokers with this setting take it."""


def hang(bootstrap: str, topic: str) -> None:
    """A batch of a producer that no coordinator knows, as it came before brokers verified them."""
    data = build_batch(
        [Record(None, b"v", timestamp=1)],
        producer_id=77,
        producer_epoch=3,
        base_sequence=0,
        transactional=True,
    )
    written = PartitionProduceData(0, read_batches(data))
    request = ProduceRequest(
        "ghost", -1, 5_000, (TopicProduceData(topic, partition_data=(written,)),)
    )
    with Cluster(bootstrap) as cluster:
        backoff = Backoff(timeout_s=cluster.timeout_s)
        while (error := _written(cluster, topic, request)) is not ErrorCode.NONE:
            # Its leader may hear of a new topic later than whoever named it.
            assert error in RETRIABLE, error
            assert backoff.wait(), error


def _written(cluster: Cluster, topic: str, request: ProduceRequest) -> ErrorCode:
    connection = cluster.connection(cluster.topic(topic).partitions[0].leader)
    connection._versions[ApiKey.PRODUCE] = (3, 11)
    answer = connection.call(ApiKey.PRODUCE, request, ProduceResponse)
    return known_code(answer.responses[0].partition_responses[0].error_code)
