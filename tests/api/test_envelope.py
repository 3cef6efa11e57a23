from __future__ import annotations

from cotidal.api.envelope import answer
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.envelope import EnvelopeRequest, EnvelopeResponse


def test_an_envelope_that_could_not_be_opened_is_sent_back(cluster, asked, encodes):
    reply = answer(EnvelopeRequest(b"\x00\x1d"), asked(0), cluster.view)
    assert reply.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert encodes(58, 0, reply) == EnvelopeResponse(None, ErrorCode.UNSUPPORTED_VERSION)
