"""A node's life, written down and lived again."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from asking import create, produce, written
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.batch import Batches, BatchHeader
from cotidal.messages.rpc.metadata import MetadataRequest
from cotidal.messages.rpc.produce import ProduceRequest
from cotidal.node.coordinators import CoordinatorLog
from cotidal.node.effects import Endpoint, KeepChunk, ReadToken
from cotidal.node.events import ReadDone, Ticked
from cotidal.node.recording import (
    RecordedNode,
    RecordingError,
    World,
    from_json,
    is_recording,
    replay,
    to_json,
)
from cotidal.node.state import NodeConfig
from cotidal.values import NodeId, TopicPartition, Uuid
from cotidal.wire.coordinator_batch import (
    encode_coordinator_batch,
    encode_marker,
    read_coordinator_log,
)
from cotidal.wire.inspection import inspected
from cotidal.wire.metadata_batch import read_metadata_batches
from cotidal.wire.records import values_batch
from lone_node import LoneNode

CONFIG = NodeConfig(
    node_id=NodeId(1),
    cluster_id="lone",
    directory_id=Uuid(b"d" * 16),
    endpoints=(Endpoint("PLAINTEXT", "localhost", 9092),),
    controller_endpoints=(Endpoint("CONTROLLER", "localhost", 9093),),
    rack=None,
    settings={"num.partitions": "2"},
)


class InItsFile:
    """A Stretch."""

    def __len__(self) -> int:
        return 70_000


def test_of_records_only_the_size_is_kept_wherever_they_are() -> None:
    event = ReadDone(ReadToken(1), (InItsFile(), memoryview(b"abc"), b"de", "why"))
    again = from_json(json.loads(json.dumps(to_json(event))))
    assert again == ReadDone(ReadToken(1), (bytes(70_000), bytes(3), bytes(2), "why"))


@pytest.fixture
def life() -> list[str]:
    """Of a node that is asked for topics, writes, reads and is asked what it holds."""
    lines: list[str] = []
    world = World(
        read_metadata_batches,
        inspected,
        CoordinatorLog(encode_coordinator_batch, read_coordinator_log, encode_marker),
        values_batch,
    )
    lone = LoneNode({"num.partitions": "2"})
    lone.node = RecordedNode(CONFIG, 7, world, lines.append)  # type: ignore[assignment]
    lone.start()
    create(lone, "orders", 2)
    create(lone, "kept", cleanup_policy="compact")
    assert written(lone.ask(*produce(b"a secret"))) == (0, 0)
    lone.ask(*produce(b"without a key", topic="kept"))
    lone.pass_time(10_000)
    return lines


HEADER = BatchHeader(0, 70, 3, 0, 0, 5, 5, -1, -1, -1, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -5,
        "text",
        1.5,
        b"\x00key",
        (1, ("two", b"")),
        [1, 2],
        {"a": (1,)},
        TopicPartition("orders", 0),
        MetadataRequest(),
        Refusal(ErrorCode.INVALID_RECORD, "why"),
        CONFIG,
        HEADER,
    ],
)
def test_a_value_is_read_as_it_was_written(value: object) -> None:
    found = from_json(json.loads(json.dumps(to_json(value))))
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Batches((HEADER,), b"r" * 70), Batches((HEADER,), bytes(70))),
        (
            ReadDone(1, (b"rr", memoryview(b"r"), "failed")),  # type: ignore[arg-type]
            ReadDone(1, (bytes(2), bytes(1), "failed")),  # type: ignore[arg-type]
        ),
        (KeepChunk(None, 0, b"rrr"), KeepChunk(None, 0, bytes(3))),  # type: ignore[arg-type]
    ],
)
def test_of_records_only_headers_and_sizes_are_kept(value: object, expected: object) -> None:
    assert from_json(to_json(value)) == expected


def test_what_nobody_thought_of_stops_no_node_and_cannot_be_lived_again() -> None:
    told = to_json(Ticked(object()))  # type: ignore[arg-type]
    assert json.dumps(told)
    with pytest.raises(RecordingError, match="a object was not recorded"):
        from_json(told)


def test_a_set_is_written_in_an_order_of_its_values() -> None:
    numbers = frozenset(range(50))
    names = frozenset(map(str, numbers))
    for each in (numbers, names):
        assert from_json(to_json(each)) == each
    assert to_json(names) == to_json(frozenset(sorted(names, reverse=True)))


@pytest.mark.parametrize(
    "told", [{"c": "os:system", "f": ["x"]}, {"c": "node.node:Node", "f": []}, {"what": 1}]
)
def test_what_is_no_value_of_ours_is_not_made(told: object) -> None:
    with pytest.raises(RecordingError):
        from_json(told)


def test_a_recorded_life_is_lived_again(life: list[str]) -> None:
    assert is_recording(life[0])
    assert "a secret" not in "".join(life)
    found = replay(life)
    assert found.difference is None
    assert found.steps == len(life) - 1 > 10
    assert found.effects > 10
    assert found.config == CONFIG
    assert not found.cut


def test_a_life_that_was_cut_short_is_lived_up_to_there(life: list[str]) -> None:
    found = replay([*life, '{"now": 12, "eve'])
    assert found.cut
    assert found.difference is None
    assert found.steps == len(life) - 1


def tampered(life: list[str], step: int, name: str, value: object) -> Iterator[str]:
    for number, line in enumerate(life):
        yield json.dumps({**json.loads(line), name: value}) if number == step else line


def test_the_first_step_that_differs_is_told(life: list[str]) -> None:
    step = next(
        number for number, line in enumerate(life) if number and json.loads(line)["effects"]
    )
    found = replay(tampered(life, step, "effects", []))
    assert found.difference is not None
    assert found.difference.step == step
    assert found.difference.recorded == ()
    assert found.difference.wanted


def test_another_entropy_is_another_life(life: list[str]) -> None:
    assert replay(tampered(life, 0, "entropy", 8)).difference is not None


def test_a_node_that_looks_where_the_recorded_one_did_not_differs(life: list[str]) -> None:
    read = [number for number, line in enumerate(life) if number and json.loads(line)["looked"]]
    found = replay(tampered(life, read[0], "looked", []))
    assert found.difference is not None
    assert found.difference.step == read[0]


@pytest.mark.parametrize("lines", [[], ["{}"], ['{"trace": "cotidal node", "version": 99}']])
def test_what_is_no_recording_is_said_to_be_none(lines: list[str]) -> None:
    with pytest.raises(RecordingError):
        replay(lines)


def test_a_request_is_recorded_before_it_is_taken_apart() -> None:
    assert from_json(to_json(ProduceRequest(acks=1))) == ProduceRequest(acks=1)
    assert from_json(to_json(Ticked(5))) == Ticked(5)  # type: ignore[arg-type]
