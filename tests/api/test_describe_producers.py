from __future__ import annotations

import pytest

from cotidal.api.describe_producers import answer
from cotidal.core.partition.replica import Appointment, Leadership, Replica
from cotidal.errors import ErrorCode
from cotidal.messages.producers import ProducerEntry, ProducerSnapshot
from cotidal.messages.rpc.describe_producers import DescribeProducersRequest, TopicRequest
from cotidal.values import TopicPartition


def ask(cluster, asked, topic, partition):
    request = DescribeProducersRequest((TopicRequest(topic, (partition,)),))
    (result,) = answer(request, asked(0), cluster.view).topics[0].partitions
    return result


def hosted(cluster, number, *, leads=True):
    partition = TopicPartition("orders", number)
    replica = Replica(partition, cluster.image.topics["orders"].topic_id)
    replica.opened = True
    if leads:
        told = Appointment(
            node_id=1, epoch=0, partition_epoch=0, replicas=(1, 2, 3), isr=(1, 2, 3), min_isr=1
        )
        replica.leadership = Leadership(told, epoch_start=0)
    cluster.view.replicas[partition] = replica
    return replica


@pytest.mark.parametrize("leads", [True, False])
def test_every_replica_tells_what_it_remembers(cluster, asked, leads):
    replica = hosted(cluster, 0, leads=leads)
    entry = ProducerEntry(
        producer_id=7,
        producer_epoch=2,
        last_sequence=41,
        last_offset=99,
        offset_delta=0,
        timestamp=1234,
        coordinator_epoch=-1,
        transaction_first_offset=-1,
    )
    replica.producers.load(ProducerSnapshot(offset=100, entries=(entry,)))
    result = ask(cluster, asked, "orders", 0)
    assert result.error_code == ErrorCode.NONE
    (producer,) = result.active_producers
    assert producer == (7, 2, 41, 1234, -1, -1)


def test_a_replica_whose_disk_has_failed_says_so(cluster, asked):
    hosted(cluster, 0).offline_reason = "the disk is gone"
    result = ask(cluster, asked, "orders", 0)
    assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert result.error_message == "the disk is gone"


def test_whoever_has_no_replica_says_who_leads(cluster, asked):
    hosted(cluster, 1).opened = False
    for partition in (1, 2):
        result = ask(cluster, asked, "orders", partition)
        assert result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert f"broker {partition + 1} leads" in result.error_message
    nobody = ask(cluster, asked, "lonely", 0)
    assert "nobody leads" in nobody.error_message


def test_unknown_partition_is_told_as_unknown(cluster, asked):
    for topic, partition in (("none", 0), ("orders", 9)):
        result = ask(cluster, asked, topic, partition)
        assert result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
