"""The answer to a Produce."""

from __future__ import annotations

from cotidal.api import produce as api
from cotidal.messages.rpc.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from cotidal.values import Offset, Uuid, WallMillis

TOPIC = Uuid(bytes(range(16)))


def test_an_answer_that_is_put_together_by_position_is_what_its_classes_make() -> None:
    written = api.partition_written(
        3, base_offset=Offset(7), append_time=WallMillis(11), log_start_offset=Offset(5)
    )
    assert written == PartitionProduceResponse(
        partition_index=3, base_offset=7, log_append_time_ms=11, log_start_offset=5
    )
    answer = api.response([("orders", TOPIC, [written])])
    assert answer == ProduceResponse(responses=(TopicProduceResponse("orders", TOPIC, (written,)),))
    assert (type(written), type(answer)) == (PartitionProduceResponse, ProduceResponse)
