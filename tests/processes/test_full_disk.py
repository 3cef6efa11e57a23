"""A full disk: the log that met it goes offline and says so; what was acknowledged stays."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
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


class TwoDisks(RealNode):
    """A node with a directory on each of two disks, and the metadata log on the first."""

    def __init__(self, directory: Path, small: Path) -> None:
        super().__init__(directory)
        self.file = directory / "server.properties"
        self.file.write_text(
            f"node.id=1\nlisteners=PLAINTEXT://localhost:{self.port}\n"
            f"log.dirs={directory}/large,{small}/data\n"
        )
        self._cotidal("format")

    def start(self) -> float:
        begun = time.monotonic()
        self._launch()
        until(lambda: f"serving on localhost:{self.port}" in self.said())
        return time.monotonic() - begun

    def _command(self) -> list[str]:
        return [sys.executable, "-W", "error", "-m", "cotidal", "broker", f"--config={self.file}"]

    def _cotidal(self, verb: str) -> None:
        command = [sys.executable, "-m", "cotidal", verb, f"--config={self.file}"]
        subprocess.run(command, check=True, capture_output=True)


def test_a_full_disk_of_two_takes_its_directory_offline(small_disk: Path, tmp_path: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(BALLAST_BYTES))
    node = TwoDisks(tmp_path, small_disk)
    node.start()
    try:
        client = Confluent(node.bootstrap)
        for topic in ("first", "filling", "third", "fourth"):  # on the two disks by turns
            client.create_topic(topic)
            client.write(topic, 0, [Sent(None, b"v")], codec="none", acks=Acks(-1))
        assert (small_disk / "data/filling-0").exists()
        acknowledged = 1 + fill(client)
        assert node.is_running, node.said()
        (told,) = [said.text for said in node.sentences("error") if "log directory" in said.text]
        assert "filling-0: could not append" in told
        assert "No space left on device; 2 replicas in it went offline" in told
        until(lambda: leaders(client, "first", "fourth") == [1, -1])
        assert client.write("third", 0, [Sent(None, b"w")], codec="none", acks=Acks(-1)) == [1]
        node.kill()
        ballast.unlink()
        node.start()
        assert len(client.read("filling", [0], acknowledged)) == acknowledged
        more = client.write("fourth", 0, [Sent(None, b"w")], codec="none", acks=Acks(-1))
        assert more == [1]
        assert node.stop() == 0
    finally:
        if node.is_running:
            node.kill()


def leaders(client: Confluent, *topics: str) -> list[int]:
    found = client.admin.list_topics(timeout=10).topics
    return [found[topic].partitions[0].leader for topic in topics]


def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.02)


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
