"""Three brokers of one make, cotidal or Apache Kafka, as processes: what client suites run against.

Each broker can be killed with -9 and started again; ``Killer`` does so, one after the other, while
something else goes on. It waits until every replica is in sync before it takes the next one: with
two of three replicas down no Kafka would serve either.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from bench import apache_kafka
from bench.server import Server, serving
from real_cluster import QUICK, RealCluster
from tests.interop.mixed_cluster import Make

NODES: Final = (1, 2, 3)
KILL_EVERY_SECONDS: Final = 10.0
DOWN_SECONDS: Final = 2.0
IN_SYNC_SECONDS_MAX: Final = 60.0


class Trio(Protocol):
    name: str
    bootstrap: str

    def kill(self, node: int) -> None: ...

    def restart(self, node: int) -> None: ...


class _Ours(RealCluster):
    name = "cotidal"


class _Theirs:
    def __init__(self, server: Server) -> None:
        self.name = server.name
        self.bootstrap = server.bootstrap
        self.kill = server.kill_node
        self.restart = server.restart_node


@contextmanager
def trio(make: Make, directory: Path, settings: Mapping[str, str]) -> Iterator[Trio]:
    if make is Make.COTIDAL:
        with _Ours(directory, settings=settings) as ours:
            yield ours
    else:
        with serving(apache_kafka.recipe(len(NODES), directory, dict(settings))) as server:
            yield _Theirs(server)


class Killer:
    """Takes brokers down, one by one, for the length of a ``with`` block or ``kills_max`` times."""

    def __init__(self, cluster: Trio, kills_max: int | None = None) -> None:
        self.kills = 0
        self._kills_max = kills_max
        self._cluster = cluster
        self._over = threading.Event()
        self._wrong: BaseException | None = None
        self._thread = threading.Thread(target=self._go_on, name="killer", daemon=True)

    @property
    def is_at_work(self) -> bool:
        """There is more to be killed, or something is down."""
        return self._thread.is_alive()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self._wrong is not None:
            raise self._wrong

    def _go_on(self) -> None:
        try:
            while self.kills != self._kills_max:
                if self._over.wait(KILL_EVERY_SECONDS - DOWN_SECONDS) or not self._is_whole():
                    break
                node = NODES[self.kills % len(NODES)]
                self._cluster.kill(node)
                self.kills += 1
                self._over.wait(DOWN_SECONDS)
                self._cluster.restart(node)
        except BaseException as wrong:  # told in the thread that waits for this one
            self._wrong = wrong

    def _is_whole(self) -> bool:
        """All replicas in sync; False if it is over before that."""
        admin = AdminClient({"bootstrap.servers": self._cluster.bootstrap, **QUICK})
        deadline = time.monotonic() + IN_SYNC_SECONDS_MAX
        while not self._over.wait(0.2):
            out_of_sync = behind(admin)
            if not out_of_sync:
                return True
            assert time.monotonic() < deadline, f"out of sync for a minute: {out_of_sync}"
        return False


def behind(admin: AdminClient) -> list[str]:
    """Partitions that lack replicas in sync; or that nobody could be asked."""
    try:
        topics = admin.list_topics(timeout=10).topics.values()
    except KafkaException as wrong:
        return [str(wrong)]
    return [
        f"{topic.topic}-{partition.id}"
        for topic in topics
        for partition in topic.partitions.values()
        if len(partition.isrs) < len(partition.replicas)
    ]
