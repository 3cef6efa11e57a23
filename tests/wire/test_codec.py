"""Every message, every version: there and back, cut short, followed by more, and under attack."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotidal.errors import MalformedFrame, UnsupportedRequest
from cotidal.limits import REQUEST_BYTES_MAX_WITHOUT_RECORDS
from cotidal.messages.rpc.apis import APIS
from cotidal.messages.rpc.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from cotidal.messages.rpc.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from cotidal.messages.rpc.heartbeat import HeartbeatRequest
from cotidal.messages.rpc.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from cotidal.wire import codec
from cotidal.wire.batch import read_batches
from cotidal.wire.codec import decode_record, encode_record
from cotidal.wire.primitives import SPLICE_BYTES_MIN
from cotidal.wire.records import Record, build_batch
from message_samples import Sampler, seeded
from message_schema import Message, Module, read_modules

SCHEMA = Path(__file__).resolve().parents[2] / "schema"
MODULES = read_modules(SCHEMA)
EVERY_MESSAGE = [
    pytest.param(module, message, id=message.name)
    for module in MODULES
    for message in module.messages
]
HUGE = (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\x7f\xff", b"\xff\xff\x7f")


def message_class(module: Module, message: Message) -> type[Any]:
    room, name = module.room, module.name
    return next(
        c.message for c in codec.module_codecs(room, name) if c.message.__name__ == message.name
    )


@pytest.mark.parametrize(("module", "message"), EVERY_MESSAGE)
def test_every_version_comes_back_as_it_went(module: Module, message: Message) -> None:
    cls = message_class(module, message)

    @settings(max_examples=10)
    @given(st.integers(0, 2**32))
    def there_and_back(seed: int) -> None:
        for version in message.versions:
            value = Sampler(module, Random(seed)).message(message, version)
            data = bytes(encode_record(value, version))
            for buffer in (data, memoryview(data)):
                assert decode_record(cls, version, buffer) == value

    there_and_back()


@pytest.mark.parametrize(("module", "message"), EVERY_MESSAGE)
def test_a_message_cut_anywhere_or_followed_by_more_is_refused(
    module: Module, message: Message
) -> None:
    cls = message_class(module, message)
    for version in message.versions:
        value = Sampler(module, seeded(message.name, version)).message(message, version)
        data = bytes(encode_record(value, version))
        for end in range(len(data)):
            with pytest.raises(MalformedFrame):
                decode_record(cls, version, data[:end])
        with pytest.raises(MalformedFrame, match="follow the end"):
            decode_record(cls, version, data + b"\0")


@pytest.mark.parametrize(("module", "message"), EVERY_MESSAGE)
def test_random_and_damaged_bytes_decode_or_are_refused_and_nothing_else(
    module: Module, message: Message
) -> None:
    cls = message_class(module, message)
    chance = seeded(message.name, -1)
    for version in message.versions:
        value = Sampler(module, chance).message(message, version)
        good = bytes(encode_record(value, version))
        for _ in range(20):
            damaged = bytearray(good)
            for _ in range(min(len(good), chance.choice((1, 1, 3)))):
                damaged[chance.randrange(len(good))] = chance.randrange(256)
            noise = chance.randbytes(chance.choice((1, 8, 40, 200)))
            for data in (bytes(damaged), noise, bytes(len(noise)), b"\xff" * 40):
                with contextlib.suppress(MalformedFrame):
                    decode_record(cls, version, data)


@pytest.mark.parametrize(("module", "message"), EVERY_MESSAGE)
def test_a_huge_claim_in_a_small_frame_allocates_nothing(module: Module, message: Message) -> None:
    cls = message_class(module, message)
    frames = []
    for version in {message.versions.start, message.versions.stop - 1}:
        good = bytes(encode_record(cls(), version))[:300]
        frames += [
            (version, good[:at] + huge + good[at + len(huge) :])
            for at in range(len(good))
            for huge in HUGE
        ]
    decode_record(cls, message.versions.start, bytes(encode_record(cls(), message.versions.start)))
    tracemalloc.start()
    try:
        for version, frame in frames:
            assert any(taken < 20_000 for taken in memory_to_decode(cls, version, frame, tries=3))
    finally:
        tracemalloc.stop()


def memory_to_decode(cls: type[Any], version: int, frame: bytes, tries: int) -> Iterator[int]:
    """What each try took at its height, the process's other threads (the test runner's) included:
    a claim that is believed costs every time, what they do does not."""
    for _ in range(tries):
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        with contextlib.suppress(MalformedFrame):
            decode_record(cls, version, frame)
        yield tracemalloc.get_traced_memory()[1] - before


@pytest.mark.parametrize(
    ("smallest", "count"), [(1, 2**31 - 1), (2, 8), (4, 5)], ids=["huge", "twice", "few"]
)
def test_a_count_is_held_against_the_smallest_elements_that_could_follow(
    smallest: int, count: int
) -> None:
    from cotidal.wire.primitives import read_count

    frame = count.to_bytes(4, "big") + bytes(15)
    with pytest.raises(MalformedFrame, match="elements"):
        read_count(frame, 0, smallest)


@pytest.mark.plain
def test_elements_are_counted_over_all_arrays_of_a_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from cotidal.wire.codec.rpc import fetch

    monkeypatch.setattr(fetch, "MESSAGE_ELEMENTS_MAX", 9)
    three = FetchableTopicResponse("t", partitions=(PartitionData(aborted_transactions=None),) * 3)
    for topics, fits in ((2, True), (3, False)):
        data = bytes(encode_record(FetchResponse(responses=(three,) * topics), 12))
        if fits:
            assert len(decode_record(FetchResponse, 12, data).responses) == topics
        else:
            with pytest.raises(MalformedFrame, match="more than"):
                decode_record(FetchResponse, 12, data)


def test_only_a_produce_request_may_be_large() -> None:
    large = b"\0" * (REQUEST_BYTES_MAX_WITHOUT_RECORDS + 1)
    with pytest.raises(MalformedFrame, match="Heartbeat in 16777217 bytes is more than it needs"):
        codec.decode_request(12, 4, large)
    data = build_batch([Record(None, bytes(len(large)))])
    topic = TopicProduceData("t", partition_data=(PartitionProduceData(0, read_batches(data)),))
    request = ProduceRequest(topic_data=(topic,))
    assert codec.decode_request(0, 9, b"".join(codec.encode_request(0, 9, request))) == request


def test_unknown_tagged_fields_are_skipped() -> None:
    plain = bytes(encode_record(HeartbeatRequest("g", 1, "m"), 4))
    assert plain[-1] == 0
    tagged = plain[:-1] + b"\x02" + b"\x07\x03abc" + b"\x63\x00"
    assert decode_record(HeartbeatRequest, 4, tagged) == HeartbeatRequest("g", 1, "m")


@pytest.mark.parametrize(
    "section", [b"\x01\x07\x04abc", b"\x02\x07\x03abc", b"\xff\xff\xff\xff\x0f\x07\x03abc"]
)
def test_tagged_fields_that_claim_more_than_there_is_are_refused(section: bytes) -> None:
    plain = bytes(encode_record(HeartbeatRequest("g", 1, "m"), 4))
    with pytest.raises(MalformedFrame):
        decode_record(HeartbeatRequest, 4, plain[:-1] + section)


def test_a_known_tagged_field_must_fill_its_size() -> None:
    plain = bytes(encode_record(FetchRequest(), 15))
    assert plain.endswith(b"\0")
    replica_state = b"\0\0\0\x05" + bytes(8) + b"\0"
    good = plain[:-1] + b"\x01\x01" + bytes([len(replica_state)]) + replica_state
    assert decode_record(FetchRequest, 15, good).replica_state.replica_id == 5
    padded = plain[:-1] + b"\x01\x01" + bytes([len(replica_state) + 1]) + replica_state + b"\0"
    with pytest.raises(MalformedFrame, match="tagged field 1"):
        decode_record(FetchRequest, 15, padded)


def test_a_value_that_a_version_cannot_say_is_refused_unless_it_may_be_dropped() -> None:
    with pytest.raises(ValueError, match=r"HeartbeatRequest.group_instance_id .* version 2"):
        encode_record(HeartbeatRequest("g", 1, "m", "i"), 2)
    dropped = encode_record(FetchRequest(rack_id="r"), 10)  # ignorable
    assert decode_record(FetchRequest, 10, bytes(dropped)).rack_id == ""


def test_a_null_is_refused_where_the_version_has_none() -> None:
    response = DeleteTopicsResponse(responses=(DeletableTopicResult(name=None),))
    encode_record(response, 6)
    with pytest.raises(ValueError, match=r"name must not be null in version 5"):
        encode_record(response, 5)


def test_a_number_out_of_range_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="HeartbeatRequest version 4"):
        encode_record(HeartbeatRequest("g", 2**31, "m"), 4)


def test_a_string_longer_than_the_protocol_allows_is_refused_both_ways() -> None:
    for version in (3, 4):
        with pytest.raises(ValueError, match="longer than"):
            encode_record(HeartbeatRequest("g" * 32768, 1, "m"), version)
    longest = encode_record(HeartbeatRequest("g" * 32767, 1, "m"), 4)
    assert len(decode_record(HeartbeatRequest, 4, bytes(longest)).group_id) == 32767
    over = b"\x81\x80\x02" + b"g" * 32768 + bytes(longest)[3 + 32767 :]
    with pytest.raises(MalformedFrame, match="longer than"):
        decode_record(HeartbeatRequest, 4, over)


def test_bad_utf8_is_refused() -> None:
    good = bytes(encode_record(HeartbeatRequest("gé", 1, "m"), 4))
    with pytest.raises(MalformedFrame, match="UTF-8"):
        decode_record(HeartbeatRequest, 4, good.replace("é".encode(), b"\xff\xfe"))


@pytest.mark.parametrize(
    ("api_key", "version"), [(0, 2), (0, 14), (1, 3), (0, 256 + 9), (999, 0), (-1, 0), (0, -1)]
)
def test_an_unknown_key_or_version_is_unsupported(api_key: int, version: int) -> None:
    for decode in (codec.decode_request, codec.decode_response):
        with pytest.raises(UnsupportedRequest):
            decode(api_key, version, b"")
    for encode in (codec.encode_request, codec.encode_response):
        with pytest.raises(UnsupportedRequest):
            encode(api_key, version, ProduceRequest())


def test_every_api_can_be_spoken_through_its_key() -> None:
    for module in MODULES:
        if module.room != "rpc":
            continue
        for message in module.messages:
            cls = message_class(module, message)
            request = message.kind == "request"
            encode = codec.encode_request if request else codec.encode_response
            decode = codec.decode_request if request else codec.decode_response
            assert message.key is not None
            for version in message.versions:
                data = b"".join(encode(message.key, version, cls()))
                assert decode(message.key, version, data) == cls()
            facts = codec.codec_of(cls)
            api = APIS[message.key]
            assert (facts.first_version, facts.last_version) == (
                api.first_version, api.last_version,
            )  # fmt: skip


def test_record_data_is_neither_copied_when_written_nor_when_read() -> None:
    data = build_batch([Record(None, bytes(10_000))])
    batches = read_batches(data)
    response = FetchResponse(
        responses=(FetchableTopicResponse(topic="t", partitions=(PartitionData(records=batches),)),)
    )
    parts = codec.encode_response(1, 12, response)
    assert any(part is data for part in parts)
    frame = memoryview(b"".join(parts))
    again = codec.decode_response(1, 12, frame).responses[0].partitions[0].records
    assert isinstance(again.data, memoryview)
    assert again.data.obj is frame.obj
    assert again.headers == batches.headers


def test_short_record_data_joins_its_neighbours_in_one_buffer() -> None:
    data = build_batch([Record(None, b"x")])
    assert len(data) < SPLICE_BYTES_MIN
    response = FetchResponse(
        responses=(
            FetchableTopicResponse(
                topic="t", partitions=(PartitionData(records=read_batches(data)),) * 3
            ),
        )
    )
    assert len(codec.encode_response(1, 12, response)) == 1


def test_importing_the_codec_loads_no_message_module() -> None:
    script = (
        "import sys, cotidal.wire.codec, cotidal.messages.rpc, cotidal.wire.frames\n"
        "print([m for m in sys.modules if m.startswith('cotidal.messages.rpc.')"
        " or m.startswith('cotidal.wire.codec.rpc.')])"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['cotidal.messages.rpc.apis']"


def test_bytes_after_a_request_are_passed_over_as_kafka_does() -> None:
    as_librdkafka_asks_for_all_topics = bytes.fromhex("00000000 010000")
    read = codec.decode_request(3, 13, as_librdkafka_asks_for_all_topics)
    assert read.topics is None
    for end in range(4):
        with pytest.raises(MalformedFrame):
            codec.decode_request(3, 13, as_librdkafka_asks_for_all_topics[:end])
    with pytest.raises(MalformedFrame):
        codec.decode_request(3, 8, bytes.fromhex("00000001 0009 61"))  # a name of 9 bytes, 1 there
