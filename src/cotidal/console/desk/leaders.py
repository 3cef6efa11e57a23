"""Electing leaders by hand."""

from __future__ import annotations

from typing import Final

from cotidal.client.moving import Election, elect_leaders
from cotidal.console.desk.question import Desk
from cotidal.console.world import Command, Json, Refused
from cotidal.values import TopicPartition

PARTITION_MAX: Final = (1 << 31) - 1
TOPIC_NAME_MAX: Final = 249
"""As long as a topic's name can be."""


def elect(desk: Desk, asked: Command) -> Json:
    """``topic``, ``partition``; ``unclean``: anyone, where nobody leads, whatever it lacks."""
    at = TopicPartition(
        asked.text("topic", longest=TOPIC_NAME_MAX),
        asked.number("partition", least=0, most=PARTITION_MAX),
    )
    unclean = asked.flag("unclean", default=False)
    how = Election.UNCLEAN if unclean else Election.PREFERRED
    outcome = elect_leaders(desk.cluster, how, [at])[0]
    if outcome.error:
        raise Refused(f"{at}: {outcome.reason}")
    return {"partition": str(at)}
