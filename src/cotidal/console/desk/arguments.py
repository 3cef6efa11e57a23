"""What questions are asked with, read with care: a page may say anything. Pure."""

from __future__ import annotations

from typing import Final

from cotidal.console.world import Command, Refused
from cotidal.values import NodeId, TopicPartition

TOPIC_NAME_MAX: Final = 249
"""As long as a topic's name can be."""
NAME_MAX: Final = 32_767
"""Of a group, a transactional id: what the protocol's shortest texts can hold."""
INT32_MAX: Final = (1 << 31) - 1
OFFSET_MAX: Final = (1 << 63) - 1


def topic_of(asked: Command) -> str:
    return asked.text("topic", longest=TOPIC_NAME_MAX)


def partition_of(asked: Command) -> TopicPartition:
    return TopicPartition(topic_of(asked), asked.number("partition", least=0, most=INT32_MAX))


def partitions_of(asked: Command) -> list[TopicPartition]:
    """``topic`` alone is refused here: ``partitions`` names them as pairs."""
    found = []
    for each in asked.list_of("partitions"):
        match each:
            case [str() as topic, int() as partition] if 0 <= partition <= INT32_MAX:
                found.append(TopicPartition(topic, partition))
            case _:
                raise Refused("'partitions' is a list of pairs of a topic and a number")
    return found


def topics_of(asked: Command) -> list[str]:
    found = asked.list_of("topics")
    if not all(isinstance(each, str) and 0 < len(each) <= TOPIC_NAME_MAX for each in found):
        raise Refused("'topics' is a list of names")
    return found


def brokers_of(asked: Command, name: str) -> list[NodeId]:
    found = asked.list_of(name)
    if not all(type(each) is int and 0 <= each <= INT32_MAX for each in found):
        raise Refused(f"'{name}' is a list of broker ids")
    return [NodeId(each) for each in found]
