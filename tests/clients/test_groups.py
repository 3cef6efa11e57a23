"""Consumer groups, as each client library has them: members share a topic, commit, come and go."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupType
from confluent_kafka import TopicPartition as ConfluentPartition
from confluent_kafka.admin import AdminClient

from real_node import RealNode
from tests.clients.confluent import Confluent
from tests.clients.members import MEMBERS, OfConfluent, OfConsumerProtocol
from tests.clients.speaking import PATIENCE_SECONDS, Acks, Sent

# kafka-python leaves a socket to the collector now and then.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

RECORDS = 40
PARTITIONS = 4


@pytest.fixture
def filled(confluent: Confluent, topic: str) -> str:
    confluent.create_topic(topic, PARTITIONS)
    for partition in range(PARTITIONS):
        records = [Sent(None, b"%d" % each) for each in range(RECORDS // PARTITIONS)]
        confluent.write(topic, partition, records, codec="none", acks=Acks(-1))
    return topic


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 2 * PATIENCE_SECONDS
    while not done():
        assert time.monotonic() < deadline, "it did not come about"


@pytest.mark.parametrize("make", MEMBERS, ids=lambda made: made.__name__)
def test_members_share_the_partitions_and_go_on_where_others_left_off(
    node: RealNode, filled: str, make: Any
) -> None:
    group = f"group-of-{filled}"
    first = make(node.bootstrap, group, filled)
    seen: list[tuple[int, int]] = []

    def read_half() -> bool:
        seen.extend(first.poll())
        return len(seen) >= RECORDS // 2

    until(read_half)
    first.commit()
    second = make(node.bootstrap, group, filled)
    more: list[tuple[int, int]] = []

    def shared() -> bool:
        more.extend((*first.poll(), *second.poll()))
        return len(first.partitions()) == len(second.partitions()) == PARTITIONS // 2

    until(shared)
    assert first.partitions() | second.partitions() == set(range(PARTITIONS))

    def read_rest() -> bool:
        more.extend((*first.poll(), *second.poll()))
        return len({*seen, *more}) == RECORDS

    until(read_rest)
    first.commit()
    second.commit()
    first.close()

    def alone() -> bool:
        more.extend(second.poll())
        return len(second.partitions()) == PARTITIONS

    until(alone)
    looker = Consumer({"bootstrap.servers": node.bootstrap, "group.id": group})
    wanted = [ConfluentPartition(filled, each) for each in range(PARTITIONS)]

    def all_committed() -> bool:
        """What was read and not committed before its partition moved is read once more."""
        more.extend(second.poll())
        second.commit()
        found = looker.committed(wanted, timeout=PATIENCE_SECONDS)
        return {each.offset for each in found} == {RECORDS // PARTITIONS}

    until(all_committed)
    second.close()
    looker.close()
    assert {*seen, *more} == {
        (partition, offset)
        for partition in range(PARTITIONS)
        for offset in range(RECORDS // PARTITIONS)
    }


def test_groups_are_administered(node: RealNode, filled: str) -> None:
    group = f"administered-{filled}"
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    member = OfConfluent(node.bootstrap, group, filled)
    until(lambda: len(member.poll()) > 0)
    member.commit()
    described = admin.describe_consumer_groups([group])[group].result(PATIENCE_SECONDS)
    assert described.state is ConsumerGroupState.STABLE
    assert len(described.members[0].assignment.topic_partitions) == PARTITIONS
    listed = admin.list_consumer_groups().result(PATIENCE_SECONDS)
    assert group in {each.group_id for each in listed.valid}
    member.close()
    admin.delete_consumer_groups([group])[group].result(PATIENCE_SECONDS)
    listed = admin.list_consumer_groups().result(PATIENCE_SECONDS)
    assert group not in {each.group_id for each in listed.valid}


def test_members_move_to_the_consumer_protocol_one_by_one_and_back(
    node: RealNode, filled: str
) -> None:
    group = f"moving-{filled}"
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    members: list[Any] = [OfConfluent(node.bootstrap, group, filled) for _ in range(2)]

    def shared() -> bool:
        for member in members:
            member.poll()
        has = [member.partitions() for member in members]
        return sum(map(len, has)) == PARTITIONS == len(set().union(*has)) and all(has)

    def kind() -> ConsumerGroupType:
        listed = admin.list_consumer_groups().result(PATIENCE_SECONDS).valid
        found: ConsumerGroupType = next(each.type for each in listed if each.group_id == group)
        return found

    def replace(at: int, make: Any) -> None:
        members[at].close()
        members[at] = make(node.bootstrap, group, filled)
        until(shared)

    until(shared)
    assert kind() is ConsumerGroupType.CLASSIC
    replace(0, OfConsumerProtocol)
    assert kind() is ConsumerGroupType.CONSUMER
    replace(1, OfConsumerProtocol)
    described = admin.describe_consumer_groups([group])[group].result(PATIENCE_SECONDS)
    assert (described.state, described.type) == (
        ConsumerGroupState.STABLE,
        ConsumerGroupType.CONSUMER,
    )
    replace(0, OfConfluent)
    assert kind() is ConsumerGroupType.CONSUMER
    replace(1, OfConfluent)
    assert kind() is ConsumerGroupType.CLASSIC
    for member in members:
        member.close()


def test_an_expression_subscribes_to_topics_that_come(
    node: RealNode, confluent: Confluent, topic: str
) -> None:
    confluent.create_topic(f"{topic}-a", 2)
    member = OfConsumerProtocol(node.bootstrap, f"expressive-{topic}", f"^{topic}-.*")

    def has(count: int) -> bool:
        member.poll()
        return len(member._consumer.assignment()) == count

    until(lambda: has(2))
    confluent.create_topic(f"{topic}-b", 3)
    until(lambda: has(5))
    member.close()
