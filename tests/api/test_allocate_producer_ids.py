from __future__ import annotations

from cotidal.api.allocate_producer_ids import decide
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.allocate_producer_ids import AllocateProducerIdsRequest


def test_blocks_do_not_overlap(cluster, asked):
    given = []
    for number in (1, 2, 1):
        request = AllocateProducerIdsRequest(number, cluster.epoch(number))
        reply = cluster.commit(decide(request, asked(0), cluster.controller))
        given.append((reply.producer_id_start, reply.producer_id_len))
    assert given == [(0, 1000), (1000, 1000), (2000, 1000)]


def test_stale_broker_gets_none(cluster, asked):
    decision = decide(AllocateProducerIdsRequest(1, 99), asked(0), cluster.controller)
    assert (decision.records, decision.reply.error_code) == ((), ErrorCode.STALE_BROKER_EPOCH)
