from __future__ import annotations

import pytest

from cotidal.api.broker_registration import decide
from cotidal.core.cluster.decide.features import SUPPORTED
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.broker_registration import BrokerRegistrationRequest, Feature, Listener
from cotidal.values import Uuid


def ask(number, *, life=9, **fields):
    given = {
        "broker_id": number,
        "cluster_id": "cluster-of-tests",
        "incarnation_id": Uuid(bytes([life] * 16)),
        "listeners": (Listener("PLAINTEXT", "h", 9092, 0),),
        "features": tuple(Feature(*each) for each in SUPPORTED),
        "rack": "r",
        "log_dirs": (Uuid(b"d" * 16),),
        **fields,
    }
    return BrokerRegistrationRequest(**given)


def test_broker_gets_the_offset_of_its_record_as_epoch(cluster, asked):
    decision = decide(ask(7), asked(4), cluster.controller, cluster.active(end_offset=321))
    reply = cluster.commit(decision)
    assert (reply.error_code, reply.broker_epoch) == (ErrorCode.NONE, 321)
    broker = cluster.image.brokers[7]
    assert (broker.epoch, broker.rack, broker.fenced) == (321, "r", True)
    assert broker.log_dirs == (Uuid(b"d" * 16),)


def test_same_incarnation_keeps_its_epoch(cluster, asked):
    decision = decide(ask(1, life=1), asked(4), cluster.controller, cluster.active())
    assert cluster.commit(decision).broker_epoch == cluster.epoch(1) == 1


def test_epoch_of_a_clean_shutdown_is_heard(cluster, asked):
    """Broker 4 is fenced, and eligible for lonely-0."""
    assert cluster.image.partition("lonely", 0).elr == (4,)
    clean = ask(4, previous_broker_epoch=cluster.epoch(4))
    cluster.commit(decide(clean, asked(4), cluster.controller, cluster.active()))
    assert cluster.image.partition("lonely", 0).elr == (4,)
    cluster.commit(decide(ask(4, life=8), asked(4), cluster.controller, cluster.active()))
    assert cluster.image.partition("lonely", 0).elr == ()


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (ask(7, cluster_id="another"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (ask(7, is_migrating_zk_broker=True), ErrorCode.INVALID_REGISTRATION),
        (ask(7, listeners=()), ErrorCode.INVALID_REGISTRATION),
        (ask(7, features=()), ErrorCode.UNSUPPORTED_VERSION),
        (ask(1), ErrorCode.DUPLICATE_BROKER_REGISTRATION),
    ],
)
def test_registration_that_cannot_be_is_refused(cluster, asked, request_, error):
    decision = decide(request_, asked(4), cluster.controller, cluster.active())
    assert (decision.records, decision.reply.error_code) == ((), error)


def test_registration_counts_as_a_sign_of_life(cluster, asked):
    active = cluster.active(now=5_000)
    cluster.commit(decide(ask(7), asked(4), cluster.controller, active))
    assert active.duties.sessions.of[7].last_contact == 5_000
