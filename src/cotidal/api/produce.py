"""Produce (key 0), versions 3-13, advertised from 0 (librdkafka drops compression otherwise,
KAFKA-18659). KIP-98 transactions; KIP-951 who leads, in the answer of who does not, from 10 on;
KIP-890 from 12 on a partition is added to its transaction by the broker; KIP-516 topic ids from 13
on; KIP-467 which records are at fault, from 8 on.

Not there: nothing of the protocol.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, cast

from cotidal.api.leaders import Leader
from cotidal.errors import RecordFault, Refusal
from cotidal.messages.rpc.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from cotidal.values import Offset, Uuid, WallMillis

TOPIC_IDS_SINCE: Final = 13
LEADERS_TOLD_SINCE: Final = 10
ACKS_ALLOWED: Final = (-1, 0, 1)

_NO_LEADER: Final = LeaderIdAndEpoch()
_new: Final = tuple.__new__
"""Makes a NamedTuple in half the time that calling its class takes."""


def partition_refused(
    partition: int,
    refusal: Refusal,
    faults: tuple[RecordFault, ...] = (),
    leader: Leader | None = None,
) -> PartitionProduceResponse:
    """``faults``: of the refusal, those to be told; ``leader``: who would not have refused."""
    return PartitionProduceResponse(
        partition_index=partition,
        error_code=refusal.error,
        base_offset=-1,
        log_append_time_ms=-1,
        log_start_offset=-1,
        record_errors=tuple([BatchIndexAndErrorMessage(*each) for each in faults]),
        error_message=refusal.text,
        current_leader=_NO_LEADER if leader is None else LeaderIdAndEpoch(*leader[:2]),
    )


def partition_written(
    partition: int, *, base_offset: Offset, append_time: WallMillis, log_start_offset: Offset
) -> PartitionProduceResponse:
    written = (partition, 0, base_offset, append_time, log_start_offset, (), None, _NO_LEADER)
    return _new(PartitionProduceResponse, written)


def response(
    topics: list[tuple[str, Uuid, list[int | PartitionProduceResponse]]],
    leaders: Collection[Leader] = (),
) -> ProduceResponse:
    """Every place filled. ``leaders``: all that are named in them."""
    answered = []
    for name, topic_id, partitions in topics:
        filled = cast("list[PartitionProduceResponse]", partitions)
        answered.append(_new(TopicProduceResponse, (name, topic_id, tuple(filled))))
    points: tuple[NodeEndpoint, ...] = ()
    if leaders:
        points = tuple([NodeEndpoint(each.node_id, *each[2:]) for each in leaders])
    return _new(ProduceResponse, (tuple(answered), 0, points))
