"""Meaningless requests, given to a node by hand: each is answered once, in words that can be sent.

Beside the attack on a real process this one is exact: no sockets, no clock, and a failure names the
request.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from asking import create
from cotidal.errors import ErrorCode
from cotidal.limits import FETCH_WAIT_MAX_MS
from cotidal.values import Uuid
from cotidal.wire.codec import decode_request, decode_response
from cotidal.wire.frames import read_request_header, read_response_header, response_buffers
from lone_node import LoneNode
from tests.fuzz.hostile import Hostility, Prey

INPUTS = 1_000
PRODUCE = 0


def answers(seed: int) -> list[Any]:
    """What a node answers to so many meaningless requests, each on a connection of its own."""
    node = LoneNode({"auto.create.topics.enable": "false"}).start()
    prey = Prey("prey", Uuid(create(node, "prey", 3).topic_id))
    hostility = Hostility(seed, prey)
    connections = count(2)
    decoded = []
    for _ in range(INPUTS):
        frame = hostility.meaningless().data[4:]
        key, version, correlation, _, position = read_request_header(frame)
        message = decode_request(key, version, frame, position)
        connection = next(connections)
        node.connect(connection)
        before = len(node.replies)
        node.send((key, version, message), connection=connection)
        if len(node.replies) == before:
            node.pass_time(FETCH_WAIT_MAX_MS)
        expected = 0 if key == PRODUCE and message.acks == 0 else 1
        assert len(node.replies) == before + expected, message
        if expected:
            reply = node.replies[-1].message
            sent = b"".join(response_buffers(key, version, correlation, reply))[4:]
            got, body = read_response_header(sent, key, version)
            assert got == correlation
            decoded.append(decode_response(key, version, sent, body))
    return decoded


@pytest.mark.parametrize("seed", range(8))
def test_every_meaningless_request_is_answered_once(seed: int) -> None:
    assert len(answers(seed)) > INPUTS * 0.9


def test_they_are_refused_in_many_ways_and_some_are_not() -> None:
    codes = {code for each in answers(seed=8) for code in error_codes(each)}
    assert ErrorCode.NONE in codes
    assert len(codes) > 15, codes


def error_codes(value: Any) -> set[int]:
    """Every error code of a response, at any depth."""
    found: set[int] = set()
    if isinstance(value, tuple):
        for name in getattr(value, "_fields", ()):
            if name == "error_code":
                found.add(getattr(value, name))
        for each in value:
            found |= error_codes(each)
    return found
