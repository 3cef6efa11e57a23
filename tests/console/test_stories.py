"""Every script can be played, forwards and back, and the tour leads somewhere."""

import pytest

from cotidal.console import stories
from cotidal.console.world import Command, Refused
from cotidal.console.worlds import WORLDS
from cotidal.testing.scripts import read_script

SCRIPTS = [name for name in stories.names() if not name.startswith("lesson/")]


def opened(name, **said):
    return WORLDS["story"](Command({"do": "open", "world": "story", "story": name, **said}))


def do(world, name, **said):
    return world.obey(Command({"do": name, **said}))


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_story_tells_what_its_script_says(name):
    world = opened(name)
    steps = read_script(stories.text_of(name)).steps
    for number, step in enumerate(steps, start=1):
        if number > 1:
            do(world, "next")
        lesson = world.picture()["lesson"]
        assert lesson["command"] == step.command
        assert lesson["happened"] == list(step.expected)
    assert world.picture()["state"] == "ended"
    with pytest.raises(Refused, match="over"):
        do(world, "next")


def test_a_step_back_is_a_new_run_of_all_but_the_last_command():
    world = opened("partition/leader-failure")
    do(world, "next")
    before = world.picture()
    do(world, "next")
    do(world, "back")
    assert world.picture() == before
    do(world, "seek", us=9_000_000)
    assert world.picture()["lesson"]["at"] == 9


def test_a_story_goes_on_by_itself_while_it_runs():
    world = opened("partition/acks")
    do(world, "run")
    for _ in range(1000):
        world.advance(250)
    assert world.picture()["state"] == "ended"


def test_a_story_shows_its_logs_and_who_is_down():
    world = opened("partition/leader-failure", at_us=7_000_000)
    picture = world.picture()
    assert picture["brokers"]["1"]["state"] == "down"
    assert picture["partitions"]["orders-0"]["leader"] == 2
    logs = picture["partitions"]["orders-0"]["logs"]
    assert (logs["2"]["high_watermark"], logs["2"]["end"], logs["1"]["role"]) == (3, 5, "down")


def test_a_quorum_is_shown_with_its_terms():
    world = opened("quorum/failover", at_us=4_000_000)
    picture = world.picture()
    assert picture["brokers"]["2"]["quorum"]["role"] == "leader"
    log = picture["partitions"]["__cluster_metadata-0"]
    assert (log["leader"], log["leader_epoch"]) == (2, 2)


def test_the_tour_names_stories_that_exist_and_leads_from_one_to_the_next():
    order = [name for _, name in stories.TOUR]
    assert set(order) <= set(stories.names())
    assert len(set(order)) == len(order)
    walked = [order[0]]
    while "after" in (near := opened(walked[-1]).about["lesson"]):
        walked.append(near["after"])
    assert walked == order


@pytest.mark.parametrize(
    "name", ["../../README", "partition/none", "lesson/none", "", "/etc/passwd"]
)
def test_a_story_is_one_of_those_that_are_there(name):
    with pytest.raises(Refused):
        opened(name)


def play(world):
    do(world, "next")
    while world.picture()["state"] == "running":
        world.advance(200)


def latency_ms(world, acks):
    """The median of what was acknowledged in the last second and a half."""
    since = world.picture()["now_us"] - 1_500_000
    took = sorted(
        each["us"] for each in world.logs["samples"] if each["acks"] == acks and each["at"] > since
    )
    return took[len(took) // 2] / 1000


def test_acks_all_is_as_slow_as_the_slowest_in_sync_replica_and_acks_one_is_not():
    world = opened("lesson/slow-region")
    play(world)
    near = latency_ms(world, "all")
    assert near < 60
    play(world)
    assert latency_ms(world, "all") > 100 + near
    assert latency_ms(world, "1") < 30
    play(world)
    assert len(world.picture()["partitions"]["orders-0"]["isr"]) == 2
    play(world)
    assert latency_ms(world, "all") < 60
    play(world)
    assert len(world.picture()["partitions"]["orders-0"]["isr"]) == 3
    assert world.picture()["lesson"] == {
        "at": 5,
        "of": 5,
        "caption": world.about["lesson"]["captions"][-1],
        "watching": False,
    }
    with pytest.raises(Refused, match="over"):
        do(world, "next")


def test_a_lesson_gone_back_in_is_played_on_from_there():
    world = opened("lesson/slow-region")
    play(world)
    begun = world.picture()["now_us"]
    play(world)
    do(world, "seek", us=begun - 1)
    assert world.picture()["lesson"]["at"] == 1
    play(world)
    assert world.picture()["lesson"]["at"] == 2


def test_a_controller_that_dies_is_followed_within_an_election():
    world = opened("lesson/failover-then-and-now")
    play(world)
    before = next(b for b in world.picture()["brokers"].values() if b["quorum"]["role"] == "leader")
    play(world)
    brokers = world.picture()["brokers"]
    assert brokers[str(before["id"])]["state"] == "down"
    assert [b for b in brokers.values() if b.get("quorum", {}).get("role") == "leader"]
