"""Bytes after a request: clients send them, Apache Kafka leaves them alone, and so do we."""

from __future__ import annotations

import pytest

from cotidal.errors import MalformedFrame
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.metadata import MetadataRequest, MetadataResponse
from cotidal.wire.codec import decode_request, decode_response, encode_request, encode_response


def test_bytes_after_a_request_are_left_alone() -> None:
    asked = MetadataRequest(topics=None)
    body = b"".join(map(bytes, encode_request(ApiKey.METADATA, 12, asked)))
    assert decode_request(ApiKey.METADATA, 12, body + b"\0\0\0", 0) == asked


def test_bytes_after_a_response_are_refused() -> None:
    body = b"".join(map(bytes, encode_response(ApiKey.METADATA, 12, MetadataResponse())))
    with pytest.raises(MalformedFrame, match="follow the end"):
        decode_response(ApiKey.METADATA, 12, body + b"\0", 0)
