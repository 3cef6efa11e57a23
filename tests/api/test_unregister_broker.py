from __future__ import annotations

from cotidal.api.unregister_broker import decide
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.unregister_broker import UnregisterBrokerRequest


def test_broker_that_is_gone_can_be_forgotten(cluster, asked):
    decision = decide(UnregisterBrokerRequest(4), asked(0), cluster.controller)
    assert cluster.commit(decision) == (0, ErrorCode.NONE, None)
    assert 4 not in cluster.image.brokers
    assert cluster.image.partition("lonely", 0).replicas == (4,)


def test_broker_that_runs_or_that_nobody_knows_is_refused(cluster, asked):
    for number, error in (
        (1, ErrorCode.INVALID_REQUEST),
        (9, ErrorCode.BROKER_ID_NOT_REGISTERED),
    ):
        decision = decide(UnregisterBrokerRequest(number), asked(0), cluster.controller)
        assert (decision.records, decision.reply.error_code) == ((), error)
        assert decision.reply.error_message
