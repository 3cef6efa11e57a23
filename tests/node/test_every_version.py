"""Every answer of the data plane, refusals too, can be written in every version of its API."""

from __future__ import annotations

from typing import Any

import pytest

from asking import create, node_with
from cotidal.api.registry import APIS, Owner
from cotidal.messages.rpc import (
    alter_replica_log_dirs,
    delete_records,
    describe_log_dirs,
    fetch,
    init_producer_id,
    list_offsets,
    offset_for_leader_epoch,
    produce,
    write_txn_markers,
)
from cotidal.values import Uuid
from cotidal.wire.codec import decode_response, encode_response
from lone_node import LoneNode, batches

NO_SUCH = Uuid(b"?" * 16)
DATA_PLANE = [
    (key, version)
    for key, api in APIS.items()
    if api.owner is Owner.PARTITION
    for version in range(api.oldest, api.newest + 1)
]


def requests(key: int, version: int, topic_id: Uuid) -> list[Any]:
    """One for a partition that is there, one for a partition that is not."""
    names = ("orders", "none")
    match key:
        case 0:
            data = (produce.PartitionProduceData(0, batches(b"x")),)
            topics = [produce.TopicProduceData(name=name, partition_data=data) for name in names]
            if version >= 13:
                ids = (topic_id, NO_SUCH)
                topics = [produce.TopicProduceData("", each, data) for each in ids]
            return [produce.ProduceRequest(None, -1, 1_000, (each,)) for each in topics]
        case 1:
            parts = (fetch.FetchPartition(partition=0, partition_max_bytes=1_000),)
            wanted = [fetch.FetchTopic(topic=name, partitions=parts) for name in names]
            if version >= 13:
                wanted = [
                    fetch.FetchTopic(topic_id=each, partitions=parts)
                    for each in (topic_id, NO_SUCH)
                ]
            return [
                fetch.FetchRequest(max_bytes=1_000, min_bytes=0, topics=(each,)) for each in wanted
            ]
        case 2:
            return [
                list_offsets.ListOffsetsRequest(
                    replica_id=-1,
                    topics=(
                        list_offsets.ListOffsetsTopic(
                            name, (list_offsets.ListOffsetsPartition(0, -1, timestamp),)
                        ),
                    ),
                )
                for name in names
                for timestamp in (-1, -2, -3, 0)
            ]
        case 21:
            return [
                delete_records.DeleteRecordsRequest(
                    (
                        delete_records.DeleteRecordsTopic(
                            name, (delete_records.DeleteRecordsPartition(0, 0),)
                        ),
                    ),
                    1_000,
                )
                for name in names
            ]
        case 22:
            return [
                init_producer_id.InitProducerIdRequest(transactional_id=each)
                for each in (None, "mine")
            ]
        case 23:
            return [
                offset_for_leader_epoch.OffsetForLeaderEpochRequest(
                    topics=(
                        offset_for_leader_epoch.OffsetForLeaderTopic(
                            name, (offset_for_leader_epoch.OffsetForLeaderPartition(0, -1, 0),)
                        ),
                    )
                )
                for name in names
            ]
        case 27:
            return [
                write_txn_markers.WriteTxnMarkersRequest(
                    (
                        write_txn_markers.WritableTxnMarker(
                            7, 0, True, (write_txn_markers.WritableTxnMarkerTopic(name, (0,)),), 1
                        ),
                    )
                )
                for name in names
            ]
        case 34:
            return [
                alter_replica_log_dirs.AlterReplicaLogDirsRequest(
                    (
                        alter_replica_log_dirs.AlterReplicaLogDir(
                            "data",
                            (alter_replica_log_dirs.AlterReplicaLogDirTopic(name, (0,)),),
                        ),
                    )
                )
                for name in names
            ]
        case 35:
            return [describe_log_dirs.DescribeLogDirsRequest(None)]
        case _:
            raise AssertionError(f"API {key} has no request here: write one")


@pytest.fixture(scope="module")
def node() -> LoneNode:
    return node_with("other")


@pytest.fixture(scope="module")
def topic_id(node: LoneNode) -> Uuid:
    found: Uuid = create(node, "orders").topic_id
    return found


@pytest.mark.parametrize(("key", "version"), DATA_PLANE)
def test_an_answer_can_be_written_in_the_version_that_was_asked_for(
    node: LoneNode, topic_id: Uuid, key: int, version: int
) -> None:
    for request in requests(key, version, topic_id):
        answer = node.ask(key, version, request)
        written = b"".join(encode_response(key, version, answer))
        assert decode_response(key, version, written) is not None
