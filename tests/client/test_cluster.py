from __future__ import annotations

from typing import Any

import pytest

from cotidal.client.cluster import Cluster
from cotidal.client.failures import UnknownTopic, Unreachable
from cotidal.messages.rpc.apis import ApiKey
from cotidal.values import NodeId


def test_nothing_is_connected_before_it_is_needed(scripted_broker: Any) -> None:
    broker = scripted_broker()
    with Cluster(broker.bootstrap):
        assert broker.connections == 0


def test_metadata_never_creates_a_topic(scripted_broker: Any, metadata_of: Any) -> None:
    broker = scripted_broker()
    broker.script(ApiKey.METADATA, metadata_of({1: broker}, ("orders", (1,))))
    with Cluster(broker.bootstrap) as cluster:
        cluster.metadata(["orders"])
    [request] = broker.asked(ApiKey.METADATA)
    assert request.allow_auto_topic_creation is False


def test_the_next_broker_of_the_list_is_tried_when_one_is_away(
    scripted_broker: Any, metadata_of: Any
) -> None:
    away, here = scripted_broker(), scripted_broker()
    away.close()
    here.script(ApiKey.METADATA, metadata_of({1: here}, ("orders", (1,))))
    with Cluster(f"{away.bootstrap},{here.bootstrap}") as cluster:
        assert cluster.metadata().cluster_id == "scripted"


def test_a_cluster_of_which_no_broker_answers_is_told_by_its_first(scripted_broker: Any) -> None:
    one, two = scripted_broker(), scripted_broker()
    one.close()
    two.close()
    with (
        Cluster(f"{one.bootstrap},{two.bootstrap}") as cluster,
        pytest.raises(Unreachable, match=f"cannot reach {one.bootstrap}"),
    ):
        cluster.metadata()


def test_a_question_is_asked_again_after_the_connection_was_lost(
    scripted_broker: Any, metadata_of: Any, hang_up: Any
) -> None:
    broker = scripted_broker()
    answer = metadata_of({1: broker}, ("orders", (1,)))
    broker.script(ApiKey.METADATA, answer, hang_up, answer)
    with Cluster(broker.bootstrap) as cluster:
        cluster.metadata()
        assert cluster.metadata().cluster_id == "scripted"
    assert broker.connections == 2


def test_a_change_is_sent_once(scripted_broker: Any, metadata_of: Any, hang_up: Any) -> None:
    from cotidal.client.admin import create_topic

    broker = scripted_broker({ApiKey.CREATE_TOPICS: hang_up})
    broker.script(ApiKey.METADATA, metadata_of({1: broker}, ("orders", (1,))))
    with Cluster(broker.bootstrap) as cluster:
        cluster.metadata()
        with pytest.raises(Unreachable):
            create_topic(cluster, "t", configs={})
    assert len(broker.asked(ApiKey.CREATE_TOPICS)) == 1


def test_a_topic_that_does_not_exist_is_told_with_the_nearest(
    scripted_broker: Any, metadata_of: Any
) -> None:
    broker = scripted_broker()
    broker.script(ApiKey.METADATA, metadata_of({1: broker}, ("orders", (1,))))
    with (
        Cluster(broker.bootstrap) as cluster,
        pytest.raises(UnknownTopic, match="did you mean 'orders'"),
    ):
        cluster.topic("ordesr")


def test_brokers_are_reached_where_metadata_says_they_are(
    scripted_broker: Any, metadata_of: Any
) -> None:
    first, second = scripted_broker(), scripted_broker()
    first.script(ApiKey.METADATA, metadata_of({1: first, 2: second}, ("orders", (1, 2))))
    with Cluster(first.bootstrap) as cluster:
        cluster.metadata()
        assert cluster.connection(NodeId(2)).address.port == second.port
        with pytest.raises(Unreachable, match="broker 3"):
            cluster.connection(NodeId(3))
