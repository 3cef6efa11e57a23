"""A full disk: the log that met it goes offline and says so; what was acknowledged stays."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message

from cotidal.errors import ErrorCode
from real_node import RealNode
from tests.clients.confluent import Confluent
from tests.clients.speaking import Acks, Sent

DISK_BYTES = 24 * 1024 * 1024
BALLAST_BYTES = 8 * 1024 * 1024
RECORD = b"x" * 100_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "cotidal-test", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small file system can only be mounted by root")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_takes_its_log_offline_and_loses_nothing(
    small_disk: Path, tmp_path: Path
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(BALLAST_BYTES))
    node = RealNode(tmp_path)
    node.data = small_disk / "data"
    node.start()
    try:
        client = Confluent(node.bootstrap)
        client.create_topic("filling")
        client.create_topic("other")
        client.write("other", 0, [Sent(None, b"v")], codec="none", acks=Acks(-1))
        acknowledged = fill(client)
        assert node.is_running, node.said()
        assert any("filling-0" in said.text for said in node.sentences("error"))
        assert [got.value for got in client.read("other", [0], 1)] == [b"v"]
        node.kill()
        ballast.unlink()
        node.start()
        assert client.watermarks("filling", 0)[1] >= acknowledged
        assert len(client.read("filling", [0], acknowledged)) == acknowledged
        more = client.write("filling", 0, [Sent(None, RECORD)], codec="none", acks=Acks(-1))
        assert more[0] >= acknowledged
        assert node.stop() == 0
    finally:
        if node.is_running:
            node.kill()


def fill(client: Confluent) -> int:
    """Write until it is refused; how many records were acknowledged."""
    outcomes: list[int] = []

    def on_delivery(error: KafkaError | None, _: Message) -> None:
        outcomes.append(0 if error is None else error.code())

    producer = client.producer(acks=-1, retries=0, message_timeout_ms=10_000)
    while len(outcomes) < 2 * DISK_BYTES // len(RECORD) and not any(outcomes):
        producer.produce("filling", RECORD, partition=0, on_delivery=on_delivery)
        assert producer.flush(15) == 0
    assert outcomes[-1] == ErrorCode.KAFKA_STORAGE_ERROR
    return len(outcomes) - 1
