"""The order of requests and replies on one connection."""

from __future__ import annotations

import pytest

from asking import API_VERSIONS, FETCH, PRODUCE, fetch, node_with, produce
from cotidal.errors import ErrorCode
from cotidal.limits import CONNECTION_PIPELINE_MAX
from cotidal.messages.rpc.api_versions import ApiVersionsRequest
from cotidal.node.effects import Append, CloseConnection, PauseReading, ResumeReading
from cotidal.wire.frames import response_buffers

HELLO = (API_VERSIONS, 0, ApiVersionsRequest())


def test_whatever_stands_behind_a_parked_fetch_waits() -> None:
    node = node_with()
    before = len(node.replies)
    node.send(fetch(0), HELLO, produce(b"x"))
    assert len(node.replies) == before
    node.pass_time(500)
    assert [reply.api_key for reply in node.replies[before:]] == [FETCH, API_VERSIONS, PRODUCE]


def test_only_produce_runs_ahead_of_an_unanswered_produce() -> None:
    node = node_with()
    node.hold = {Append}
    before = len(node.replies)
    node.send(produce(b"a"), produce(b"b"), HELLO, produce(b"c"))
    assert [len(effect.entries) for effect in node.held] == [2]
    node.release()
    assert [reply.api_key for reply in node.replies[before:]] == [
        PRODUCE,
        PRODUCE,
        API_VERSIONS,
        PRODUCE,
    ]


def test_connections_do_not_wait_for_each_other() -> None:
    node = node_with()
    node.connect(2)
    node.send(fetch(0))
    before = len(node.replies)
    node.send(HELLO, connection=2)
    assert [reply.connection for reply in node.replies[before:]] == [2]


def test_a_client_that_sends_without_end_is_not_read_from_until_it_is_answered() -> None:
    node = node_with()
    node.hold = {Append}
    node.send(*(produce(b"x") for _ in range(CONNECTION_PIPELINE_MAX + 1)))
    assert isinstance(node.other[-1], PauseReading)
    node.release()
    assert isinstance(node.other[-1], ResumeReading)


def test_an_api_that_is_not_served_closes_the_connection() -> None:
    node = node_with()
    node.send((72, 0, object()))
    assert isinstance(node.other[-1], CloseConnection)


@pytest.mark.parametrize("version", [5, 99, 32_767, -1])
def test_an_unknown_version_of_api_versions_is_answered_in_version_0(version: int) -> None:
    node = node_with()
    reply = node.ask(API_VERSIONS, version, None)
    assert reply.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert node.replies[-1].api_version == 0
    response_buffers(API_VERSIONS, node.replies[-1].api_version, 1, reply)
