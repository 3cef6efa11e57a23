"""The topic that hostile inputs are about, and the node's settings during an attack."""

from __future__ import annotations

from typing import Final

from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic

from cotidal.values import Uuid
from tests.fuzz.hostile import Prey

NAME: Final = "prey"

SETTINGS: Final = {"auto.create.topics.enable": "false"}
"""A damaged name is still a name: with topics that create themselves, it would be one more."""


def create_prey(bootstrap: str) -> Prey:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(NAME, 3, 1)])[NAME].result(10)
    described = admin.describe_topics(TopicCollection([NAME]))[NAME].result(10)
    id_ = described.topic_id
    bits = (id_.get_most_significant_bits(), id_.get_least_significant_bits())
    return Prey(NAME, Uuid(b"".join((half % 2**64).to_bytes(8, "big") for half in bits)))
