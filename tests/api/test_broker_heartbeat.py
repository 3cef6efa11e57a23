from __future__ import annotations

from cotidal.api.broker_heartbeat import decide
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.broker_heartbeat import BrokerHeartbeatRequest
from cotidal.values import Uuid


def ask(cluster, number, *, offset=500, epoch=None, **fields):
    epoch = cluster.epoch(number) if epoch is None else epoch
    return BrokerHeartbeatRequest(number, epoch, offset, **fields)


def test_active_broker_is_told_that_it_takes_part(cluster, asked):
    active = cluster.active(now=4_000)
    decision = decide(ask(cluster, 1), asked(2), cluster.controller, active)
    assert decision.records == ()
    assert decision.reply == (0, ErrorCode.NONE, True, False, False)
    session = active.duties.sessions.of[1]
    assert (session.last_contact, session.metadata_offset) == (4_000, 500)


def test_fenced_broker_is_let_in_when_it_has_caught_up(cluster, asked):
    active = cluster.active()
    behind = decide(ask(cluster, 4, offset=3), asked(0), cluster.controller, active)
    assert (behind.reply.is_caught_up, behind.reply.is_fenced) == (False, True)
    reply = cluster.commit(decide(ask(cluster, 4), asked(0), cluster.controller, active))
    assert (reply.is_caught_up, reply.is_fenced) == (True, False)
    assert cluster.image.partition("lonely", 0).leader == 4


def test_broker_that_wants_to_be_fenced_is(cluster, asked):
    request = ask(cluster, 1, want_fence=True)
    reply = cluster.commit(decide(request, asked(0), cluster.controller, cluster.active()))
    assert reply.is_fenced
    assert cluster.image.partition("orders", 0).leader == 2


def test_shutdown_takes_until_everyone_knows(cluster, asked):
    active = cluster.active(end_offset=500)

    def leave():
        request = ask(cluster, 1, want_shut_down=True)
        return cluster.commit(decide(request, asked(0), cluster.controller, active))

    assert not leave().should_shut_down
    assert cluster.image.brokers[1].in_controlled_shutdown
    assert active.duties.sessions.of[1].shutdown_offset == 503, "four records: it was in 3 ISRs"
    for number in (2, 3):
        cluster.commit(
            decide(ask(cluster, number, offset=503), asked(0), cluster.controller, active)
        )
    assert leave().should_shut_down


def test_stale_epoch_is_told(cluster, asked):
    request = ask(cluster, 1, epoch=99)
    reply = decide(request, asked(0), cluster.controller, cluster.active()).reply
    assert (reply.error_code, reply.is_fenced) == (ErrorCode.STALE_BROKER_EPOCH, True)


def test_cordoned_directories_are_heard(cluster, asked):
    request = ask(cluster, 1, cordoned_log_dirs=(Uuid(b"d" * 16),))
    cluster.commit(decide(request, asked(2), cluster.controller, cluster.active()))
    assert cluster.image.brokers[1].cordoned_log_dirs == (Uuid(b"d" * 16),)
