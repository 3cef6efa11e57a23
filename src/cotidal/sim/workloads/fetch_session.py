"""A consumer's side of fetch sessions (KIP-227): what it has told a node already, and what is new.

    full          session epoch 0, every partition named
    incremental   the session's id and next epoch; only what changed since, and what is forgotten

A session that the node has forgotten, or whose epoch it does not expect, is refused; the consumer
then begins with a full fetch.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cotidal.messages.rpc.fetch import FetchPartition, ForgottenTopic
from cotidal.values import TopicPartition, Uuid

NO_SESSION: Final = -1
NEW_SESSION: Final = 0
EPOCH_MAX: Final = 0x7FFFFFFF


class Told(NamedTuple):
    """What one fetch says."""

    session_id: int
    session_epoch: int
    asked: dict[TopicPartition, FetchPartition]
    forgotten: tuple[TopicPartition, ...]


class FetchSession:
    """With one node."""

    __slots__ = ("_before", "_epoch", "_id", "_known", "is_out_of_turn", "is_sure")

    def __init__(self) -> None:
        self._id = 0
        self._epoch = NEW_SESSION
        self._known: dict[TopicPartition, FetchPartition] = {}
        """What the node was told last."""
        self._before: dict[TopicPartition, FetchPartition] = {}
        """What it knows if that did not reach it."""
        self.is_sure = True
        """Every question of this session was answered: what the node knows is known here."""
        self.is_out_of_turn = False
        """The last question came with an epoch that the node cannot expect."""

    def tell(self, wanted: dict[TopicPartition, FetchPartition]) -> Told:
        """What is to be said so that the node knows what is wanted."""
        self._before = self._known
        if self._epoch == NEW_SESSION:
            self.is_sure, self.is_out_of_turn = True, False
            self._known = dict(wanted)
            return Told(self._id, NEW_SESSION, wanted, ())
        changed = {each: asked for each, asked in wanted.items() if self._known.get(each) != asked}
        forgotten = tuple(each for each in self._known if each not in wanted)
        self._known = dict(wanted)
        return Told(self._id, self._epoch, changed, forgotten)

    def on_answer(self, session_id: int) -> None:
        if self._epoch == NEW_SESSION:
            self._id = session_id
        if self._id == 0:  # the node keeps none for us
            self._epoch = NEW_SESSION
        else:
            self._epoch = 1 if self._epoch == EPOCH_MAX else self._epoch + 1

    def forget(self) -> None:
        """Begin anew; the node is asked to end what it keeps."""
        self._epoch = NEW_SESSION

    def repeat(self) -> None:
        """There was no answer: go on as if the node had not been asked. If it had, it refuses."""
        self._known = self._before
        self.is_sure = False

    def skip(self) -> None:
        """As if an answer had been lost that the node has sent."""
        if self._epoch != NEW_SESSION:
            self._epoch += 1
            self.is_out_of_turn = self.is_sure


def forgotten_topics(
    forgotten: tuple[TopicPartition, ...], topic_ids: dict[str, Uuid], *, by_id: bool
) -> tuple[ForgottenTopic, ...]:
    return tuple(
        ForgottenTopic(
            topic="" if by_id else each.topic,
            topic_id=topic_ids[each.topic],
            partitions=(each.partition,),
        )
        for each in forgotten
    )
