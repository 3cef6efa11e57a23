"""An application in the manner of Faust, on aiokafka: a table kept in a changelog, exactly once.

An agent reads orders, adds them up in a table, and writes in one transaction every new sum, the
same into the table's changelog, and how far it has read. When anything fails, it begins again with
a table that it reads from the changelog, as a program does that is started again. A broker is
killed in the middle, and the agent begun anew; every order must be in the sums, once.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from confluent_kafka import Producer

from real_cluster import QUICK, RealCluster

ORDERS, SUMS, CHANGELOG = "orders", "sums", "sums-changelog"
ACCOUNTS = tuple(b"account-%d" % number for number in range(7))
TOTAL = 300
BATCH = 10
PATIENCE_SECONDS = 100


class Agent:
    def __init__(self, bootstrap: str) -> None:
        self.failures: list[str] = []
        self._bootstrap = bootstrap

    async def run(self) -> None:
        while True:
            try:
                await self._live()
            except Exception as failure:  # whatever it is: the next life begins
                self.failures.append(repr(failure))

    async def _live(self) -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=self._bootstrap,
            transactional_id="adder",
            transaction_timeout_ms=10_000,
        )
        consumer = AIOKafkaConsumer(
            ORDERS,
            bootstrap_servers=self._bootstrap,
            group_id="adders",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6_000,
        )
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(producer.stop)
            stack.push_async_callback(consumer.stop)
            await producer.start()  # from here on whatever was left open is aborted
            table = dict(await read_all(self._bootstrap, CHANGELOG))
            await consumer.start()
            while True:
                got = await consumer.getmany(timeout_ms=200, max_records=BATCH)
                if got:
                    await self._process(producer, got, table)

    async def _process(
        self, producer: AIOKafkaProducer, got: dict, table: dict[bytes, bytes]
    ) -> None:
        async with producer.transaction():
            for records in got.values():
                for record in records:
                    new = b"%d" % (int(table.get(record.key, b"0")) + int(record.value))
                    table[record.key] = new
                    await producer.send(SUMS, new, record.key, partition=0)
                    await producer.send(CHANGELOG, new, record.key, partition=0)
            reached = {place: records[-1].offset + 1 for place, records in got.items()}
            await producer.send_offsets_to_transaction(reached, "adders")


async def read_all(bootstrap: str, topic: str) -> list[tuple[bytes, bytes]]:
    """What is committed in a topic of one partition, to its end."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed")
    place = TopicPartition(topic, 0)
    found: list[tuple[bytes, bytes]] = []
    async with consumer:
        consumer.assign([place])
        await consumer.seek_to_beginning(place)
        end = (await consumer.end_offsets([place]))[place]
        while await consumer.position(place) < end:
            got = await consumer.getmany(place, timeout_ms=200)
            found += [(each.key, each.value) for each in got.get(place, [])]
    return found


def write_orders(bootstrap: str, first: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **QUICK})
    for number in range(first, first + count):
        account = ACCOUNTS[number % len(ACCOUNTS)]
        producer.produce(ORDERS, b"%d" % number, account, partition=number % 2)
    assert producer.flush(60) == 0


@contextlib.asynccontextmanager
async def at_work(agent: Agent) -> AsyncIterator[None]:
    running = asyncio.create_task(agent.run())
    try:
        yield
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


async def play(cluster: RealCluster) -> tuple[list[tuple[bytes, bytes]], list[str]]:
    """The sums, once all have come, and what failed in between."""
    agent = Agent(cluster.bootstrap)
    deadline = time.monotonic() + PATIENCE_SECONDS

    async def until(count: int) -> None:
        while len(found := await read_all(cluster.bootstrap, SUMS)) < count:
            assert time.monotonic() < deadline, f"{len(found)} of {count}: {agent.failures[-3:]}"

    async with at_work(agent):
        await asyncio.to_thread(write_orders, cluster.bootstrap, 0, TOTAL // 2)
        await until(TOTAL // 6)
        leader = int(cluster.partitions(SUMS)[0].leader)
        await asyncio.to_thread(cluster.kill, leader)
        await asyncio.to_thread(write_orders, cluster.bootstrap, TOTAL // 2, TOTAL - TOTAL // 2)
        await until(TOTAL // 2)
    async with at_work(agent):  # begun anew: all it knows is in the cluster
        await until(TOTAL)
    return await read_all(cluster.bootstrap, SUMS), agent.failures


def test_every_order_is_added_once_though_a_broker_is_killed(tmp_path: Path) -> None:
    with RealCluster(tmp_path) as cluster:
        cluster.create(ORDERS, 2)
        cluster.create(SUMS, 1)
        cluster.create(CHANGELOG, 1, cleanup_policy="compact")
        sums, failures = asyncio.run(play(cluster))
    assert len(sums) == TOTAL, failures
    last = {account: int(total) for account, total in sums}
    wanted: Counter[bytes] = Counter()
    for number in range(TOTAL):
        wanted[ACCOUNTS[number % len(ACCOUNTS)]] += number
    assert last == dict(wanted), failures
