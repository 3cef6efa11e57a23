"""The follower's side of fetch sessions: only what has changed is asked for anew. Pure. KIP-227.

One session for each leader and lane (fetchers.py), begun by a full fetch. Every fetch after it
names the partitions whose question is new and those that are not asked for any more; an answer
leaves out those of which there is nothing to tell. So a leader and a follower with a thousand
partitions and nothing to do have little to say to each other.

A leader tells a high watermark once. So whenever what it told was not taken in, and whenever a
follower has been told nothing yet of a partition that the leader takes for known (it follows in
another epoch than before), the session is over; and whenever the follower has registered anew, for
what one incarnation has said is not to be taken for the word of another. The next fetch is a full
one, then, and names the session that it replaces. That is always right, and merely longer.

After an answer that told nothing at all, the next fetch waits longer: records end it in any case,
and of a high watermark that moves later than that there is no hurry to hear.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from cotidal.core.partition.follower import Question
from cotidal.node.sessions import next_epoch
from cotidal.values import NO_BROKER_EPOCH, BrokerEpoch, TopicPartition, Uuid

NO_SESSION: Final = 0
QUIET_WAITS: Final = 4
"""So many times as long does a fetch wait where nothing happens: a quarter of what three idle
brokers did was such fetches."""


class Terms(NamedTuple):
    """What a follower asks for with every fetch: the settings replica.fetch.*."""

    wait_ms: int
    quiet_wait_ms: int
    """After an answer that told nothing. A small part of replica.lag.time.max.ms: the leader counts
    from the last fetch how long a follower has not been level with it."""
    min_bytes: int
    max_bytes: int
    partition_max_bytes: int


def terms(number: Callable[[str], int]) -> Terms:
    wait_ms = number("replica.fetch.wait.max.ms")
    longest_ms = number("replica.lag.time.max.ms") // QUIET_WAITS
    return Terms(
        wait_ms,
        max(wait_ms, min(QUIET_WAITS * wait_ms, longest_ms)),
        number("replica.fetch.min.bytes"),
        number("replica.fetch.response.max.bytes"),
        number("replica.fetch.max.bytes"),
    )


class Put(NamedTuple):
    """What is asked about one partition."""

    topic_id: Uuid
    question: Question
    is_untold: bool
    """The follower has not heard where this leader's high watermark is."""


class Wording(NamedTuple):
    """A fetch as it is to be said."""

    session_id: int
    session_epoch: int
    named: dict[TopicPartition, Put]
    forgotten: dict[TopicPartition, Uuid]

    @property
    def is_full(self) -> bool:
        return self.session_epoch == 0


class ReplicaSession:
    __slots__ = ("_broker_epoch", "_epoch", "_id", "_known", "is_quiet")

    def __init__(self) -> None:
        self._broker_epoch = NO_BROKER_EPOCH
        """Ours, in the last fetch."""
        self._id = NO_SESSION
        self._epoch = 0
        """Of the next fetch; 0: a full one."""
        self._known: dict[TopicPartition, Put] = {}
        """What the leader takes for asked."""
        self.is_quiet = False
        """The last answer told nothing."""

    def word(self, asked: dict[TopicPartition, Put], broker_epoch: BrokerEpoch) -> Wording:
        """How to ask just for these. The fetch is taken for sent: see ``end``."""
        known, self._known = self._known, asked
        if broker_epoch != self._broker_epoch:
            self._broker_epoch = broker_epoch
            self._epoch = 0
        named: dict[TopicPartition, Put] = {}
        for at, put in asked.items():
            before = known.get(at)
            if put is before:  # most of them, where there are many
                continue
            if before is not None and put.is_untold:
                self._epoch = 0
            if self._epoch == 0:
                break
            if _is_news(put, before):
                named[at] = put
        if self._epoch == 0:
            return Wording(self._id, 0, asked, {})
        forgotten = {at: put.topic_id for at, put in known.items() if at not in asked}
        epoch = self._epoch
        self._epoch = next_epoch(epoch)
        return Wording(self._id, epoch, named, forgotten)

    def has_news(self, asked: dict[TopicPartition, Put]) -> bool:
        """Whether a fetch of these would tell the leader anything that it has not heard."""
        return any(_is_news(put, self._known.get(at)) for at, put in asked.items())

    def on_answered(self, wording: Wording, session_id: int, *, has_news: bool) -> None:
        """The leader has answered without an error for the whole."""
        self.is_quiet = not has_news
        if wording.is_full:
            self._id = session_id
            self._epoch = 0 if session_id == NO_SESSION else 1
        elif session_id != self._id:
            self.end()

    def end(self) -> None:
        """The next fetch is a full one."""
        self._epoch = 0
        self.is_quiet = False


def _is_news(put: Put, before: Put | None) -> bool:
    return put is not before and (before is None or put.question != before.question)
