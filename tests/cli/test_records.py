"""``produce`` and ``consume``, which are each other's test."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest


def consumed(cotidal: Any, topic: str, *arguments: str) -> list[str]:
    outcome = cotidal("consume", topic, "--until-end", *arguments)
    assert (outcome.status, outcome.err) == (0, "")
    lines: list[str] = outcome.out.splitlines()
    return lines


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("acks", ["all", "1"])
def test_lines_come_back_in_order(cotidal: Any, topic: str, compression: str, acks: str) -> None:
    lines = [f"line {number}" for number in range(2000)]
    arguments = ("produce", topic, "--compression", compression, "--acks", acks)
    assert cotidal(*arguments, stdin="\n".join(lines)) == (0, "", "")
    assert consumed(cotidal, topic) == lines


def test_keys_headers_offsets_and_partitions_can_be_printed(cotidal: Any, topic: str) -> None:
    produced = cotidal("produce", topic, "-k", ":", "-H", "a=1", "-H", "b=2", stdin="k:v:w\nx:\n")
    assert produced.status == 0
    assert consumed(cotidal, topic, "--format", r"%t %p/%o %k=%v\t[%h] 100%%") == [
        f"{topic} 0/0 k=v:w\t[a=1,b=2] 100%",
        f"{topic} 0/1 x=\t[a=1,b=2] 100%",
    ]


def test_json_tells_null_from_empty_and_keeps_bytes_that_are_no_text(
    cotidal: Any, topic: str
) -> None:
    before = int(time.time() * 1000)
    cotidal("produce", topic, "-k", ":", "--null-value", "NIL", stdin=b"a:NIL\nb:\nc:\xff\n")
    records = [json.loads(line) for line in consumed(cotidal, topic, "--json")]
    assert [each["offset"] for each in records] == [0, 1, 2]
    assert [each.get("value", "absent") for each in records] == [None, "", "absent"]
    assert records[2]["value_base64"] == "/w=="
    assert all(before <= each["timestamp"] <= before + 60_000 for each in records)


def test_a_line_without_its_key_is_refused_and_what_came_before_is_kept(
    cotidal: Any, topic: str
) -> None:
    outcome = cotidal("produce", topic, "-k", ":", stdin="no key here\n")
    assert outcome.status == 1
    assert "has no key before ':'" in outcome.err


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("earliest", list("abcde")),
        ("latest", []),
        ("3", ["d", "e"]),
        ("-2", ["d", "e"]),
        ("@0", list("abcde")),
        ("2100-01-01T00:00:00Z", []),
    ],
)
def test_reading_begins_where_it_is_told_to(
    cotidal: Any, topic: str, start: str, expected: list[str]
) -> None:
    cotidal("produce", topic, stdin="a\nb\nc\nd\ne\n")
    assert consumed(cotidal, topic, "--from", start) == expected


def test_an_offset_outside_the_log_is_told_with_the_range(cotidal: Any, topic: str) -> None:
    outcome = cotidal("consume", topic, "--from", "17")
    assert outcome.status == 1
    assert "the log begins at 0 and ends before 0" in outcome.err


def test_an_offset_needs_one_partition(cotidal: Any) -> None:
    cotidal("topic", "create", "three-parts", "-p", "3")
    outcome = cotidal("consume", "three-parts", "--from", "17")
    assert outcome.status == 2
    assert "choose one with --partition" in outcome.err


def test_partitions_are_chosen_by_number(cotidal: Any) -> None:
    cotidal("topic", "create", "parts", "-p", "3")
    for partition in "012":
        cotidal("produce", "parts", "-p", partition, stdin=f"in {partition}\n")
    assert sorted(consumed(cotidal, "parts")) == ["in 0", "in 1", "in 2"]
    assert consumed(cotidal, "parts", "-p", "1") == ["in 1"]
    outcome = cotidal("consume", "parts", "-p", "3")
    assert outcome == (1, "", "topic 'parts' has no partition 3; it has 0 to 2\n")
    outcome = cotidal("produce", "parts", "-p", "3", stdin="x\n")
    assert outcome.status == 1
    assert "partitions 0 to 2" in outcome.err


def test_reading_stops_after_the_number_asked_for(cotidal: Any, topic: str) -> None:
    cotidal("produce", topic, stdin="a\nb\nc\n")
    assert cotidal("consume", topic, "--max", "2").out == "a\nb\n"


def test_a_record_that_is_too_large_is_refused_with_what_to_do(cotidal: Any, topic: str) -> None:
    outcome = cotidal("produce", topic, stdin="x" * 2_000_000)
    assert outcome.status == 1
    assert "max.message.bytes" in outcome.err
    assert outcome.err.count("\n") == 1


def test_what_was_acknowledged_is_noted(cotidal: Any, topic: str, tmp_path: Path) -> None:
    noted = tmp_path / "acknowledged.jsonl"
    for lines in ("a\nb\n", "c\n"):
        cotidal("produce", topic, "-p", "0", "--receipts", str(noted), stdin=lines)
    told = [json.loads(line) for line in noted.read_text().splitlines()]
    assert [(each["topic"], each["offset"]) for each in told] == [(topic, at) for at in range(3)]
    assert told[2]["sha256"] == sha256(b"c").hexdigest()
    nowhere = str(tmp_path / "nowhere" / "file")
    refused = cotidal("produce", topic, "--receipts", nowhere, stdin="d\n")
    assert (refused.status, refused.err) == (
        2,
        f"cannot write {nowhere}: No such file or directory\n",
    )


def test_a_topic_to_write_to_is_not_made_by_writing(cotidal: Any) -> None:
    outcome = cotidal("produce", "qqqqqqqq", stdin="x\n")
    assert outcome == (
        1,
        "",
        "topic 'qqqqqqqq' does not exist; create it with `cotidal topic create qqqqqqqq`\n",
    )


def follow(node: str, topic: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "cotidal", "consume", topic, "--bootstrap", node],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A shell that runs the tests in the background has them and their children ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def test_a_reader_without_end_prints_what_comes_and_ctrl_c_ends_it_well(
    cotidal: Any, node: str, topic: str
) -> None:
    reader = follow(node, topic)
    assert reader.stdout is not None
    for word in ("first", "second"):
        cotidal("produce", topic, stdin=f"{word}\n")
        assert reader.stdout.readline() == f"{word}\n".encode()
    reader.send_signal(signal.SIGINT)
    _, err = reader.communicate(timeout=20)
    assert (reader.returncode, err) == (0, b"")


def test_a_reader_that_has_seen_enough_is_no_failure(cotidal: Any, node: str, topic: str) -> None:
    cotidal("produce", topic, stdin="a\n")
    reader = follow(node, topic)
    assert reader.stdout is not None
    assert reader.stdout.readline() == b"a\n"
    reader.stdout.close()
    cotidal("produce", topic, stdin="b\n")
    assert reader.wait(20) == 0
    assert reader.stderr is not None
    assert reader.stderr.read() == b""
    reader.stderr.close()


def test_lines_are_sent_as_they_are_typed(cotidal: Any, node: str, topic: str) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-m", "cotidal", "produce", topic, "--bootstrap", node],
        stdin=subprocess.PIPE,
    )
    assert writer.stdin is not None
    os.write(writer.stdin.fileno(), b"typed\n")
    assert cotidal("consume", topic, "--max", "1").out == "typed\n"
    writer.stdin.close()
    assert writer.wait(20) == 0
