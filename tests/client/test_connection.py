from __future__ import annotations

import socket
import tracemalloc
from typing import Any

import pytest

from cotidal.client.addresses import Address
from cotidal.client.connection import Connection
from cotidal.client.failures import ProtocolMismatch, TimedOut, Unreachable
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.api_versions import ApiVersion, ApiVersionsResponse
from cotidal.messages.rpc.apis import APIS, ApiKey
from cotidal.messages.rpc.metadata import MetadataRequest, MetadataResponse

ASK = (ApiKey.METADATA, MetadataRequest(None), MetadataResponse)


def address_of(broker: Any) -> Address:
    return Address("127.0.0.1", broker.port)


def cluster_named(name: str) -> Any:
    return lambda _request, _version: MetadataResponse(cluster_id=name)


def test_a_request_goes_out_in_the_newest_version_that_both_speak(scripted_broker: Any) -> None:
    broker = scripted_broker(
        {
            ApiKey.API_VERSIONS: lambda _request, _version: ApiVersionsResponse(
                api_keys=(ApiVersion(ApiKey.METADATA, 0, 9),)
            ),
            ApiKey.METADATA: cluster_named("c"),
        }
    )
    with Connection(address_of(broker)) as connection:
        assert connection.call(*ASK).cluster_id == "c"
    assert [version for key, version, _ in broker.requests if key == ApiKey.METADATA] == [9]


def test_the_client_names_itself_when_it_asks_for_versions(scripted_broker: Any) -> None:
    broker = scripted_broker()
    Connection(address_of(broker)).close()
    [request] = broker.asked(ApiKey.API_VERSIONS)
    assert request.client_software_name == "cotidal"


def test_a_broker_that_does_not_know_our_api_versions_is_asked_in_one_it_knows(
    scripted_broker: Any,
) -> None:
    def older(_request: Any, version: int) -> object:
        ranges = (ApiVersion(ApiKey.API_VERSIONS, 0, 2), ApiVersion(ApiKey.METADATA, 0, 5))
        if version > 2:
            return ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION, ranges), 0
        return ApiVersionsResponse(api_keys=ranges)

    broker = scripted_broker({ApiKey.API_VERSIONS: older, ApiKey.METADATA: cluster_named("old")})
    with Connection(address_of(broker)) as connection:
        assert connection.call(*ASK).cluster_id == "old"
    assert [version for key, version, _ in broker.requests] == [
        APIS[ApiKey.API_VERSIONS].last_stable_version,
        2,
        5,
    ]


def test_an_api_that_the_broker_lacks_is_named(scripted_broker: Any) -> None:
    broker = scripted_broker(
        {
            ApiKey.API_VERSIONS: lambda _request, _version: ApiVersionsResponse(
                api_keys=(ApiVersion(ApiKey.API_VERSIONS, 0, 4),)
            )
        }
    )
    with (
        Connection(address_of(broker)) as connection,
        pytest.raises(ProtocolMismatch, match="does not serve Metadata"),
    ):
        connection.call(*ASK)


def test_versions_without_overlap_are_told_with_both_ranges(scripted_broker: Any) -> None:
    broker = scripted_broker(
        {
            ApiKey.API_VERSIONS: lambda _request, _version: ApiVersionsResponse(
                api_keys=(ApiVersion(ApiKey.METADATA, 90, 91),)
            )
        }
    )
    with (
        Connection(address_of(broker)) as connection,
        pytest.raises(ProtocolMismatch, match="in versions 90 to 91, this client 0 to"),
    ):
        connection.call(*ASK)


def test_answers_come_back_in_the_order_of_their_requests(scripted_broker: Any) -> None:
    broker = scripted_broker(
        {ApiKey.METADATA: [cluster_named("first"), cluster_named("second"), cluster_named("third")]}
    )
    with Connection(address_of(broker)) as connection:
        for _ in range(3):
            connection.send(ApiKey.METADATA, MetadataRequest(None))
        names = [connection.receive(MetadataResponse).cluster_id for _ in range(3)]
    assert names == ["first", "second", "third"]


def test_a_refused_connection_is_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(Unreachable) as caught:
        Connection(Address("127.0.0.1", port))
    assert str(caught.value) == f"cannot reach 127.0.0.1:{port}: connection refused"


def test_a_connection_lost_while_waiting_is_told_and_closed(
    scripted_broker: Any, hang_up: Any
) -> None:
    broker = scripted_broker({ApiKey.METADATA: hang_up})
    connection = Connection(address_of(broker))
    with pytest.raises(Unreachable, match="closed by the other side"):
        connection.call(*ASK)
    assert not connection.is_open
    with pytest.raises(Unreachable, match="the connection is closed"):
        connection.call(*ASK)


def test_silence_ends_with_the_time_out(scripted_broker: Any, silence: Any) -> None:
    broker = scripted_broker({ApiKey.METADATA: silence})
    connection = Connection(address_of(broker))
    with pytest.raises(TimedOut, match="was asked for Metadata and did not answer within"):
        connection.call(*ASK, timeout_s=0.1)
    assert not connection.is_open


def test_an_answer_to_another_request_closes_the_connection(scripted_broker: Any, raw: Any) -> None:
    broker = scripted_broker({ApiKey.METADATA: raw(b"\0\0\0\5\0\0\7\7\0")})
    connection = Connection(address_of(broker))
    with pytest.raises(ProtocolMismatch, match="a request that was not asked"):
        connection.call(*ASK)
    assert not connection.is_open


def test_an_answer_that_cannot_be_read_closes_the_connection(
    scripted_broker: Any, raw: Any
) -> None:
    broker = scripted_broker({ApiKey.METADATA: raw(b"\0\0\0\6\0\0\0\2\0\xff")})
    connection = Connection(address_of(broker))
    with pytest.raises(ProtocolMismatch, match="cannot be read"):
        connection.call(*ASK)
    assert not connection.is_open


@pytest.mark.parametrize("size", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\0\0\0\0", b"HTTP"])
def test_an_implausible_size_is_refused_before_anything_is_read(
    scripted_broker: Any, raw: Any, size: bytes
) -> None:
    broker = scripted_broker({ApiKey.METADATA: raw(size)})
    connection = Connection(address_of(broker))
    with pytest.raises(ProtocolMismatch, match="is it a Kafka broker"):
        connection.call(*ASK)


def test_a_large_promise_that_is_not_kept_allocates_nothing(scripted_broker: Any, raw: Any) -> None:
    broker = scripted_broker({ApiKey.METADATA: raw((200 * 1024 * 1024).to_bytes(4, "big"))})
    connection = Connection(address_of(broker))
    tracemalloc.start()
    try:
        with pytest.raises(TimedOut):
            connection.call(*ASK, timeout_s=0.1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * 1024 * 1024
