"""The story that `make demo` tells: a node, records, kill -9, and nothing lost.

Everything in it is real: a process of its own, files on disk, librdkafka as the client. It checks
what it claims and exits 1 with the reason when a claim does not hold.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from demo.telling import Failed, say, tell

TOPIC = "orders"
RECORDS = 20_000
KILL_AFTER = 6_000
IN_FLIGHT = 1_000

QUIET = logging.getLogger("demo.client")
"""The client's own words about the broker that we kill."""
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False


class Node:
    """One cotidal node as a child process."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.journal = data.with_suffix(".journal")
        self.port = 0
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> float:
        """Seconds from the shell to the line that says it serves."""
        begun = time.perf_counter()
        command = [sys.executable, "-m", "cotidal", "up", "--brokers", "1", "--data"]
        command += [str(self.data), *(["--port", str(self.port)] if self.port else [])]
        with self.journal.open("a") as journal:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=journal, text=True
            )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("cotidal is up"):
                self.port = int(line.split("localhost:")[1].split()[0].rstrip(",;."))
                return time.perf_counter() - begun
        status = self.process.wait()
        told = self.journal.read_text()[-2_000:]
        raise Failed(f"the node ended with status {status} before it served\n{told}")

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        if self.process is None or self.process.poll() is not None:
            return 0
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Failed("the node did not stop within 20 s of SIGTERM") from None


def produce(bootstrap: str, during: Callable[[int], None]) -> dict[int, int]:
    """Send RECORDS numbers with acks=all; what was acknowledged: number -> offset."""
    acked: dict[int, int] = {}

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        if error is None:
            acked[int(message.value() or b"-1")] = message.offset() or 0

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 1,
            "retry.backoff.ms": 20,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 100,
        },
        logger=QUIET,
    )
    for number in range(RECORDS):
        producer.produce(TOPIC, str(number).encode(), partition=0, on_delivery=on_delivery)
        while len(producer) > IN_FLIGHT:
            producer.poll(0.01)
            during(len(acked))
    producer.flush(30)
    return acked


def read_back(bootstrap: str) -> list[int]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "demo",
            "enable.auto.commit": False,
        },
        logger=QUIET,
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    _, end = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=10)
    values: list[int] = []
    while len(values) < end:
        messages = consumer.consume(min(5_000, end - len(values)), 5.0)
        if not messages:
            raise Failed(f"only {len(values)} of {end} records came back")
        values += [int(message.value() or b"-1") for message in messages if not message.error()]
    consumer.close()
    return values


def run(data: Path) -> None:
    node = Node(data)
    try:
        seconds = node.start()
        bootstrap = f"localhost:{node.port}"
        tell(f"A node: broker and controller in one process, serving on {bootstrap}", seconds)

        admin = AdminClient({"bootstrap.servers": bootstrap}, logger=QUIET)
        begun = time.perf_counter()
        admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(10)
        tell(
            f"A topic: '{TOPIC}', its id and its one partition fsynced in the metadata log",
            since(begun),
        )

        say(f"{RECORDS:,} records with acks=all from librdkafka; after {KILL_AFTER:,}: kill -9 ...")
        killed: list[float] = []

        def strike(acked: int) -> None:
            if acked >= KILL_AFTER and not killed:
                node.kill()
                tell(f"Killed with -9 after {acked:,} acknowledgements")
                seconds = node.start()
                tell("Back on the same data: log checked, epoch raised, leading again", seconds)
                killed.append(seconds)

        begun = time.perf_counter()
        acked = produce(bootstrap, strike)
        tell(f"{len(acked):,} of {RECORDS:,} records acknowledged in the end", since(begun))
        if not killed:
            raise Failed("the node was never killed: too few acknowledgements")

        values = read_back(bootstrap)
        there = set(values)
        lost = [number for number in acked if number not in there]
        if lost:
            raise Failed(f"{len(lost)} acknowledged records are gone, the first is {lost[0]}")
        if len(values) != len(there):
            raise Failed("a record is there twice, though the producer is idempotent")
        if values != sorted(values):
            raise Failed("the order of records has changed")
        moved = [number for number, offset in acked.items() if values[offset] != number]
        if moved:
            raise Failed(f"record {moved[0]} is not at the offset that was acknowledged")
        tell(f"Read back: {len(values):,} records, 0 lost, 0 twice, order and offsets kept")

        begun = time.perf_counter()
        status = node.stop()
        if status != 0:
            raise Failed(f"the node ended with status {status} after SIGTERM")
        tell("Stopped with SIGTERM: flushed, marked clean, exit 0", since(begun))
    finally:
        if node.process is not None and node.process.poll() is None:
            node.process.kill()


def since(begun: float) -> float:
    return time.perf_counter() - begun


def main() -> int:
    say("cotidal: a log that keeps what it acknowledged\n")
    begun = time.perf_counter()
    try:
        with tempfile.TemporaryDirectory(prefix="cotidal-demo-") as directory:
            run(Path(directory) / "data")
    except Failed as failed:
        say(f"\nFAILED: {failed}")
        return 1
    say(f"\nNothing acknowledged was lost. ({time.perf_counter() - begun:.1f} s)")
    say("Your own: make up, then point any Kafka client at localhost:9092")
    return 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
