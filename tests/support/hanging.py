"""A transaction that nobody will end."""

from __future__ import annotations

from cotidal.client.cluster import Cluster
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
        leader = cluster.topic(topic).partitions[0].leader
        connection = cluster.connection(leader)
        connection._versions[ApiKey.PRODUCE] = (3, 11)
        answer = connection.call(ApiKey.PRODUCE, request, ProduceResponse)
    assert answer.responses[0].partition_responses[0].error_code == 0
