"""What a decision of the controller is made from. Pure.

The rules themselves are functions in ``decide/``; each takes the Controller, looks at its image and
returns records or a Refusal. Nothing here changes the image: whoever appends the records replays
them. Entropy is the one thing that a decision uses up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from cotidal.core.cluster.image import BROKER_RESOURCE, TOPIC_RESOURCE, Image, MetadataRecord
from cotidal.core.machine import Entropy
from cotidal.errors import Refusal
from cotidal.settings import effective

Records: TypeAlias = tuple[MetadataRecord, ...]
Decided: TypeAlias = Records | Refusal
"""What ``decide/`` returns: records to be appended together, or why not."""


class Controller:
    """The active controller's working knowledge."""

    __slots__ = ("entropy", "image", "node_id", "settings")

    def __init__(
        self, image: Image, entropy: Entropy, settings: Mapping[str, str], *, node_id: int
    ) -> None:
        self.image = image
        """The speculative image: everything appended has been replayed into it."""
        self.entropy = entropy
        self.settings = settings
        """Static settings of this node, as in server.properties."""
        self.node_id = node_id

    def number(self, name: str) -> int:
        """A broker setting that is a whole number, as it holds for the cluster."""
        value = effective(
            name,
            broker=self.image.config(BROKER_RESOURCE, str(self.node_id)),
            cluster=self.image.cluster_config,
            static=self.settings,
        ).value
        assert isinstance(value, int), name
        return value

    def flag(self, name: str) -> bool:
        return bool(self.number(name))

    def min_isr(self, topic: str) -> int:
        """min.insync.replicas of a topic, before it is bounded by the number of replicas."""
        value = self._topic_value("min.insync.replicas", topic)
        assert isinstance(value, int)
        return value

    def unclean_allowed(self, topic: str) -> bool:
        return self._topic_value("unclean.leader.election.enable", topic) is True

    def _topic_value(self, name: str, topic: str) -> object:
        return effective(
            name,
            topic=self.image.config(TOPIC_RESOURCE, topic),
            broker=self.image.config(BROKER_RESOURCE, str(self.node_id)),
            cluster=self.image.cluster_config,
            static=self.settings,
        ).value
