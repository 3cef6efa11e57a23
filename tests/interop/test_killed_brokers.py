"""Every client that has no suite of its own for it, while brokers are killed one after the other.

The story is told in stories.py: a writer and a group of two readers that commit, with each client's
own defaults, until four brokers have been killed with -9 and are back. What the application is told
must be what Apache Kafka would tell it. franz-go's chains and Kafka Streams have their own tests.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from typing import Final, NamedTuple

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop import (
    telling_aiokafka,
    telling_confluent,
    telling_kafka_python,
    telling_kafkajs,
)
from tests.interop.stories import PARTITIONS, Story
from tests.interop.storytellers import tell
from tests.interop.suites import Missing, Suite
from tests.interop.trios import Killer, Trio

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

KILLS: Final = 4
KILLED: Final = "a broker killed every 10 s"
KNOWN: Final = {
    ("kafka-python", True): {
        "the group reads all that is acknowledged": "a transaction whose partitions are to be added"
        " while its coordinator refuses connections: kafka-python forgets to add them, gives its"
        " records up after two minutes, and tells a commit (_maybe_send_pending_request, 3.0.12)"
    }
}
"""(client, transactional) -> what fails on every broker -> why."""


class Client(NamedTuple):
    name: str
    version: str
    does: str
    tell: Callable[..., None]
    """(bootstrap, topic, story, transactional=)."""
    transactional: bool = False


def clients() -> tuple[Client, ...]:
    rows = (
        ("confluent-kafka", "group of two", telling_confluent.CLASSIC),
        ("confluent-kafka", "group of two (consumer protocol)", telling_confluent.CONSUMER),
        ("aiokafka", "group of two", telling_aiokafka.TELLER),
        ("kafka-python", "group of two", telling_kafka_python.TELLER),
    )
    python = [
        Client(name, version(name), f"{writer} and {group}", partial(tell, teller), transactional)
        for name, group, teller in rows
        for writer, transactional in (("writer", False), ("transactions", True))
    ]
    node = [
        Client("kafkajs", telling_kafkajs.VERSION, f"{writer} and group of two",
               telling_kafkajs.tell, transactional)
        for writer, transactional in (("writer", False), ("transactions", True))
    ]  # fmt: skip
    return (*python, *node)


@pytest.fixture(autouse=True)
def swept() -> Iterator[None]:
    """Sockets that clients leave open are found here, and not by some test that comes later."""
    yield
    gc.collect()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # sockets of theirs
@pytest.mark.parametrize("client", clients(), ids=lambda client: f"{client.name}: {client.does}")
def test_writing_and_reading_while_brokers_are_killed(
    cluster: Trio, topic: str, judge: Callable[..., dict[str, str]], client: Client
) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(topic, PARTITIONS, 3)])[topic].result(30)
    with Killer(cluster, kills_max=KILLS) as killer:
        story = Story(goes_on=lambda: killer.is_at_work)
        try:
            client.tell(cluster.bootstrap, topic, story, transactional=client.transactional)
        except Missing as missing:
            pytest.skip(str(missing))
    assert killer.kills == KILLS
    suite = Suite(client.name, client.version, f"{client.does}, {KILLED}")
    known = KNOWN.get((client.name, client.transactional), {})
    unknown = judge(suite, story.checks(transactional=client.transactional), known)
    print(f"{cluster.name}: {client.name}, {client.does}: {story.told()}")
    assert unknown == {}
