"""What waits for a decision, when nobody can decide any more."""

from __future__ import annotations

from asking import METADATA, node_with
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.metadata import MetadataRequest, MetadataRequestTopic
from cotidal.node import decisions
from cotidal.node.effects import Persist
from cotidal.node.events import Ticked
from cotidal.values import WallMillis


def test_a_question_whose_topic_may_never_be_created_is_answered_with_what_is_known() -> None:
    node = node_with()
    node.hold = {Persist}
    before = len(node.replies)
    asked = MetadataRequest(topics=(MetadataRequestTopic(name="new"),))
    node.send((METADATA, 9, asked))
    assert len(node.replies) == before
    decisions.deactivate(node.node._state)
    node.tell(Ticked(WallMillis(1)))
    (reply,) = node.replies[before:]
    (topic,) = reply.message.topics
    assert (topic.name, topic.error_code) == ("new", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
