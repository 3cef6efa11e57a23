"""The simulated cluster behind the page, commanded as the page does it."""

import pytest

from cotidal.console.sandbox import Start
from cotidal.console.simulated import Done, Simulated
from cotidal.console.world import Command, Refused

ORDERS = "orders-0"


def do(world, name, **said):
    return world.obey(Command({"do": name, **said}))


def run_until(world, holds, *, seconds=30):
    for _ in range(seconds * 20):
        if holds(world.picture()):
            return
        do(world, "run-for", ms=50)
    raise AssertionError(world.logs["told"][-5:])


def partition(world):
    return world.picture()["partitions"][ORDERS]


def followers(world):
    told = partition(world)
    return [node for node in told["replicas"] if node != told["leader"]]


def kinds(world):
    return [item["kind"] for item in world.logs["told"]]


@pytest.fixture
def world():
    return Simulated(Start(seed=7))


def test_it_opens_with_a_cluster_that_is_ready(world):
    picture = world.picture()
    assert [broker["state"] for broker in picture["brokers"].values()] == ["up"] * 3
    assert partition(world)["isr"] == partition(world)["replicas"]
    assert sum(b["quorum"]["role"] == "leader" for b in picture["brokers"].values()) == 1
    assert set(picture["lamps"].values()) == {"holds"}
    assert picture["state"] == "paused"


def test_a_killed_follower_leaves_the_isr_and_the_high_watermark_goes_on(world):
    do(world, "run-for", ms=1000)
    gone, other = followers(world)
    do(world, "kill", node=gone)
    run_until(world, lambda p: gone not in p["partitions"][ORDERS]["isr"])
    before = partition(world)["logs"][str(other)]["high_watermark"]
    do(world, "run-for", ms=2000)
    after = partition(world)["logs"]
    assert after[str(other)]["high_watermark"] > before
    assert after[str(gone)]["role"] == "down"
    assert after[str(gone)]["end"] > 0


def test_a_killed_leader_is_followed_by_one_of_a_higher_epoch_and_cut_when_it_returns(world):
    do(world, "run-for", ms=1000)
    old = partition(world)["leader"]
    for node in followers(world):
        do(world, "cut", one=old, other=node)
    do(world, "produce", acks="1", value="soon lost")
    run_until(world, lambda p: p["partitions"][ORDERS]["leader"] != old)
    assert partition(world)["leader_epoch"] == 1
    for node in partition(world)["replicas"]:
        if node != old:
            do(world, "join", one=old, other=node)
    run_until(world, lambda p: p["partitions"][ORDERS]["logs"][str(old)]["epochs"][-1][0] == 1)
    assert "cut" in kinds(world)
    lost = next(item["text"] for item in world.logs["told"] if item["kind"] == "lost")
    assert "that acks=1 had acknowledged" in lost
    assert world.picture()["state"] == "paused"


def test_the_same_seed_and_commands_give_the_same_picture(world):
    do(world, "run-for", ms=500)
    do(world, "kill", node=2)
    do(world, "run-for", ms=3000)
    journal = [Done(*each) for each in world.picture()["journal"]]
    again = Simulated(Start(seed=7), journal, at_us=world.picture()["now_us"])
    assert again.picture() == world.picture()
    assert list(again.logs["told"]) == list(world.logs["told"])


def test_another_seed_gives_another_run(world):
    other = Simulated(Start(seed=8))
    assert list(other.logs["told"]) != list(world.logs["told"])


def test_a_step_ends_where_something_is_told(world):
    told = len(world.logs["told"])
    do(world, "step")
    assert len(world.logs["told"]) > told
    assert world.logs["told"][-1]["at"] == world.picture()["now_us"]


def test_a_step_back_undoes_a_step(world):
    do(world, "step")
    before, told = world.picture(), list(world.logs["told"])
    do(world, "step")
    do(world, "back")
    after = world.picture()
    assert list(world.logs["told"]) == told
    assert {**after, "furthest_us": 0} == {**before, "furthest_us": 0}


def test_what_lies_ahead_is_done_again_unless_something_else_is_done(world):
    do(world, "run-for", ms=500)
    here = world.picture()["now_us"]
    do(world, "run-for", ms=500)
    do(world, "kill", node=2)
    do(world, "run-for", ms=500)
    end = world.picture()
    do(world, "seek", us=here)
    assert world.picture()["brokers"]["2"]["state"] == "up"
    do(world, "seek", us=end["now_us"])
    assert world.picture() == end
    do(world, "seek", us=here)
    do(world, "kill", node=3)
    assert [said["node"] for _, said in world.picture()["journal"]] == [3]


def test_time_passes_at_its_speed_while_it_runs(world):
    before = world.picture()["now_us"]
    world.advance(1000)
    assert world.picture()["now_us"] == before
    do(world, "speed", value=0.5)
    do(world, "run")
    world.advance(40)
    assert world.picture()["now_us"] == before + 20_000


def test_a_broken_promise_stops_the_world_and_names_the_records():
    """With min ISR 1 a leader left alone acknowledges by itself. It dies, and a replica that was
    out of sync is elected, as the topic allows."""
    world = Simulated(Start(seed=7, nodes=5, min_isr=1, unclean=True))
    do(world, "run-for", ms=500)
    leader = partition(world)["leader"]
    away = followers(world)
    for node in away:
        do(world, "kill", node=node)
    run_until(world, lambda p: p["partitions"][ORDERS]["isr"] == [leader])
    alone = world.picture()["now_us"]
    do(world, "run-for", ms=2000)
    do(world, "kill", node=leader)
    for node in away:
        do(world, "start", node=node)
    run_until(world, lambda p: p["state"] == "broken")
    broken = world.picture()["broken"]
    assert broken["name"] in ("LEADER_HOLDS_ACKED", "ELIGIBLE_HOLD_COMMITTED")
    assert world.picture()["lamps"][broken["name"]] == "broken"
    (gone,) = broken["lost"]
    assert gone["where"] == "orders-0 (acks=all)"
    assert len(gone["offsets"]) >= 5
    assert "Gone:" in world.logs["told"][-1]["text"]
    with pytest.raises(Refused, match="the world stands"):
        do(world, "kill", node=1)
    do(world, "seek", us=alone)
    assert "broken" not in world.picture()


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"do": "kill", "node": 9}, "from 1 to 3"),
        ({"do": "start", "node": 1}, "is running"),
        ({"do": "resume-node", "node": 1}, "not paused"),
        ({"do": "cut", "one": 1, "other": 1}, "two ends"),
        ({"do": "lose", "message": 10**9}, "arrived already"),
        ({"do": "produce", "acks": "2"}, "one of all, 1, 0"),
        ({"do": "dance"}, "knows no 'dance'"),
        ({"do": "look", "what": "record", "node": 1, "offset": 10**6}, "no offset"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_sentence_and_not_journaled(world, said, why):
    with pytest.raises(Refused, match=why):
        world.obey(Command(said))
    assert world.picture()["journal"] == []


def test_a_message_under_way_can_be_looked_at_and_lost(world):
    run_until(world, lambda p: any(f["api"] == "Produce" for f in p["flights"].values()))
    number = next(int(n) for n, f in world.picture()["flights"].items() if f["api"] == "Produce")
    found = do(world, "look", what="message", number=number)
    assert found["under_way"]
    assert "acks=-1 orders-0" in found["said"][0]["gist"]
    do(world, "lose", message=number)
    do(world, "run-for", ms=2000)
    assert number not in world.picture()["flights"]
    assert "lose" in kinds(world)


def test_a_record_is_found_where_it_is_written(world):
    leader = partition(world)["leader"]
    do(world, "produce", value="<b>hello</b>", acks="1")
    do(world, "run-for", ms=500)
    values = [
        do(world, "look", what="record", node=leader, offset=offset)["value"]
        for offset in range(partition(world)["logs"][str(leader)]["end"])
    ]
    assert "<b>hello</b>" in values


def test_settings_change_while_it_runs(world):
    do(world, "min-isr", value=3)
    do(world, "unclean", on=True)
    do(world, "elr", on=False)
    do(world, "lag", ms=900)
    do(world, "run-for", ms=1000)
    assert world.picture()["settings"] == {
        "min_isr": 3,
        "unclean": True,
        "elr": False,
        "lag_ms": 900,
    }
    assert {leadership.lag_max_ms for leadership in world.box.leaderships()} == {900}
    assert {leadership.min_isr for leadership in world.box.leaderships()} == {3}


def test_a_write_below_min_isr_is_refused_and_the_sentence_says_why():
    world = Simulated(Start(seed=7, nodes=5))
    for node in followers(world):
        do(world, "kill", node=node)
    run_until(world, lambda p: "refuse" in kinds(world))
    text = next(item["text"] for item in world.logs["told"] if item["kind"] == "refuse")
    assert text.endswith("with NOT_ENOUGH_REPLICAS: 1 in the ISR, and min ISR is 2.")


def test_metadata_is_told_in_lines(world):
    lines = [item["text"] for item in world.logs["metadata"]]
    assert "topic orders created" in lines
    assert any(line.startswith("partition orders-0: replicas") for line in lines)


def test_what_one_step_does_to_very_many_partitions_is_counted_in_one_sentence():
    world = Simulated(Start(seed=7, partitions=90, replication=1, min_isr=1, rate=0))
    before = len(world.logs["told"])
    do(world, "kill", node=1)
    run_until(world, lambda p: p["partitions"][ORDERS]["leader"] == -1)
    told = [item for item in world.logs["told"][before:] if item["kind"] == "elect"]
    alone = [item["text"] for item in told if item["text"].startswith("No replica of")]
    assert len(alone) == 3
    assert "And so for 27 more, up to orders-87." in [item["text"] for item in told]


def test_a_world_that_stands_still_is_looked_at_once(world, monkeypatch):
    looked = []
    sight = world._sight
    monkeypatch.setattr(sight, "picture", lambda: looked.append(1) or {"lamps": {}})
    do(world, "run-for", ms=10)
    first = world.picture()
    for _ in range(5):
        world.advance(40)
        assert world.picture() == first
    assert len(looked) == 1
    do(world, "slow", one=1, other=2, by_ms=50)
    world.picture()
    assert len(looked) == 2


def test_samples_say_how_much_was_acknowledged(world):
    do(world, "run-for", ms=1500)
    sizes = [sample["bytes"] for sample in world.logs["samples"]]
    assert min(sizes) > 60
