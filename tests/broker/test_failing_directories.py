"""Three brokers with two disks each, in this process on file systems in memory: one disk fails."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable

import uvloop

from cotidal.broker.config import BrokerConfig, make_config
from cotidal.broker.journal import Journal
from cotidal.broker.main import Running, serve
from cotidal.broker.storage import format_storage
from cotidal.client.admin import create_topic
from cotidal.client.cluster import Cluster
from cotidal.client.metadata import Partition
from cotidal.client.producer import Producer
from cotidal.log.memory import FOREVER, MemoryFiles
from cotidal.values import NodeId

NODES = (1, 2, 3)
PARTITIONS = 6


class Said:
    def __init__(self) -> None:
        self.texts: list[str] = []

    def write(self, level: str, text: str) -> None:
        self.texts.append(text)


class ThreeNodes:
    """Each keeps its metadata log in /m and its logs in /a and /b."""

    def __init__(self) -> None:
        free = ports(2 * len(NODES))
        self.clients = dict(zip(NODES, free[::2], strict=True))
        self.controllers = dict(zip(NODES, free[1::2], strict=True))
        self.files = {node: MemoryFiles() for node in NODES}
        self.said = {node: Said() for node in NODES}
        self.running: dict[int, Running] = {}
        cluster_id: str | None = None
        for node, files in self.files.items():
            for path in ("/m", "/a", "/b"):
                meta = format_storage(files, path, node_id=NodeId(node), cluster_id=cluster_id)
                cluster_id = meta.cluster_id

    @property
    def bootstrap(self) -> str:
        return ",".join(f"localhost:{port}" for port in self.clients.values())

    async def start(self, *nodes: int) -> None:
        for node, running in zip(
            nodes, await asyncio.gather(*map(self._serve, nodes)), strict=True
        ):
            self.running[node] = running

    async def stop(self, *nodes: int) -> None:
        codes = await asyncio.gather(*(self.running.pop(node).stop() for node in nodes))
        assert set(codes) == {0}

    async def _serve(self, node: int) -> Running:
        journal = Journal(self.said[node])
        return await serve(self._config(node), journal=journal, files=self.files[node])

    def _config(self, node: int) -> BrokerConfig:
        voters = ",".join(f"{id_}@localhost:{port}" for id_, port in self.controllers.items())
        return make_config(
            {
                "node.id": str(node),
                "process.roles": "broker,controller",
                "listeners": f"PLAINTEXT://localhost:{self.clients[node]},"
                f"CONTROLLER://localhost:{self.controllers[node]}",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": voters,
                "log.dirs": "/a,/b",
                "metadata.log.dir": "/m",
            }
        )


def ports(count: int) -> list[int]:
    held = [socket.socket() for _ in range(count)]
    try:
        for each in held:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in held]
    finally:
        for each in held:
            each.close()


async def partitions(cluster: Cluster) -> tuple[Partition, ...]:
    """Asked in a thread: those who answer are on this loop."""
    found = await asyncio.to_thread(cluster.metadata, ("orders",))
    topic = found.topic("orders")
    return () if topic is None else topic.partitions


def write_to_all(cluster: Cluster) -> None:
    for number in range(PARTITIONS):
        producer = Producer(cluster, "orders", partition=number, acks=-1)
        producer.add(b"value")
        producer.flush()


async def until(cluster: Cluster, holds: Callable[[tuple[Partition, ...]], bool]) -> None:
    for _ in range(1_000):
        if holds(found := await partitions(cluster)):
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"it did not come to pass: {found}")


def is_whole(found: tuple[Partition, ...]) -> bool:
    return len(found) == PARTITIONS and all(len(each.isr) == 3 for each in found)


async def script(nodes: ThreeNodes) -> None:
    await nodes.start(*NODES)
    with Cluster(nodes.bootstrap, timeout_s=15) as cluster:
        await asyncio.to_thread(
            create_topic, cluster, "orders", partitions=PARTITIONS, replication_factor=3, configs={}
        )
        await until(cluster, is_whole)
        await asyncio.to_thread(write_to_all, cluster)
        victim, files = 2, nodes.files[2]
        lost = {number for number in range(PARTITIONS) if files.exists(f"/b/orders-{number}")}
        led = {each.partition for each in await partitions(cluster) if each.leader == victim}
        assert 0 < len(lost) < PARTITIONS
        assert led & lost
        assert led - lost

        for operation in ("append", "write"):
            files.fail(operation, "/b/", error=errno.ENOSPC, times=FOREVER)
        await asyncio.to_thread(write_to_all, cluster)  # to the new leaders, where need be
        await until(cluster, lambda found: all(victim not in found[each].isr for each in lost))
        for each in await partitions(cluster):
            assert (each.leader == victim) == (each.partition in led - lost), each
            assert each.offline == ((victim,) if each.partition in lost else ())
            assert (victim in each.isr) == (each.partition not in lost)
        (told,) = [text for text in nodes.said[victim].texts if "log directory /b" in text]
        assert f"No space left on device; {len(lost)} replicas in it went offline" in told

        await nodes.stop(victim)
        files.mend()
        await nodes.start(victim)
        await until(cluster, is_whole)
        await asyncio.to_thread(write_to_all, cluster)
    await nodes.stop(*NODES)


def test_a_directory_that_fails_hands_over_what_it_led_and_catches_up_when_mended() -> None:
    loop = uvloop.new_event_loop()
    nodes = ThreeNodes()
    try:
        loop.run_until_complete(asyncio.wait_for(script(nodes), 60))
    finally:
        for running in nodes.running.values():
            running.kill()
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
