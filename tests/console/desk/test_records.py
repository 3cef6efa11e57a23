"""Records of a partition, as the desk reads them."""

import confluent_kafka
import pytest

from cotidal.client.admin import Resource, change_configs
from cotidal.client.producer import Producer
from cotidal.console.world import Refused
from cotidal.limits import DESK_VALUE_BYTES_MAX, DESK_VALUE_WHOLE_BYTES_MAX


@pytest.fixture(scope="module")
def numbered(request):
    return "numbered"


@pytest.fixture
def topic(make_topic, client, numbered):
    """A hundred records, made once."""
    known = client.metadata([numbered]).topic(numbered)
    if known is None or not known.partitions:
        make_topic(numbered, *(b"record %d" % number for number in range(100)))
    return numbered


def offsets(answer):
    return [each["offset"] for each in answer["records"]]


def test_the_last_ones_come_unasked(ask, topic):
    answer = ask("records", topic=topic, partition=0, most=5)
    assert offsets(answer) == [95, 96, 97, 98, 99]
    assert (answer["start"], answer["end"], answer["next"]) == (0, 100, 100)
    assert answer["records"][0]["value"]["text"] == "record 95"


def test_from_an_offset_they_go_on_where_the_page_ended(ask, topic):
    first = ask("records", topic=topic, partition=0, most=3, **{"from": "10"})
    assert offsets(first) == [10, 11, 12]
    after = ask("records", topic=topic, partition=0, most=3, **{"from": str(first["next"])})
    assert offsets(after) == [13, 14, 15]


@pytest.mark.parametrize(("given", "expected"), [("earliest", 0), ("-3", 97), ("5000", None)])
def test_a_place_to_begin_is_written_as_on_the_command_line(ask, topic, given, expected):
    found = offsets(ask("records", topic=topic, partition=0, most=1, **{"from": given}))
    assert found == ([] if expected is None else [expected])


def test_from_a_time_the_first_at_or_after_it(ask, make_topic, client):
    make_topic("timed")
    producer = Producer(client, "timed", partition=0)
    for number in range(4):
        producer.add(b"%d" % number, timestamp=1_000_000 + number * 1_000)
    producer.flush()
    answer = ask("records", topic="timed", partition=0, **{"from": "@1001500"})
    assert offsets(answer) == [2, 3]
    assert answer["records"][0]["timestamp"] == 1_002_000


def test_a_place_that_is_none_is_refused_in_a_sentence(ask, topic):
    with pytest.raises(Refused, match="is no place to start from"):
        ask("records", topic=topic, partition=0, **{"from": "yesterday-ish"})


def test_a_text_is_looked_for_in_keys_and_values(ask, make_topic, client):
    make_topic("searched")
    producer = Producer(client, "searched", partition=0)
    for number in range(500):
        producer.add(b"needle" if number == 300 else b"hay", key=b"k%d" % number)
    producer.flush()
    found = ask("records", topic="searched", partition=0, text="needle", **{"from": "0"})
    assert offsets(found) == [300]
    assert found["scanned"] == 500
    assert offsets(ask("records", topic="searched", partition=0, text="k42", **{"from": "0"})) == [
        42,
        *range(420, 430),
    ]


def test_a_search_that_finds_more_than_a_page_says_where_it_goes_on(ask, topic):
    first = ask("records", topic=topic, partition=0, most=2, text="record 1", **{"from": "0"})
    assert offsets(first) == [1, 10]
    after = ask(
        "records", topic=topic, partition=0, most=2, text="record 1", **{"from": str(first["next"])}
    )
    assert offsets(after) == [11, 12]


def test_a_record_tells_its_key_headers_epoch_and_producer(ask, make_topic, client):
    make_topic("whole")
    producer = Producer(client, "whole", partition=0)
    producer.add(None, key=b"\xff\x00", headers=[("trace", b"abc"), ("none", None)])
    producer.flush()
    (told,) = ask("records", topic="whole", partition=0)["records"]
    assert told["value"]["form"] == "null"
    assert told["key"]["form"] == "hex"
    assert told["key"]["text"].startswith("000000  ff 00")
    assert [(each["name"], each["value"]["form"]) for each in told["headers"]] == [
        ("trace", "text"),
        ("none", "null"),
    ]
    assert told["epoch"] == 0
    assert told["producer"]["sequence"] == 0


def test_a_transaction_ends_with_its_marker(ask, make_topic, cluster, until):
    make_topic("transacted")
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": cluster.bootstrap, "transactional.id": "desk"}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("transacted", b"in a transaction", partition=0)
    producer.commit_transaction(30)

    def markers():
        found = ask("records", topic="transacted", partition=0)["records"]
        return [(each["transactional"], each.get("marker")) for each in found]

    until(lambda: markers() == [(True, None), (True, "commit")])  # it is written after the answer


def test_a_large_value_is_cut_in_the_list_and_bounded_when_it_is_shown(ask, make_topic, client):
    make_topic("large")
    change_configs(
        client, Resource.TOPIC, "large", set_to={"max.message.bytes": str(16 * 1024 * 1024)}
    )
    producer = Producer(client, "large", partition=0)
    producer.add(b"x" * 10_000_000)
    producer.flush()
    (listed,) = ask("records", topic="large", partition=0)["records"]
    assert listed["value"] == {
        "form": "text",
        "text": "x" * DESK_VALUE_BYTES_MAX,
        "bytes": 10_000_000,
        "cut": True,
        "note": "",
    }
    shown = ask("record", topic="large", partition=0, offset=0)
    assert len(shown["value"]["text"]) == DESK_VALUE_WHOLE_BYTES_MAX


def test_a_record_that_is_not_there_is_refused(ask, topic):
    with pytest.raises(Refused, match="has no record at offset 100"):
        ask("record", topic=topic, partition=0, offset=100)


def test_a_follower_is_read_when_it_is_named(ask, topic, client, until):
    partition = client.topic(topic).partitions[0]
    follower = next(node for node in partition.replicas if node != partition.leader)
    until(lambda: len(ask("records", topic=topic, partition=0, replica=follower)["records"]) == 50)
    assert ask("records", topic=topic, partition=0, replica=follower)["replica"] == follower


def test_a_replica_that_is_none_and_a_partition_that_is_none_are_refused(ask, topic):
    with pytest.raises(Refused, match="broker 9 has no replica"):
        ask("records", topic=topic, partition=0, replica=9)
    with pytest.raises(Refused, match="has no partition 7; it has 1, from 0 on"):
        ask("records", topic=topic, partition=7)


def test_replicas_that_hold_the_same_are_said_to(ask, topic, until):
    def served():
        told = ask("compare", topic=topic, partition=0, most=20)
        return all(each["served_to"] == 100 for each in told["replicas"]) and told

    until(served)
    told = served()
    assert told["sentence"] == "3 replicas hold the same records from offset 80 to 99."
    assert not told["differ"]
    assert len(told["rows"]) == 20
    assert all(len(row["cells"]) == 3 for row in told["rows"])


def test_a_search_that_finds_nothing_says_how_far_it_looked(ask, topic):
    answer = ask("records", topic=topic, partition=0, text="is not there", **{"from": "0"})
    assert (answer["records"], answer["scanned"], answer["next"]) == ([], 100, 100)
