"""What a broker of another make passes on to the controller for its client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cotidal.broker.envelopes import ENVELOPE, open_envelope, sealed
from cotidal.messages.rpc.api_versions import ApiVersionsRequest, ApiVersionsResponse
from cotidal.messages.rpc.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from cotidal.messages.rpc.envelope import EnvelopeRequest, EnvelopeResponse
from cotidal.messages.rpc.fetch import FetchRequest
from cotidal.node.effects import Respond
from cotidal.node.events import ConnectionId
from cotidal.wire.codec import decode_response
from cotidal.wire.frames import read_response_header, request_buffers

SERVED = {1: (4, 18), 19: (2, 7), 58: (0, 0)}
ASKED = CreateTopicsRequest((CreatableTopic("orders", 3, 2),), 1000)


def frame(key: int, version: int, correlation: int, message: object) -> bytes:
    return b"".join(request_buffers(key, version, correlation, "shop", message))


def around(key: int, version: int, correlation: int, message: object) -> EnvelopeRequest:
    """As a broker wraps it: the frame without its length."""
    return EnvelopeRequest(frame(key, version, correlation, message)[4:], b"principal", b"\x7f")


@pytest.mark.parametrize("version", [4, 7])
def test_the_clients_request_is_found_inside(version: int) -> None:
    inside = open_envelope(around(19, version, 77, ASKED), SERVED)
    assert inside is not None
    assert inside == (19, version, 77, "shop", ASKED)


def test_the_answer_goes_back_in_an_envelope() -> None:
    reply = CreateTopicsResponse(topics=(CreatableTopicResult("orders"),))
    whole = b"".join(sealed(Respond(ConnectionId(1), 19, 7, 5, reply), correlation_id=77))
    correlation, position = read_response_header(whole[4:], ENVELOPE, 0)
    assert correlation == 5
    envelope = decode_response(ENVELOPE, 0, whole[4:], position)
    assert isinstance(envelope, EnvelopeResponse)
    assert envelope.error_code == 0
    assert envelope.response_data is not None
    correlation, position = read_response_header(envelope.response_data, 19, 7)
    assert correlation == 77
    assert decode_response(19, 7, envelope.response_data, position) == reply


@pytest.mark.parametrize(
    "envelope",
    [
        EnvelopeRequest(b"\x00\x13\x00\x01" + around(19, 2, 77, ASKED).request_data[4:]),
        around(18, 3, 77, ApiVersionsRequest()),
        around(1, 12, 77, FetchRequest()),
        around(58, 0, 77, EnvelopeRequest()),
        EnvelopeRequest(b"\x00"),
        EnvelopeRequest(around(19, 7, 77, ASKED).request_data[:-4]),
    ],
    ids=["old version", "not served", "fetch", "envelope", "no header", "cut"],
)
def test_what_is_not_served_stays_closed(envelope: EnvelopeRequest) -> None:
    assert open_envelope(envelope, SERVED) is None


def test_over_a_connection_answers_keep_their_order_and_their_envelopes(
    scripted: Callable[..., None],
) -> None:
    def versions(correlation: int) -> bytes:
        return frame(18, 3, correlation, ApiVersionsRequest())

    async def play(world: Any) -> None:
        client = await world.connect()
        client.send(versions(1) + frame(58, 0, 2, around(18, 3, 77, ApiVersionsRequest())))
        client.send(versions(3))
        assert await client.correlation() == 1
        answer = await client.frame()
        correlation, position = read_response_header(answer, ENVELOPE, 0)
        assert correlation == 2
        envelope = decode_response(ENVELOPE, 0, answer, position)
        assert isinstance(envelope, EnvelopeResponse)
        assert envelope.response_data is not None
        correlation, position = read_response_header(envelope.response_data, 18, 3)
        assert correlation == 77
        inside = decode_response(18, 3, envelope.response_data, position)
        assert isinstance(inside, ApiVersionsResponse)
        assert await client.correlation() == 3

    scripted(play)
