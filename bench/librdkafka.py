"""``python -m bench.librdkafka``: the loads of ``loadgen/`` through librdkafka.

Takes the generator's words and options and prints the same fields. librdkafka is driven from
Python, so every row also says what the client itself cost: where it is near a whole core, the
client was the limit, and the number says what a Python program gets, not what the server can do.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

from confluent_kafka import Consumer, Producer
from confluent_kafka.cimpl import TopicPartition

FLUSH_SECONDS_MAX: Final = 60
POLL_EVERY: Final = 500
"""Records between two looks at what was delivered."""
WARMUP: Final = 200
IN_FLIGHT: Final = 100
CONSUMED_AT_ONCE: Final = 10_000


class Delivered:
    """Counts what was delivered and what was refused."""

    __slots__ = ("failed", "written")

    def __init__(self) -> None:
        self.written = 0
        self.failed = 0

    def __call__(self, error: object, _message: object) -> None:
        if error is None:
            self.written += 1
        else:
            self.failed += 1


def produce(asked: argparse.Namespace) -> dict[str, float]:
    return _write(asked, {"linger.ms": 5, "batch.size": 1 << 20, "batch.num.messages": 100_000})


def pipelined(asked: argparse.Namespace) -> dict[str, float]:
    """Every record a request of its own. The queue is short: what is in it when the time is up must
    still be written, and a slow server would take minutes for it."""
    settings = {
        "linger.ms": 0,
        "batch.num.messages": 1,
        "max.in.flight": IN_FLIGHT,
        "queue.buffering.max.messages": 10 * IN_FLIGHT,
    }
    return _write(asked, settings)


def _write(asked: argparse.Namespace, settings: Mapping[str, Any]) -> dict[str, float]:
    producer = Producer(
        {
            "bootstrap.servers": asked.bootstrap,
            "acks": asked.acks,
            "queue.buffering.max.messages": 200_000,
            "queue.buffering.max.kbytes": 262_144,
            "log_level": 0,
            **settings,
        }
    )
    producer.list_topics(asked.topic, timeout=10)  # connected before the clock starts
    value = os.urandom(asked.size)
    delivered = Delivered()
    begun, cpu = time.monotonic(), time.process_time()
    end, sent, most = begun + asked.seconds, 0, asked.max_bytes // asked.size
    while sent < most and time.monotonic() < end:
        for _ in range(POLL_EVERY):
            try:
                producer.produce(asked.topic, value, on_delivery=delivered)
                sent += 1
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
    producer.flush(FLUSH_SECONDS_MAX)
    seconds = time.monotonic() - begun
    return {
        "seconds": seconds,
        "cpu_seconds": time.process_time() - cpu,
        "written": delivered.written,
        "failed": sent - delivered.written,
        "records_per_s": delivered.written / seconds,
        "requests_per_s": delivered.written / seconds,
        "mb_per_s": delivered.written * asked.size / seconds / 1e6,
    }


def consume(asked: argparse.Namespace) -> dict[str, float]:
    """Reads ``--records`` records of all partitions, without a group."""
    consumer = Consumer(
        {
            "bootstrap.servers": asked.bootstrap,
            "group.id": uuid.uuid4().hex,
            "enable.auto.commit": False,
            "fetch.message.max.bytes": 4 << 20,
            "queued.max.messages.kbytes": 262_144,
            "check.crcs": False,
            "log_level": 0,
        }
    )
    partitions = consumer.list_topics(asked.topic, timeout=10).topics[asked.topic].partitions
    begun, cpu, read = time.monotonic(), time.process_time(), 0
    consumer.assign([TopicPartition(asked.topic, number, 0) for number in partitions])
    while read < asked.records and time.monotonic() - begun < asked.seconds:
        wanted = min(CONSUMED_AT_ONCE, asked.records - read)  # it waits until it has them all
        read += sum(not each.error() for each in consumer.consume(wanted, 1.0))
    seconds = time.monotonic() - begun
    used = time.process_time() - cpu
    consumer.close()
    return {
        "seconds": seconds,
        "cpu_seconds": used,
        "failed": asked.records - read,
        "mb_per_s": read * asked.size / seconds / 1e6,
    }


def latency(asked: argparse.Namespace) -> dict[str, float]:
    """One record at a time: from produce() to its delivery report."""
    producer = Producer(
        {
            "bootstrap.servers": asked.bootstrap,
            "acks": asked.acks,
            "linger.ms": 0,
            "socket.nagle.disable": True,
            "log_level": 0,
        }
    )
    value, delivered, micros = os.urandom(asked.size), Delivered(), []
    begun, cpu = time.monotonic(), time.process_time()
    for number in range(WARMUP + asked.records):
        if number == WARMUP:
            begun, cpu = time.monotonic(), time.process_time()
        sent = time.perf_counter_ns()
        producer.produce(asked.topic, value, partition=0, on_delivery=delivered)
        while delivered.written + delivered.failed <= number:
            producer.poll(0.5)
        micros.append((time.perf_counter_ns() - sent) / 1000)
    measured = sorted(micros[WARMUP:])
    return {
        "seconds": time.monotonic() - begun,
        "cpu_seconds": time.process_time() - cpu,
        "failed": delivered.failed,
        "p50_us": measured[len(measured) // 2],
        "p99_us": measured[len(measured) * 99 // 100],
    }


VERBS: Final[dict[str, Callable[[argparse.Namespace], dict[str, float]]]] = {
    "produce": produce,
    "consume": consume,
    "latency": latency,
    "pipelined": pipelined,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.librdkafka", description=__doc__)
    parser.add_argument("verb", choices=VERBS)
    parser.add_argument("-bootstrap", required=True)
    parser.add_argument("-topic", required=True)
    parser.add_argument("-acks", default="-1")
    parser.add_argument("-size", type=int, default=1024)
    parser.add_argument("-seconds", type=float, default=5)
    parser.add_argument("-max-bytes", type=int, default=1 << 40)
    parser.add_argument("-records", type=int, default=0)
    asked = parser.parse_args()
    print(json.dumps(VERBS[asked.verb](asked)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
