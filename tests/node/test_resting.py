"""Partitions that rest: their follower's fetches pass them over until they move."""

from __future__ import annotations

from typing import Any

import pytest

from asking import DELETE_RECORDS, FOLLOWER, fetch, node_with, produce
from cotidal.core.partition.leader import stop_leading
from cotidal.core.partition.progress import Progress
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from cotidal.messages.rpc.fetch import ForgottenTopic
from cotidal.node.events import ConnectionId, ConnectionLost, ReadDone
from cotidal.node.hosting import Hosted
from cotidal.node.partition_effects import move
from cotidal.values import BrokerEpoch, Millis, NodeId, Offset, TopicPartition

ANOTHER = 7
"""The connection of whoever writes meanwhile."""


class Followed:
    """Node 1 leads two partitions of one record; node 2 has both and polls in a session."""

    def __init__(self) -> None:
        self.node = node_with(partitions=2)
        self.node.connect(ANOTHER)
        brokers = self.state.controller.committed.brokers
        brokers[FOLLOWER] = brokers[NodeId(1)]._replace(node_id=FOLLOWER, epoch=BrokerEpoch(9))
        for partition in (0, 1):
            leadership = self.hosted(partition).replica.leadership
            assert leadership is not None
            leadership.isr = (NodeId(1), FOLLOWER)
            leadership.followers[FOLLOWER] = Progress(caught_up=Millis(0))
            self.write(partition)
        self.epoch = 0
        self.session = 0
        self.session = self.poll(named=True).session_id
        self.poll()  # told where the high watermark is
        self.poll()

    @property
    def state(self) -> Any:
        return self.node.node._state

    def hosted(self, partition: int) -> Hosted:
        found: Hosted = self.state.hosted[TopicPartition("orders", partition)]
        return found

    def progress(self, partition: int) -> Progress:
        leadership = self.hosted(partition).replica.leadership
        assert leadership is not None
        return leadership.followers[FOLLOWER]

    def write(self, partition: int) -> None:
        self.node.send(produce(b"a", acks=1, partition=partition), connection=ANOTHER)

    def ask(
        self, *, named: bool = False, fetcher: int = FOLLOWER, connection: int = 1, **fields: Any
    ) -> None:
        """A poll that may wait."""
        key, version, request = fetch(
            1, partitions=(0, 1), session=(self.session, self.epoch), named=named
        )
        topics = tuple(
            topic._replace(
                partitions=tuple(each._replace(log_start_offset=0) for each in topic.partitions)
            )
            for topic in request.topics
        )
        self.epoch += 1
        fields.setdefault("topics", topics)
        asked = request._replace(replica_id=fetcher, **fields)
        self.node.send((key, version, asked), connection=connection)

    def poll(self, **how: Any) -> Any:
        """A poll, and what it is told in the end."""
        self.ask(**how)
        self.node.pass_time(500)
        return self.told()

    def told(self) -> Any:
        return [each.message for each in self.node.replies if each.connection == 1][-1]

    @property
    def looked_at(self) -> list[int]:
        """By the poll that waits."""
        (session,) = self.state.sessions._by_id.values()
        return [asked.fetched.partition for asked in session.waiting.asked]


@pytest.fixture
def followed() -> Followed:
    return Followed()


def indexes(response: Any) -> list[int]:
    return [each.partition_index for topic in response.responses for each in topic.partitions]


def test_what_rests_is_not_looked_at_and_was_caught_up_all_the_same(followed: Followed) -> None:
    before = followed.progress(0).last_caught_up
    followed.ask()
    assert followed.looked_at == []
    assert followed.progress(0).last_caught_up == followed.progress(0).last_fetch > before
    followed.node.pass_time(500)
    assert followed.told().responses == ()


def test_a_write_wakes_the_poll_for_its_partition(followed: Followed) -> None:
    followed.ask()
    followed.write(1)
    assert indexes(followed.told()) == [1]
    assert followed.told().responses[0].partitions[0].records.data
    assert followed.hosted(1).resting == {}
    assert len(followed.hosted(0).resting) == 1


def test_what_is_written_between_two_polls_is_told_at_once(followed: Followed) -> None:
    followed.write(1)
    followed.ask()
    assert indexes(followed.told()) == [1]


def test_it_rests_again_when_the_follower_has_it_and_knows_that_it_is_committed(
    followed: Followed,
) -> None:
    followed.write(1)
    followed.ask()
    topics = fetch(2, partitions=(1,))[2].topics
    start = topics[0].partitions[0]._replace(log_start_offset=0)
    named = (topics[0]._replace(partitions=(start,)),)
    assert indexes(followed.poll(topics=named)) == [1]  # its high watermark
    followed.ask()
    assert followed.looked_at == []
    assert len(followed.hosted(1).resting) == 1


def test_what_is_asked_anew_is_looked_at(followed: Followed) -> None:
    (topic,) = fetch(1, partitions=(1,))[2].topics
    later = topic.partitions[0]._replace(current_leader_epoch=99)
    followed.ask(topics=(topic._replace(partitions=(later,)),))
    (partition,) = followed.told().responses[0].partitions
    assert partition.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_what_is_disturbed_is_looked_at_once(followed: Followed) -> None:
    """It wakes its poll, which waits on for more, and is woken again."""
    followed.ask(min_bytes=1 << 20)
    followed.write(1)
    followed.write(1)
    followed.node.pass_time(500)
    assert indexes(followed.told()) == [1]


def test_a_poll_that_ends_late_leaves_the_next_one_waiting(followed: Followed) -> None:
    followed.ask()
    followed.node.connect(8)
    followed.ask(connection=8)
    followed.node.tell(ConnectionLost(ConnectionId(1)))
    followed.write(1)
    assert followed.node.replies[-1].connection == 8
    assert indexes(followed.node.replies[-1].message) == [1]


def test_whose_leader_leads_no_more_is_told(followed: Followed) -> None:
    followed.ask()
    move(followed.state, followed.hosted(1), stop_leading, "moved")
    followed.node.connect(8)  # any step looks at what was woken
    (partition,) = followed.told().responses[0].partitions
    assert (partition.partition_index, partition.error_code) == (
        1,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    )


def test_whoever_is_forgotten_is_not_woken(followed: Followed) -> None:
    followed.ask(forgotten_topics_data=(ForgottenTopic("orders", partitions=(1,)),))
    before = len(followed.node.replies)
    followed.write(1)
    assert [each.connection for each in followed.node.replies[before:]] == [ANOTHER]
    assert followed.hosted(1).resting == {}


def test_nothing_is_left_of_a_session_that_has_ended(followed: Followed) -> None:
    followed.epoch = -1
    followed.ask(named=True)
    assert [followed.hosted(each).resting for each in (0, 1)] == [{}, {}]


def test_who_speaks_in_the_session_of_another_is_looked_at(followed: Followed) -> None:
    followed.ask(fetcher=3)
    errors = {each.error_code for each in followed.told().responses[0].partitions}
    assert errors == {ErrorCode.UNKNOWN_LEADER_EPOCH}


def test_a_poll_that_rests_is_hurried_when_records_are_deleted(followed: Followed) -> None:
    followed.ask()
    topic = DeleteRecordsTopic("orders", (DeleteRecordsPartition(1, Offset(1)),))
    request = DeleteRecordsRequest(topics=(topic,), timeout_ms=1_000)
    followed.node.send((DELETE_RECORDS, 2, request), connection=ANOTHER)
    (partition,) = followed.told().responses[0].partitions
    assert (partition.partition_index, partition.log_start_offset) == (1, 1)


def test_what_is_disturbed_while_the_disk_reads_is_not_forgotten(followed: Followed) -> None:
    """It is looked at when the disk has answered, not before."""
    followed.ask()
    (session,) = followed.state.sessions._by_id.values()
    session.waiting.reading = [0]
    followed.write(1)
    assert [each.partition for each in session.waiting.disturbed] == [1]
    assert indexes(followed.told()) == []
    followed.node.tell(ReadDone(followed.state.next_read_token(session.waiting), (b"",), ()))
    assert indexes(followed.told()) == [1]


def test_a_poll_that_is_answered_waits_no_more(followed: Followed) -> None:
    followed.poll()
    (session,) = followed.state.sessions._by_id.values()
    assert session.waiting is None
