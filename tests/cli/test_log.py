from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cotidal.wire.compression import Compression
from cotidal.wire.records import Record, build_batch

NAME = "00000000000000000000.log"


def batch(base_offset: int, *values: bytes, **fields: Any) -> bytes:
    records = [Record(b"k", value, (("h", b"x"),), timestamp=1000) for value in values]
    return build_batch(records, base_offset=base_offset, leader_epoch=3, **fields)


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    path = tmp_path / NAME
    path.write_bytes(
        batch(0, b"a", b"b")
        + batch(2, b"c", compression=Compression.ZSTD)
        + batch(3, b"d", producer_id=9, producer_epoch=1, base_sequence=0, transactional=True)
    )
    return path


def batches(outcome: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in outcome.out.splitlines()]


def test_a_sound_segment_is_told_batch_by_batch(segment: Path, offline: Any) -> None:
    outcome = offline("log", "dump", str(segment))
    assert (outcome.status, outcome.err) == (0, "")
    heading, first, second, third, total = outcome.out.splitlines()
    assert heading.split() == [
        "POSITION", "FIRST", "OFFSET", "LAST", "OFFSET", "RECORDS", "EPOCH", "SIZE", "CODEC", "CRC",
    ]  # fmt: skip
    assert first.split()[:5] == ["0", "0", "1", "2", "3"]
    assert second.split()[-2:] == ["zstd", "ok"]
    assert third.endswith("(transactional, producer 9 epoch 1 sequence 0)")
    assert total.startswith("3 batches, 4 records, offsets 0 to 3, ")
    assert total.endswith("no damage")


def test_records_are_told_with_keys_values_and_headers(segment: Path, offline: Any) -> None:
    lines = offline("log", "dump", "--records", str(segment)).out.splitlines()
    assert lines[2].strip() == "0  time 1000  key k  value a h=x"


def test_json_has_one_object_a_batch(segment: Path, offline: Any) -> None:
    found = batches(offline("log", "dump", "--json", "--records", str(segment)))
    assert [each["base_offset"] for each in found] == [0, 2, 3]
    assert [each["damage"] for each in found] == [None, None, None]
    assert [record["value"] for each in found for record in each["records"]] == list("abcd")
    assert (found[2]["producer_id"], found[2]["transactional"]) == (9, True)


def test_a_flipped_bit_is_told_and_passed_over(segment: Path, offline: Any) -> None:
    data = bytearray(segment.read_bytes())
    second = len(batch(0, b"a", b"b"))
    data[second + 65] ^= 1
    segment.write_bytes(data)
    outcome = offline("log", "dump", "--json", str(segment))
    assert outcome.status == 1
    assert f"is damaged at byte {second}: crc mismatch" in outcome.err
    assert outcome.err.count("\n") == 1
    found = batches(outcome)
    assert [bool(each["damage"]) for each in found] == [False, True, False]


def test_a_segment_cut_short_is_told_at_its_last_batch(segment: Path, offline: Any) -> None:
    data = segment.read_bytes()
    for cut in (3, len(data) - 70):
        segment.write_bytes(data[:-cut])
        outcome = offline("log", "dump", str(segment))
        assert outcome.status == 1
        assert "no batch: " in outcome.out


def test_bytes_that_are_no_batch_end_the_reading(segment: Path, offline: Any) -> None:
    segment.write_bytes(segment.read_bytes() + b"garbage" * 20)
    outcome = offline("log", "dump", str(segment))
    assert outcome.status == 1
    assert outcome.out.splitlines()[-1].startswith("3 batches, 4 records")


def test_offsets_that_go_back_are_damage(tmp_path: Path, offline: Any) -> None:
    path = tmp_path / NAME
    path.write_bytes(batch(5, b"a") + batch(4, b"b"))
    outcome = offline("log", "dump", str(path))
    assert outcome.status == 1
    assert "base offset 4 where 6 or more was due" in outcome.err


def test_an_empty_segment_is_sound(tmp_path: Path, offline: Any) -> None:
    path = tmp_path / NAME
    path.write_bytes(b"")
    outcome = offline("log", "dump", str(path))
    assert outcome.status == 0
    assert outcome.out.splitlines()[-1] == "0 batches, 0 records, empty, 0 B, no damage"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("missing.log", "no such file or directory"),
        ("00000000000000000000.index", "is not a segment; dump "),
        (".", "is a directory; name a .log file in it"),
    ],
)
def test_what_is_no_segment_is_one_sentence(
    name: str, sentence: str, tmp_path: Path, offline: Any
) -> None:
    outcome = offline("log", "dump", str(tmp_path / name))
    assert outcome.status == 1
    assert sentence in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.fixture
def metadata_segment(tmp_path: Path) -> Path:
    from cotidal.messages.records.metadata import TopicRecord
    from cotidal.messages.records.quorum import LeaderChangeMessage, LeaderChangeMessageVoter
    from cotidal.values import Uuid
    from cotidal.wire.record_framing import encode_metadata
    from cotidal.wire.records import ControlType, control_record

    path = tmp_path / "__cluster_metadata-0" / NAME
    path.parent.mkdir()
    change = LeaderChangeMessage(leader_id=7, voters=(LeaderChangeMessageVoter(7),))
    topic = TopicRecord(name="orders", topic_id=Uuid(bytes(16)))
    path.write_bytes(
        build_batch([control_record(ControlType.LEADER_CHANGE, change)], control=True)
        + build_batch([Record(None, encode_metadata(topic))], base_offset=1)
    )
    return path


def test_the_metadata_log_is_told_in_its_own_words(metadata_segment: Path, offline: Any) -> None:
    out = offline("log", "dump", "--records", str(metadata_segment)).out
    assert "LEADER_CHANGE LeaderChangeMessage version=0 leader_id=7 voters=[(voter_id=7 " in out
    assert "1  TopicRecord name=orders topic_id=AAAAAAAAAAAAAAAAAAAAAA\n" in out
    found = batches(offline("log", "dump", "--records", "--json", str(metadata_segment)))
    assert found[1]["records"][0]["meaning"].startswith("TopicRecord name=orders")


def test_records_that_cannot_be_read_are_told(segment: Path, offline: Any) -> None:
    from cotidal.wire.batch import crc32c

    data = bytearray(batch(0, b"abc"))
    data[61] = 0x7F  # the first record claims more than there is; the checksum is made to fit
    data[17:21] = crc32c(memoryview(data)[21:]).to_bytes(4, "big")
    segment.write_bytes(data)
    assert offline("log", "dump", str(segment)).status == 0
    outcome = offline("log", "dump", "--records", str(segment))
    assert outcome.status == 1
    assert "is damaged at byte 0: its records cannot be read: " in outcome.err
