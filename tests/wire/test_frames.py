"""Frames: cut from a stream however it arrives, headers of every kind."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotidal.errors import MalformedFrame, UnsupportedRequest
from cotidal.messages.rpc.api_versions import ApiVersionsRequest, ApiVersionsResponse
from cotidal.messages.rpc.apis import APIS, ApiKey
from cotidal.messages.rpc.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from cotidal.messages.rpc.heartbeat import HeartbeatRequest, HeartbeatResponse
from cotidal.messages.rpc.metadata import MetadataRequest
from cotidal.wire import frames
from cotidal.wire.batch import read_batches
from cotidal.wire.codec import decode_request, decode_response
from cotidal.wire.frames import (
    SMALL_FRAME_BYTES,
    FrameReader,
    read_request_header,
    read_response_header,
    request_buffers,
    response_buffers,
)
from cotidal.wire.records import Record, build_batch


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


@given(
    st.lists(
        st.sampled_from([0, 1, 3, 50, SMALL_FRAME_BYTES, SMALL_FRAME_BYTES + 1, 9000]), max_size=6
    ),
    st.data(),
)
def test_frames_are_the_same_however_the_stream_is_cut(
    sizes: list[int], data: st.DataObject
) -> None:
    bodies = [bytes([i + 1]) * size for i, size in enumerate(sizes)]
    stream = b"".join(map(framed, bodies))
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8).map(sorted))
    reader = FrameReader(10_000)
    found = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += reader.feed(stream[start:end])
    assert [bytes(frame) for frame in found] == bodies
    assert reader.pending_bytes == 0


def test_frames_fed_byte_by_byte_come_out_whole() -> None:
    bodies = [b"", b"abc", b"x" * 5000, b"end"]
    reader = FrameReader(10_000)
    found = [bytes(f) for byte in b"".join(map(framed, bodies)) for f in reader.feed(bytes([byte]))]
    assert found == bodies


def test_all_complete_frames_of_a_read_come_at_once_and_the_rest_is_kept() -> None:
    reader = FrameReader(100)
    assert reader.feed(framed(b"a") + framed(b"bc") + b"\0\0\0\x05de") == [b"a", b"bc"]
    assert reader.pending_bytes == 6
    assert [bytes(f) for f in reader.feed(b"fgh")] == [b"defgh"]


@pytest.mark.parametrize("split", [0, 1, 2, 3, 4])
@pytest.mark.parametrize(
    ("length", "complaint"),
    [(b"\xff\xff\xff\xff", "negative"), (b"\0\0\0\x65", "more than the 100")],
)
def test_a_length_out_of_bounds_is_refused(length: bytes, complaint: str, split: int) -> None:
    reader = FrameReader(100)
    data = length + b"x"

    def feed() -> None:
        reader.feed(data[:split])
        reader.feed(data[split:])

    with pytest.raises(MalformedFrame, match=complaint):
        feed()


def test_a_claimed_length_allocates_nothing() -> None:
    reader = FrameReader(2**31 - 1)
    tracemalloc.start()
    try:
        reader.feed(b"\x7f\xff\xff\xff")
        reader.feed(b"abc")
        assert tracemalloc.get_traced_memory()[1] < 10_000
    finally:
        tracemalloc.stop()


def test_a_large_frame_in_many_pieces_is_copied_once() -> None:
    piece = bytes(65_536)
    pieces = 200
    reader = FrameReader(2**31 - 1)
    tracemalloc.start()
    try:
        assert reader.feed((pieces * len(piece)).to_bytes(4, "big")) == []
        for _ in range(pieces - 1):
            assert reader.feed(piece) == []
        # Pieces are held as they came: so far nothing was copied.
        assert tracemalloc.get_traced_memory()[1] < 100_000
        (frame,) = reader.feed(piece)
        assert tracemalloc.get_traced_memory()[1] < 1.1 * pieces * len(piece)
    finally:
        tracemalloc.stop()
    assert len(frame) == pieces * len(piece)


def test_a_dribbling_peer_costs_what_it_sends_and_not_more() -> None:
    reader = FrameReader(2**31 - 1)
    reader.feed((10**6).to_bytes(4, "big"))
    tracemalloc.start()
    try:
        for _ in range(20_000):
            reader.feed(b"x")
        kept = tracemalloc.take_snapshot().filter_traces(
            [tracemalloc.Filter(True, frames.__file__)]
        )
        assert 20_000 <= sum(each.size for each in kept.traces) < 60_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("client_id", [None, "", "rdkafka", "é"])
@pytest.mark.parametrize("version", [0, 3, 4])
def test_a_request_comes_back_with_its_header(client_id: str | None, version: int) -> None:
    request = HeartbeatRequest("g", 7, "m")
    frame = b"".join(request_buffers(ApiKey.HEARTBEAT, version, 99, client_id, request))
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    for body in (frame[4:], memoryview(frame)[4:]):
        header = read_request_header(body)
        assert header[:4] == (ApiKey.HEARTBEAT, version, 99, client_id)
        assert decode_request(header.api_key, version, body, header.body_position) == request
        for end in range(header.body_position):
            with pytest.raises(MalformedFrame):
                read_request_header(body[:end])


@pytest.mark.parametrize("version", [0, 3, 4])
def test_a_response_comes_back_with_its_header(version: int) -> None:
    response = HeartbeatResponse(error_code=3)
    frame = b"".join(response_buffers(ApiKey.HEARTBEAT, version, 99, response))
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    correlation_id, position = read_response_header(frame[4:], ApiKey.HEARTBEAT, version)
    assert (correlation_id, position) == (99, 5 if version == 4 else 4)
    assert decode_response(ApiKey.HEARTBEAT, version, frame[4:], position) == response
    with pytest.raises(MalformedFrame):
        read_response_header(frame[4 : 4 + position - 1], ApiKey.HEARTBEAT, version)


@pytest.mark.parametrize("version", [0, 3, 4])
def test_the_header_of_an_api_versions_response_is_never_flexible(version: int) -> None:
    frame = b"".join(response_buffers(ApiKey.API_VERSIONS, version, 5, ApiVersionsResponse()))
    assert frame[4:8] == b"\0\0\0\x05"
    assert read_response_header(frame[4:], ApiKey.API_VERSIONS, version) == (5, 4)
    assert decode_response(ApiKey.API_VERSIONS, version, frame, 8) == ApiVersionsResponse()


def test_the_header_of_an_api_versions_request_of_the_future_can_be_read() -> None:
    last = APIS[ApiKey.API_VERSIONS].last_version
    frame = bytearray(b"".join(request_buffers(18, last, 6, "c", ApiVersionsRequest("n", "1"))))
    frame[6:8] = (last + 5).to_bytes(2, "big")
    header = read_request_header(bytes(frame[4:]))
    assert (header.api_version, header.correlation_id, header.client_id) == (last + 5, 6, "c")
    with pytest.raises(UnsupportedRequest, match="ApiVersions has versions"):
        decode_request(18, header.api_version, bytes(frame[4:]), header.body_position)


def test_tagged_fields_of_a_request_header_are_skipped() -> None:
    frame = b"".join(request_buffers(ApiKey.METADATA, 9, 1, "c", MetadataRequest()))[4:]
    assert frame[11] == 0
    tagged = frame[:11] + b"\x01\x09\x02hi" + frame[12:]
    header = read_request_header(tagged)
    assert decode_request(3, 9, tagged, header.body_position) == MetadataRequest()


def test_a_header_of_no_known_api_is_unsupported() -> None:
    with pytest.raises(UnsupportedRequest, match="key 999"):
        read_request_header((999).to_bytes(2, "big") + bytes(10))


def test_a_client_id_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(MalformedFrame, match="UTF-8"):
        read_request_header(b"\0\x0c\0\0\0\0\0\x01\0\x01\xff")


def test_the_length_of_a_spliced_response_counts_all_its_buffers() -> None:
    data = build_batch([Record(None, bytes(20_000))])
    response = FetchResponse(
        responses=(
            FetchableTopicResponse(
                topic="t", partitions=(PartitionData(records=read_batches(data)),) * 2
            ),
        )
    )
    buffers = response_buffers(ApiKey.FETCH, 11, 1, response)
    assert len(buffers) == 5
    frame = b"".join(buffers)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert (
        decode_response(ApiKey.FETCH, 11, frame, 8).responses[0].partitions[1].records.data == data
    )
