"""Kafka's tools and its Java client on logs that we have compacted."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.apache_kafka import run_tool
from bench.server import serving
from tests.interop.test_dump_log import dump, partition

pytestmark = pytest.mark.interop

TOPIC: Final = "compacted"
KEYS: Final = 50
RECORDS: Final = 6000
PATIENCE_SECONDS: Final = 60
SETTINGS: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": str(1 << 20),
    "min.cleanable.dirty.ratio": "0.01",
}


class Compacted(NamedTuple):
    directory: Path
    newest: dict[str, tuple[int, str | None]]
    """Key -> offset and value."""
    consumed: list[str]


@pytest.fixture(scope="module", params=["none", "zstd"])
def compacted(
    kafka: None,
    recipe_under_test: Callable[[Path], Any],
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Compacted:
    directory = tmp_path_factory.mktemp("compacted")
    with serving(recipe_under_test(directory)) as server:
        newest = _write(server.bootstrap, request.param)
        checkpoint = _await_cleaned(directory)
        assert checkpoint > RECORDS // 2
        said = run_tool(
            "kafka-console-consumer",
            *("--bootstrap-server", server.bootstrap, "--topic", TOPIC),
            *("--partition", "0", "--offset", "earliest", "--timeout-ms", "8000"),
            *(
                "--formatter-property",
                "print.key=true",
                "--formatter-property",
                "print.offset=true",
            ),
            *("--formatter-property", "key.separator=|"),
        )
    return Compacted(directory, newest, said.out.splitlines())


def _write(bootstrap: str, codec: str) -> dict[str, tuple[int, str | None]]:
    """Every seventh record is a tombstone; each key's last one has a value or not."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, 1, 1, config=SETTINGS)])[TOPIC].result(30)
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "compression.type": codec,
            "linger.ms": 20,
            "batch.num.messages": 20,
        }
    )
    newest: dict[str, tuple[int, str | None]] = {}
    draw = random.Random(codec)  # values that do not compress to nothing

    def written(error: Any, message: Any) -> None:
        assert error is None
        value = message.value()
        told = (message.offset(), None if value is None else value.decode()[:20])
        newest[message.key().decode()] = max(told, newest.get(message.key().decode(), (-1, None)))

    for number in range(RECORDS):
        value = None if number % 7 == 3 else f"{number:020d}" + draw.randbytes(500).hex()
        producer.produce(TOPIC, value=value, key=f"key-{number % KEYS}", on_delivery=written)
        producer.poll(0)
    assert producer.flush(60) == 0
    assert len(newest) == KEYS
    return newest


def _await_cleaned(directory: Path) -> int:
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        for file in directory.rglob("cleaner-offset-checkpoint"):
            found = re.search(rf"^{TOPIC} 0 (\d+)$", file.read_text(), re.MULTILINE)
            if found:
                return int(found[1])
        time.sleep(0.5)
    raise AssertionError("nothing was compacted")


def test_java_consumer_reads_the_newest_record_of_every_key(compacted: Compacted) -> None:
    found: dict[str, tuple[int, str | None]] = {}
    offsets = []
    for line in compacted.consumed:
        told = re.fullmatch(r"Offset:(\d+)\|(key-\d+)\|(.*)", line)
        assert told, line
        value = None if told[3] == "null" else told[3][:20]
        found[told[2]] = (int(told[1]), value)
        offsets.append(int(told[1]))
    assert found == compacted.newest
    assert offsets == sorted(offsets)
    assert len(offsets) < RECORDS / 2


def test_dump_log_finds_nothing_wrong_with_compacted_segments(compacted: Compacted) -> None:
    segments = sorted(partition(compacted.directory, f"{TOPIC}-0").glob("*.log"))
    said = dump(segments, "--deep-iteration", "--print-data-log")
    batches = re.findall(r"^baseOffset: (\d+) lastOffset: (\d+) count: (\d+)", said, re.MULTILINE)
    assert batches
    assert any(int(count) < int(last) - int(base) + 1 for base, last, count in batches)
    assert "deleteHorizonMs: OptionalLong[" in said
    records = re.findall(r"^\| offset: (\d+) .* key: (key-\d+)", said, re.MULTILINE)
    assert {key: int(offset) for offset, key in records} == {
        key: offset for key, (offset, _) in compacted.newest.items()
    }


@pytest.mark.parametrize("kind", ["index", "timeindex"])
def test_dump_log_finds_nothing_wrong_with_their_indexes(compacted: Compacted, kind: str) -> None:
    indexes = sorted(partition(compacted.directory, f"{TOPIC}-0").glob(f"*.{kind}"))
    dump(indexes, "--index-sanity-check" if kind == "index" else "--verify-index-only")
