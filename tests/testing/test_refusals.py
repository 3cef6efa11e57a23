"""Every API that clients use can be refused, in each of its versions."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from cotidal.api.registry import APIS, Owner
from cotidal.errors import ErrorCode
from cotidal.messages.rpc import (
    add_partitions_to_txn,
    fetch,
    find_coordinator,
    list_offsets,
    metadata,
    offset_commit,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    txn_offset_commit,
)
from cotidal.messages.rpc.apis import APIS as KNOWN
from cotidal.testing.refusals import refused
from cotidal.values import Uuid
from cotidal.wire.codec import decode_response, encode_response

ERROR = ErrorCode.NOT_LEADER_OR_FOLLOWER
ID = Uuid(b"i" * 16)


def requests(version: int) -> dict[int, Any]:
    """With parts, in the form of this version."""
    written = (produce.PartitionProduceData(3),)
    wanted = (fetch.FetchPartition(3),)
    commits = (offset_commit.OffsetCommitRequestPartition(3),)
    added = (add_partitions_to_txn.AddPartitionsToTxnTopic("t", (3,)),)
    return {
        0: produce.ProduceRequest(
            topic_data=(
                produce.TopicProduceData("", ID, written)
                if version >= 13
                else produce.TopicProduceData("t", partition_data=written),
            )
        ),
        1: fetch.FetchRequest(
            topics=(
                fetch.FetchTopic("", ID, wanted)
                if version >= 13
                else fetch.FetchTopic("t", partitions=wanted),
            )
        ),
        2: list_offsets.ListOffsetsRequest(
            topics=(list_offsets.ListOffsetsTopic("t", (list_offsets.ListOffsetsPartition(3),)),)
        ),
        3: metadata.MetadataRequest((metadata.MetadataRequestTopic(name="t"),)),
        8: offset_commit.OffsetCommitRequest(
            topics=(
                offset_commit.OffsetCommitRequestTopic("", ID, commits)
                if version >= 10
                else offset_commit.OffsetCommitRequestTopic("t", partitions=commits),
            )
        ),
        9: offset_fetch.OffsetFetchRequest(
            "g", groups=(offset_fetch.OffsetFetchRequestGroup("g"),)
        ),
        10: find_coordinator.FindCoordinatorRequest("g", 0, ("g",)),
        23: offset_for_leader_epoch.OffsetForLeaderEpochRequest(
            topics=(
                offset_for_leader_epoch.OffsetForLeaderTopic(
                    "t", (offset_for_leader_epoch.OffsetForLeaderPartition(3),)
                ),
            )
        ),
        24: add_partitions_to_txn.AddPartitionsToTxnRequest(v3_and_below_topics=added),
        28: txn_offset_commit.TxnOffsetCommitRequest(
            topics=(
                txn_offset_commit.TxnOffsetCommitRequestTopic(
                    "t", (txn_offset_commit.TxnOffsetCommitRequestPartition(3),)
                ),
            )
        ),
    }


OF_CLIENTS = [
    (key, version)
    for key, api in APIS.items()
    if api.owner in (Owner.PARTITION, Owner.COORDINATOR, Owner.BROKER)
    if key in requests(0) or key in (11, 12, 13, 14, 16, 22, 25, 26, 47, 60, 66)
    for version in range(api.oldest, api.newest + 1)
]


def said(value: Any) -> set[int]:
    """Every error code in an answer."""
    found: set[int] = set()
    if isinstance(value, tuple):
        for name, each in zip(getattr(value, "_fields", ("",) * len(value)), value, strict=True):
            if name.endswith("error_code") and each:
                found.add(each)
            found |= said(each)
    return found


@pytest.mark.parametrize(("key", "version"), OF_CLIENTS)
def test_a_refusal_can_be_written_and_says_the_error(key: int, version: int) -> None:
    module = import_module(f"cotidal.messages.rpc.{KNOWN[key].module}")
    request = requests(version).get(key) or getattr(module, f"{APIS[key].name}Request")()
    buffers = encode_response(key, version, refused(request, version, ERROR))
    data = b"".join(bytes(each) for each in buffers) if isinstance(buffers, list) else buffers
    reply = decode_response(key, version, bytes(data))
    silent = (key, version) in {(9, 1)}  # OffsetFetch 1 says errors by partition only
    assert said(reply) == (set() if silent else {ERROR})


def test_an_answer_without_room_for_one_error_must_be_given_whole() -> None:
    from cotidal.messages.rpc.create_topics import CreateTopicsRequest

    with pytest.raises(TypeError, match="reply with a CreateTopicsResponse"):
        refused(CreateTopicsRequest(), 7, ERROR)
