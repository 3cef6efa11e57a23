from __future__ import annotations

from cotidal.core.cluster.decide.producer_ids import decide_producer_ids
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.records.metadata import ProducerIdsRecord


def ask(cluster, number, epoch=None):
    return decide_producer_ids(
        cluster.controller,
        node_id=number,
        broker_epoch=cluster.epoch(number) if epoch is None else epoch,
    )


def test_blocks_follow_each_other_without_sharing_an_id(scene):
    cluster = scene()
    blocks = []
    for number in (1, 2, 1):
        block = ask(cluster, number)
        cluster.apply(block.records)
        blocks.append((block.first, block.length))
    assert blocks == [(0, 1000), (1000, 1000), (2000, 1000)]


def test_broker_of_another_epoch_gets_none(scene):
    cluster = scene()
    refused = ask(cluster, 1, epoch=cluster.epoch(1) + 1)
    assert isinstance(refused, Refusal)
    assert refused.error is ErrorCode.STALE_BROKER_EPOCH
    unknown = decide_producer_ids(cluster.controller, node_id=9, broker_epoch=1)
    assert isinstance(unknown, Refusal)


def test_last_ids_are_not_handed_out_twice(scene):
    cluster = scene()
    cluster.image.replay(ProducerIdsRecord(1, 1, 2**63 - 500))
    refused = ask(cluster, 1)
    assert isinstance(refused, Refusal)
    assert refused.error is ErrorCode.UNKNOWN_SERVER_ERROR
