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
