"""What a compaction costs those who write meanwhile (``python -m bench.compaction_beside``).

One record at a time is written with acks=all to three brokers (RF 3): for some seconds while
nothing else is done, and while all three compact their replicas of another topic. The goal is a
99th percentile of at most twice what it is alone. A topic is filled first and called compacted
then, so that a compaction begins when it is wanted; it is over when no cleaner is ahead of its
checkpoint any more (the file `cleaner-offset-checkpoint` of each broker names the partition).

Uses some 900 MB of the temporary directory, and gives them back.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.cimpl import NewTopic

from bench import cotidal_cluster
from bench.load import LoadFailed
from bench.server import Server, serving
from cotidal.log.checkpoint import CLEANED_TO

BROKERS: Final = 3
FILLED_BYTES: Final = 256 << 20
VALUE: Final = bytes(range(256)) * 4
KEYS: Final = 25_000
RECORD: Final = bytes(100)
ALONE_S: Final = 5.0
WAIT_S: Final = 120.0
GOAL_RATIO: Final = 2.0
SETTINGS: Final = {
    "cleanup.policy": "delete",
    "segment.bytes": str(16 << 20),
    "min.cleanable.dirty.ratio": "0.01",
}


class Measured(NamedTuple):
    p50_ms: float
    p99_ms: float
    seconds: float


def main() -> int:
    with (
        tempfile.TemporaryDirectory(prefix="cotidal-bench-", ignore_cleanup_errors=True) as work,
        serving(
            cotidal_cluster.recipe(BROKERS, Path(work), overrides=("log.cleaner.backoff.ms=100",))
        ) as server,
    ):
        admin = AdminClient({"bootstrap.servers": server.bootstrap, "log_level": 0})
        for name, settings in (("filled", SETTINGS), ("written", {})):
            topic = NewTopic(name, 1, BROKERS, config=settings)
            admin.create_topics([topic])[name].result(WAIT_S)
        _fill(server)
        _write(server, _for_seconds(ALONE_S))  # unmeasured: a path is warm after it
        alone = _write(server, _for_seconds(ALONE_S))
        _compact(admin)
        beside = _write(server, lambda: not _is_compacted(server))
    _tell(alone, beside)
    return 0


def _tell(alone: Measured, beside: Measured) -> None:
    for name, measured in (("alone", alone), ("beside a compaction", beside)):
        print(f"{name:20} p50 {measured.p50_ms:6.2f} ms   p99 {measured.p99_ms:6.2f} ms")
    speed = FILLED_BYTES / beside.seconds / 1e6
    ratio = beside.p99_ms / alone.p99_ms
    print(f"compacted at {speed:.0f} MB/s on each of {BROKERS} brokers, {beside.seconds:.1f} s")
    print(f"p99 moved by {ratio:.2f}x; goal: <= {GOAL_RATIO:.0f}x")


def _fill(server: Server) -> None:
    producer = Producer(
        {
            "bootstrap.servers": server.bootstrap,
            "acks": "all",
            "linger.ms": 5,
            "queue.buffering.max.kbytes": 65_536,
            "log_level": 0,
        }
    )
    for number in range(FILLED_BYTES // len(VALUE)):
        while True:
            try:
                producer.produce("filled", VALUE, b"key-%d" % (number % KEYS))
                break
            except BufferError:
                producer.poll(0.05)
        producer.poll(0)
    if producer.flush(WAIT_S):
        raise LoadFailed("what is to be compacted was not written in time")


def _compact(admin: AdminClient) -> None:
    entry = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, "filled", incremental_configs=[entry])
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(WAIT_S)


def _is_compacted(server: Server) -> bool:
    homes = [path.parent for path in server.recipe.pid_files]
    return all(_names_filled(home / CLEANED_TO) for home in homes)


def _names_filled(checkpoint: Path) -> bool:
    try:
        return "filled 0" in checkpoint.read_text(encoding="utf-8")
    except FileNotFoundError:
        return False


def _for_seconds(seconds: float) -> Callable[[], bool]:
    until = time.monotonic() + seconds
    return lambda: time.monotonic() < until


def _write(server: Server, goes_on: Callable[[], bool]) -> Measured:
    settings = {"bootstrap.servers": server.bootstrap, "acks": "all", "linger.ms": 0}
    producer = Producer(settings | {"log_level": 0})
    took: list[float] = []
    begun = time.monotonic()
    while goes_on():
        if time.monotonic() - begun > WAIT_S:
            raise LoadFailed(f"it was not compacted within {WAIT_S:.0f} s")
        sent = time.perf_counter()
        producer.produce("written", RECORD)
        if producer.flush(WAIT_S):
            raise LoadFailed("a record was not acknowledged in time")
        took.append(time.perf_counter() - sent)
    cut = statistics.quantiles(took, n=100)
    return Measured(1e3 * cut[49], 1e3 * cut[98], time.monotonic() - begun)


if __name__ == "__main__":
    sys.exit(main())
