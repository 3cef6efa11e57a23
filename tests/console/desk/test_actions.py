"""What the desk changes: told first, then done."""

import re
import time

import pytest

from cotidal.cli.topic import wait_for_leaders
from cotidal.client.admin import create_topic
from cotidal.client.cluster import Cluster as Client
from cotidal.client.failures import Refused as ClusterRefused
from cotidal.client.failures import UnknownTopic
from cotidal.client.open_transactions import OpenTransaction
from cotidal.console.desk import transactions
from cotidal.console.desk.question import Desk
from cotidal.console.desk.questions import QUESTIONS
from cotidal.console.desk.transactions import HANGING_MS
from cotidal.console.live.clerks import Clerks
from cotidal.console.live.watch import Watch
from cotidal.console.live.world import READ_ONLY, Live
from cotidal.console.world import Command, Refused
from cotidal.errors import ErrorCode
from cotidal.messages.rpc.init_producer_id import InitProducerIdRequest
from cotidal.testing.cluster import Cluster
from cotidal.values import NodeId, Offset, TopicPartition

SHOWS = {
    "overview", "quorum", "topics", "topic", "records", "record", "compare", "groups", "group",
    "transactions", "transaction", "configs", "moving", "health-rows",
}  # fmt: skip
CHANGES = {
    "elect", "create-topic", "add-partitions", "delete-topic", "set-config", "reassign",
    "cancel-reassign", "throttle", "unthrottle", "abort-hanging", "produce",
}  # fmt: skip


def test_every_question_shows_plans_or_changes():
    plans = {name for name in QUESTIONS if name.startswith("plan-")}
    assert set(QUESTIONS) == SHOWS | plans | CHANGES
    assert plans == {f"plan-{name}" for name in CHANGES - {"produce"}}


@pytest.mark.parametrize("what", sorted(CHANGES))
def test_a_console_that_only_shows_refuses(what):
    """Before anything is asked: nothing listens there."""
    nowhere = "127.0.0.1:1"
    world = Live(Watch(nowhere), Clerks(nowhere), allow_changes=False)
    with pytest.raises(Refused) as refused:
        world.obey(Command({"do": "ask", "what": what, "arguments": {}}))
    assert str(refused.value) == READ_ONLY


def test_a_topic_is_planned_made_grown_and_deleted(ask, client, until):
    wanted = {"topic": "made", "partitions": 2, "replicas": 3, "configs": {"retention.ms": "5000"}}
    plan = ask("plan-create-topic", **wanted)
    assert plan["sentences"] == ["It will have 2 partitions, 3 replicas each, retention.ms=5000."]
    assert client.metadata(["made"]).topic("made").partitions == ()
    assert ask("create-topic", **wanted)["sentence"] == "Topic 'made' is made."
    until(lambda: len(client.metadata(["made"]).topic("made").partitions) == 2)
    assert ask("plan-add-partitions", topic="made", partitions=4)["sentences"][0] == (
        "It has 2 partitions and will have 4."
    )
    with pytest.raises(Refused, match="can only get more"):
        ask("plan-add-partitions", topic="made", partitions=2)
    ask("add-partitions", topic="made", partitions=4)
    until(lambda: len(client.metadata(["made"]).topic("made").partitions) == 4)
    plan = ask("plan-delete-topic", topic="made")
    assert plan["loses"]
    assert plan["sentences"][0].startswith("All of it will be lost: 4 partitions, 0 offsets")
    ask("delete-topic", topic="made")
    until(lambda: client.metadata(["made"]).topic("made").partitions == ())


def test_what_the_cluster_would_not_make_is_refused_by_the_plan(ask):
    with pytest.raises(ClusterRefused, match="replication factor"):
        ask("plan-create-topic", topic="too-many", replicas=9)
    with pytest.raises(Refused, match="needs a name"):
        ask("plan-create-topic", topic="")


def test_a_setting_is_planned_changed_and_put_back(ask, make_topic, until):
    make_topic("changed")
    target = {"kind": "topic", "name": "changed", "setting": "retention.ms"}

    def value():
        found = ask("configs", kind="topic", name="changed")["configs"]
        return next(each for each in found if each["setting"] == "retention.ms")

    plan = ask("plan-set-config", **target, value="1000")
    assert plan["sentences"][0] == (
        "retention.ms of topic 'changed' is '604800000' (default); it will be '1000'."
    )
    ask("set-config", **target, value="1000")
    until(lambda: (value()["value"], value()["from"]) == ("1000", "topic"))
    ask("set-config", **target)
    until(lambda: value()["from"] == "default")
    with pytest.raises(ClusterRefused, match=r"retention\.ms"):
        ask("set-config", **target, value="soon")


def test_a_record_is_written_and_its_offset_told(ask, make_topic):
    make_topic("written", partitions=2)
    told = ask("produce", topic="written", partition=1, key="k", value="v", headers=[["h", "1"]])
    assert (told["partition"], told["offset"]) == (1, 0)
    assert told["sentence"].startswith("Written to written-1 at offset 0 (all in-sync replicas")
    (found,) = ask("records", topic="written", partition=1)["records"]
    assert (found["key"]["text"], found["value"]["text"]) == ("k", "v")
    assert found["headers"][0]["name"] == "h"
    assert "nobody says" in ask("produce", topic="written", value="v", acks="0")["sentence"]
    with pytest.raises(UnknownTopic):
        ask("produce", topic="nowhere-at-all", value="v")
    with pytest.raises(Refused, match="pairs of a name and a value"):
        ask("produce", topic="written", value="v", headers=["h"])


def test_a_broker_that_has_no_producer_id_yet_is_asked_again(ask, make_topic, cluster):
    """Apache Kafka answers so while it fetches its first block of them."""
    make_topic("numbered")
    rule = cluster.on(InitProducerIdRequest, reply=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert ask("produce", topic="numbered", partition=0, value="v")["offset"] == 0
    assert rule.hits == 1


def test_what_an_unclean_election_loses_is_told_first():
    with Cluster(3) as cluster, Client(cluster.bootstrap, timeout_s=20.0) as client:

        def ask(what, **arguments):
            with Client(cluster.bootstrap, timeout_s=20.0, connect_timeout_s=2.0) as own:
                asked = Command({"topic": "risked", "partition": 0, **arguments, "do": what})
                return QUESTIONS[what].answer(Desk(own, None), asked)

        def until(holds):
            deadline = time.monotonic() + 40
            while not holds(partition := client.topic("risked").partitions[0]):
                assert time.monotonic() < deadline, partition
                time.sleep(0.1)

        alone = {"min.insync.replicas": "1"}
        create_topic(client, "risked", partitions=1, replication_factor=2, configs=alone)
        wait_for_leaders(client, "risked")
        ask("produce", value="kept")
        leader, follower = client.topic("risked").partitions[0].isr
        if client.topic("risked").partitions[0].leader != leader:
            leader, follower = follower, leader
        cluster.kill(follower)
        until(lambda partition: partition.isr == (leader,))
        ask("produce", value="lost")
        away = f"Broker {follower} does not serve"
        until(lambda _: ask("overview")["sentence"].startswith(away))
        cluster.kill(leader)
        cluster.restart(follower)
        until(lambda partition: not partition.has_leader)
        until(lambda _: "has no leader" in ask("overview")["sentence"])
        plan = ask("plan-elect", unclean=True)
        assert plan["loses"]
        assert f"What only broker {leader} may hold nobody can tell" in plan["sentences"][1]
        assert plan["sentences"][2] == f"Nothing is lost if broker {leader} comes back instead."
        assert [row[2] for row in plan["rows"] if row[0] == follower] == ["1"]
        assert ask("elect", unclean=True)["sentence"] == "Elected a leader for risked-0."
        until(lambda partition: partition.leader == follower)


def test_a_move_is_planned_begun_followed_and_done(ask, make_topic, client, until):
    make_topic("moved", b"x" * 1000, replicas=2)
    at = client.topic("moved").partitions[0]
    (spare,) = {1, 2, 3} - set(at.replicas)
    gone = at.replicas[1]
    plan = ask("plan-reassign", topics=["moved"], without=[gone], throttle="10MB")
    (row,) = plan["rows"]
    assert str(spare) in row[2]
    assert re.fullmatch(r"\d,\d\d\d", row[3])  # bytes
    assert any("at most 10,000,000 bytes a second" in each for each in plan["sentences"])
    ask("reassign", throttle="10MB", **plan["arguments"])
    until(lambda: set(client.topic("moved").partitions[0].replicas) == {at.replicas[0], spare})
    until(lambda: ask("moving")["moving"] == [])
    until(lambda: [each["topic"] for each in ask("moving")["topics"]] == ["moved"])
    assert "topic 'moved'" in ask("plan-unthrottle")["sentences"][0]
    ask("unthrottle")
    until(lambda: ask("moving")["brokers"] == ask("moving")["topics"] == [])
    with pytest.raises(Refused, match="nothing is throttled"):
        ask("plan-unthrottle")
    with pytest.raises(Refused, match="nothing of that is being moved"):
        ask("plan-cancel-reassign")
    with pytest.raises(Refused, match="nothing would move"):
        ask("plan-reassign", topics=["moved"], brokers=[int(at.replicas[0]), spare])


def test_a_move_that_cannot_end_is_taken_back(ask, make_topic, client, cluster, until):
    """A byte a second after its first fetch, which is of a mebibyte at most."""
    make_topic("stuck", *[b"x" * 100_000] * 40, replicas=1)
    (home,) = client.topic("stuck").partitions[0].replicas
    other = home % 3 + 1
    plan = ask("plan-reassign", topics=["stuck"], brokers=[other], throttle="1")
    ask("reassign", throttle="1", **plan["arguments"])
    until(lambda: ask("moving")["moving"])
    (moving,) = ask("moving")["moving"]
    assert moving["adding"] == (other,)
    assert moving["bytes_left"] > 0
    plan = ask("plan-cancel-reassign", partitions=[["stuck", 0]])
    assert plan["rows"] == [["stuck-0"]]
    ask("cancel-reassign", **plan["arguments"])
    until(lambda: client.topic("stuck").partitions[0].replicas == (home,))
    ask("unthrottle")


def test_a_throttle_is_set_with_a_rate_in_words(ask, make_topic, until):
    make_topic("slowed")
    assert (
        "500,000 bytes" in ask("plan-throttle", throttle="500KB", topics=["slowed"])["sentences"][0]
    )
    ask("throttle", throttle="500KB", topics=["slowed"])
    rates = [500_000] * 3
    until(lambda: [each["leader_rate"] for each in ask("moving")["brokers"]] == rates)
    ask("unthrottle")
    with pytest.raises(Refused, match="is not a rate"):
        ask("plan-throttle", throttle="fast", topics=[])
    with pytest.raises(Refused, match="which rate"):
        ask("throttle", topics=[])


def test_only_what_has_stood_still_for_long_is_aborted(monkeypatch):
    """No coordinator may know of it because its producer has only just begun."""
    now_ms = time.time_ns() // 1_000_000
    young, old = (
        OpenTransaction(TopicPartition("haunted", number), NodeId(1), 7, 0, 0, Offset(0), last_ms)
        for number, last_ms in enumerate((now_ms, now_ms - HANGING_MS))
    )
    monkeypatch.setattr(transactions, "open_transactions", lambda cluster: [young, old])
    monkeypatch.setattr(transactions, "hanging_transactions", lambda cluster, known: list(known))
    aborted = []
    monkeypatch.setattr(transactions, "abort", lambda cluster, each: aborted.append(each))
    desk, asked = Desk(None, None), Command({"do": "abort-hanging"})
    assert [row[0] for row in transactions.plan_abort(desk, asked)["rows"]] == ["haunted-1"]
    assert transactions.abort_hanging(desk, asked)["sentence"] == "1 transaction aborted."
    assert aborted == [old]


def test_leaders_go_back_to_the_preferred(ask, make_topic, client, cluster, until):
    make_topic("led")
    before = client.topic("led").partitions[0]
    with pytest.raises(Refused, match="led by its preferred leader already"):
        ask("plan-elect", topic="led", partition=0)
    cluster.kill(before.leader)
    until(lambda: client.topic("led").partitions[0].leader not in (before.leader, -1))
    until(lambda: ask("topic", topic="led")["partitions"][0]["leader"] not in (before.leader, None))
    plan = ask("plan-elect", topic="led", partition=0)
    assert plan["rows"][0][3] == "stays: it is not in sync"
    with pytest.raises(Refused, match="led-0: "):
        ask("elect", topic="led", partition=0)
    cluster.restart(before.leader)
    until(lambda: before.leader in client.topic("led").partitions[0].isr)
    assert ask("plan-elect")["rows"]
    ask("elect", topic="led", partition=0)
    until(lambda: client.topic("led").partitions[0].leader == before.leader)
    assert "election" in ask("elect", topic="led", partition=0)["sentence"]
    with pytest.raises(Refused, match="has a leader: there is nothing to elect"):
        ask("plan-elect", topic="led", partition=0, unclean=True)
