"""The settings that docs/durability.md gives to copy, with a broker killed in the middle.

The page is read: what it says is what runs. Five brokers, so that those that have no replica of the
topic keep the quorum while replicas die.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, Producer

from cotidal.client.admin import create_topic
from cotidal.client.cluster import Cluster as Client
from cotidal.testing.cluster import Cluster

PAGE = Path(__file__).resolve().parents[2] / "docs" / "durability.md"
BLOCK = re.compile(r"^```(\w+) (\w+)\n(.*?)^```$", re.S | re.M)
PROFILES = ("Nothing lost", "Fast", "Available")
CLIENTS = ("librdkafka", "aiokafka")
RECORDS = 400
KILLED_AT = RECORDS // 2


def blocks(profile: str) -> dict[str, str]:
    """What the page gives for a profile, by whom it is for."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {profile}\n")[1].split("\n## ")[0]
    return {match[2]: match[3] for match in BLOCK.finditer(section)}


def settings(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.split())


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(5, settings={"broker.session.timeout.ms": "1500"}) as started:
        yield started


def create(cluster: Cluster, profile: str) -> tuple[int, ...]:
    """A topic as the page says; its replicas, the leader first."""
    configs = settings(blocks(profile)["topic"])
    replicas = int(configs.pop("replication.factor"))
    with Client(cluster.bootstrap) as client:
        create_topic(client, "orders", partitions=1, replication_factor=replicas, configs=configs)
        told = client.topic("orders").partitions[0]
    return (told.leader, *(each for each in told.replicas if each != told.leader))


class Outcome:
    def __init__(self) -> None:
        self.acknowledged: list[int] = []
        self.failed: list[str] = []


def write_librdkafka(
    bootstrap: str,
    text: str,
    meanwhile: Callable[[int], None],
    *,
    patience_s: float = 60,
    settled_at: int | None = None,
) -> Outcome:
    """``settled_at``: whatever comes before this number is acknowledged before it goes on."""
    outcome = Outcome()
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0, **settings(text)})

    def told(number: int) -> Callable[[KafkaError | None, object], None]:
        def tell(error: KafkaError | None, message: object) -> None:
            if error is None:
                outcome.acknowledged.append(number)
            else:
                outcome.failed.append(error.str())

        return tell

    for number in range(RECORDS):
        if number == settled_at:
            assert producer.flush(30) == 0
        meanwhile(number)
        producer.produce("orders", str(number), on_delivery=told(number))
        producer.poll(0.002)
    producer.flush(patience_s)
    return outcome


def write_aiokafka(
    bootstrap: str, text: str, meanwhile: Callable[[int], None], *, patience_s: float = 60
) -> Outcome:
    outcome = Outcome()
    given = eval(text, {"dict": dict})

    async def write() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap.split(","), **given)
        await producer.start()
        sends: list[tuple[int, Any]] = []
        try:
            for number in range(RECORDS):
                await asyncio.to_thread(meanwhile, number)
                sends.append((number, await producer.send("orders", str(number).encode())))
                await asyncio.sleep(0.002)
            await asyncio.wait([each for _, each in sends], timeout=patience_s)
        finally:
            await producer.stop()
        for number, sent in sends:
            if sent.done() and sent.exception() is None:
                outcome.acknowledged.append(number)
            else:
                outcome.failed.append(str(number))

    asyncio.run(write())
    return outcome


WRITERS = {"librdkafka": write_librdkafka, "aiokafka": write_aiokafka}


def read(cluster: Cluster) -> list[int]:
    """Everything, by the consumer of the page."""
    given = settings(blocks("Nothing lost")["consumer"])
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": "readers", "log_level": 0, **given}
    )
    consumer.subscribe(["orders"])
    found: list[int] = []
    quiet_at = time.monotonic() + 30
    while time.monotonic() < quiet_at:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            found.append(int(message.value() or b""))
            consumer.commit(message)
            quiet_at = time.monotonic() + 3
    consumer.close()
    return found


def test_every_profile_has_every_client() -> None:
    for profile in PROFILES:
        assert {"topic", "java", *CLIENTS} <= blocks(profile).keys()
    assert "consumer" in blocks("Nothing lost")


@pytest.mark.parametrize("client", CLIENTS)
def test_nothing_is_lost_or_doubled_when_the_leader_is_killed(
    cluster: Cluster, client: str
) -> None:
    leader, *followers = create(cluster, "Nothing lost")

    def kill(number: int) -> None:
        if number == KILLED_AT - 50:
            cluster.slow(leader, *followers, seconds=0.2)  # so that it has what they do not
        elif number == KILLED_AT:
            cluster.kill(leader)

    text = blocks("Nothing lost")[client]
    outcome = WRITERS[client](cluster.bootstrap, text, kill)
    assert outcome.failed == []
    assert read(cluster) == list(range(RECORDS))


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("profile", ["Fast", "Available"])
def test_only_what_was_written_before_a_leader_died_can_be_lost(
    cluster: Cluster, profile: str, client: str
) -> None:
    leader, *_ = create(cluster, profile)

    def kill(number: int) -> None:
        if number == KILLED_AT:
            cluster.kill(leader)

    outcome = WRITERS[client](cluster.bootstrap, blocks(profile)[client], kill)
    lost = set(outcome.acknowledged) - set(read(cluster))
    assert all(number < KILLED_AT for number in lost), sorted(lost)
    assert len(outcome.acknowledged) + len(outcome.failed) == RECORDS
    assert max(outcome.acknowledged) == RECORDS - 1, "it goes on with another leader"


@pytest.mark.parametrize(
    ("profile", "goes_on"), [("Nothing lost", False), ("Fast", True), ("Available", True)]
)
def test_with_one_replica_left_safety_waits_and_the_others_go_on(
    cluster: Cluster, profile: str, goes_on: bool
) -> None:
    _, *followers = create(cluster, profile)

    def kill(number: int) -> None:
        if number == KILLED_AT:
            for follower in followers:
                cluster.kill(follower)

    text = blocks(profile)["librdkafka"]
    outcome = write_librdkafka(
        cluster.bootstrap,
        text,
        kill,
        patience_s=15 if goes_on else 3,
        settled_at=KILLED_AT,
    )
    assert outcome.failed == []
    assert len(outcome.acknowledged) == (RECORDS if goes_on else KILLED_AT)
    if not goes_on:
        cluster.restart(followers[0])
        found = read(cluster)
        assert set(outcome.acknowledged) <= set(found)
        assert len(found) == len(set(found))
