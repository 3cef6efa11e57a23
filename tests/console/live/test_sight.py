"""A live cluster as a picture, from what its brokers told."""

from cotidal.client.admin import Quorum, QuorumMember
from cotidal.client.metadata import Metadata, Partition
from cotidal.client.replicas import Eligible, Held, Led, Registered, Told
from cotidal.client.standing import Scene, stand
from cotidal.client.status import Status
from cotidal.console.live.sight import Machine, Seen, picture_of, silent_picture
from cotidal.limits import LIVE_PARTITIONS_MAX
from cotidal.values import ZERO_UUID, EpochEntry, TopicPartition


def held(end, hw=None, epochs=((0, 0),)):
    entries = None if epochs is None else tuple(EpochEntry(*each) for each in epochs)
    return Held(0, end, end if hw is None else hw, entries)


def seen(
    logs,
    *,
    topics=("orders",),
    leader=1,
    isr=(1, 2, 3),
    elr=(),
    silent=None,
    fenced=(),
    machines=None,
    min_isr=2,
):
    """Three brokers, one partition of each topic; ``logs``: of those who answer."""
    ats = [TopicPartition(topic, 0) for topic in topics]
    led = {at: Led(min_isr, {}) for at in ats}
    told = {
        node: Told(dict.fromkeys(ats, log), led if node == leader else {}, {})
        for node, log in logs.items()
    }
    scene = Scene(told, silent or {}, frozenset(fenced), frozenset((1, 2, 3)))
    partition = Partition(0, leader, 4, (1, 2, 3), isr, ())
    standing = [stand(at, partition, scene, eligible=Eligible(elr, ())) for at in ats]
    brokers = tuple(
        Registered(node, "localhost", 9091 + node, f"rack-{node}", node in fenced)
        for node in (1, 2, 3)
    )
    status = Status(Metadata("c", 1, (), ()), brokers, {}, standing, scene)
    members = tuple(QuorumMember(node, ZERO_UUID, 20, 0, 0) for node in (1, 2, 3))
    machines = {node: Machine(state) for node, state in (machines or {}).items()}
    return Seen(status, Quorum(2, 7, 19, members, ()), machines, {})


WELL = {1: held(10), 2: held(10), 3: held(9)}


def test_a_replica_is_shown_with_its_offsets_by_epoch():
    log = held(10, hw=8, epochs=((0, 0), (4, 6)))
    picture = picture_of(seen({1: log, 2: held(8), 3: held(8)}), {})
    orders = picture["partitions"]["orders-0"]
    assert orders["logs"]["1"] == {
        "start": 0,
        "end": 10,
        "high_watermark": 8,
        "epochs": [[0, 0], [4, 6]],
        "role": "leader",
    }
    assert orders["logs"]["2"]["role"] == "follower"
    assert (orders["leader"], orders["leader_epoch"], orders["min_isr"]) == (1, 4, 2)


def test_the_quorum_is_told_of_each_of_its_members():
    brokers = picture_of(seen(WELL), {})["brokers"]
    assert [brokers[node]["quorum"]["role"] for node in "123"] == ["follower", "leader", "follower"]
    assert brokers["1"]["quorum"] == {
        "role": "follower",
        "epoch": 7,
        "end": 20,
        "high_watermark": 19,
    }


def test_a_silent_replica_is_shown_as_it_was_last_seen():
    before = picture_of(seen(WELL), {})
    after = picture_of(
        seen({1: held(30), 2: held(30)}, isr=(1, 2), silent={3: "gone"}, fenced=(3,)), before
    )
    orders = after["partitions"]["orders-0"]
    assert orders["logs"]["3"] == before["partitions"]["orders-0"]["logs"]["3"] | {"role": "down"}
    assert orders["why_out"]["3"] == "fenced"


def test_why_a_replica_is_out_and_what_its_election_would_drop_is_said():
    picture = picture_of(seen({1: held(30), 2: held(30), 3: held(9)}, isr=(1, 2)), {})
    orders = picture["partitions"]["orders-0"]
    assert orders["why_out"]["3"] == "holds up to 9 of 30"
    assert orders["if_elected"] == {"3": "21 acknowledged with acks=all"}


def test_what_has_not_changed_is_the_same_object():
    first = picture_of(seen(WELL), {})
    second = picture_of(seen(WELL), first)
    assert second["partitions"] is first["partitions"]
    assert second["brokers"] is first["brokers"]


def test_the_machine_knows_better_than_the_cluster_who_runs():
    machines = {1: "up", 2: "paused", 3: "down"}
    brokers = picture_of(seen(WELL, machines=machines), {})["brokers"]
    assert [brokers[node]["state"] for node in "123"] == ["up", "paused", "down"]


def test_elsewhere_a_broker_is_fenced_or_silent():
    brokers = picture_of(seen(WELL, fenced=(2,), silent={3: "gone"}), {})["brokers"]
    assert [brokers[node]["state"] for node in "123"] == ["up", "fenced", "silent"]


def test_health_is_one_sentence_about_the_worst():
    def health(**told):
        return picture_of(seen(WELL, **told), {})["health"]

    assert health() == {
        "state": "good",
        "sentence": "All well: 3 brokers, 1 partition, all in sync.",
    }
    assert health(isr=(1, 2), fenced=(3,))["state"] == "warn"
    assert health(leader=-1, isr=())["state"] == "bad"


def test_lamps_go_out_for_what_is_not_so():
    lamps = picture_of(seen(WELL, isr=(1,), fenced=(2, 3)), {})["lamps"]
    assert [name for name, state in lamps.items() if state == "broken"] == [
        "BROKERS_ANSWER",
        "REPLICAS_IN_SYNC",
        "MIN_ISR_HELD",
    ]


def test_a_lamp_is_dim_for_what_nobody_tells():
    lamps = picture_of(seen(WELL, leader=-1, isr=()), {})["lamps"]
    assert lamps["MIN_ISR_HELD"] == "unknown"
    assert lamps["LEADERS_LEAD"] == "broken"


def test_what_a_broker_of_another_make_does_not_tell_is_left_out_and_said():
    plain = Held(0, 10, None, None)
    picture = picture_of(seen({1: held(10, epochs=None), 2: plain, 3: plain}), {})
    log = picture["partitions"]["orders-0"]["logs"]["2"]
    assert log == {"start": 0, "end": 10, "epochs": [], "role": "follower"}
    assert "do not tell leader epochs" in picture["notes"][0]
    assert "What travels between brokers" in picture["notes"][1]
    ours = seen(WELL, machines={1: "up", 2: "up", 3: "up"})
    assert picture_of(ours, {})["notes"] == []


def test_controllers_that_are_no_brokers_are_shown_beside_them():
    assert picture_of(seen(WELL, machines={1: "up", 2: "up", 3: "up"}), {})["controllers"] == {}
    machines = dict.fromkeys((1, 2, 3, 101), "up") | {102: "down"}
    told = seen(WELL, machines=machines)
    members = tuple(QuorumMember(node, ZERO_UUID, 20, 0, 0) for node in (101, 102))
    told = told._replace(quorum=Quorum(101, 7, 19, members, ()))
    shown = picture_of(told, {})["controllers"]
    assert {id_: each["state"] for id_, each in shown.items()} == {"101": "up", "102": "down"}
    assert shown["101"]["quorum"]["role"] == "leader"
    assert shown["102"]["quorum"]["role"] == "follower"
    leaderless = picture_of(told._replace(quorum=None), {})["controllers"]
    assert list(leaderless) == ["101", "102"]


def test_topics_of_the_clusters_own_are_shown_when_they_are_not_well():
    topics = ("orders", "__consumer_offsets")
    assert list(picture_of(seen(WELL, topics=topics), {})["partitions"]) == ["orders-0"]
    unwell = picture_of(seen(WELL, topics=topics, isr=(1, 2)), {})
    assert list(unwell["partitions"]) == ["orders-0", "__consumer_offsets-0"]
    alone = picture_of(seen(WELL, topics=topics[1:]), {})
    assert list(alone["partitions"]) == ["__consumer_offsets-0"]


def test_so_many_partitions_are_shown_and_no_more():
    topics = [f"t{number}" for number in range(LIVE_PARTITIONS_MAX + 5)]
    picture = picture_of(seen(WELL, topics=topics), {})
    assert len(picture["partitions"]) == LIVE_PARTITIONS_MAX
    assert picture["notes"][0].startswith("2,000 of 2,005 partitions are shown")


def test_a_cluster_that_nobody_answers_for_is_shown_as_it_was():
    before = picture_of(seen(WELL), {})
    silent = silent_picture(before, "cannot reach localhost:9092")
    assert silent["partitions"] == before["partitions"]
    assert {broker["state"] for broker in silent["brokers"].values()} == {"silent"}
    assert silent["health"]["sentence"] == "No broker answers: cannot reach localhost:9092."
    assert silent_picture({}, "nobody")["partitions"] == {}
