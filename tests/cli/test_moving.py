"""elect, reassign and throttle, against three brokers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cotidal.testing.cluster import Cluster

Run = Callable[..., Any]
SECONDS_MAX = 40


@pytest.fixture
def run(cotidal: Any, three: Cluster) -> Run:
    """Must succeed, unless a test expects otherwise; answers what was printed."""

    def call(*arguments: str, stdin: str = "", status: int = 0) -> str:
        outcome = cotidal(*arguments, stdin=stdin, bootstrap=three.bootstrap)
        assert outcome.status == status, (arguments, outcome)
        return outcome.err if status else outcome.out

    return call


def partitions(run: Run, topic: str) -> list[Any]:
    return json.loads(run("topic", "describe", topic, "--json"))["partitions"]


def until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not what():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.1)


def create(run: Run, topic: str, replicas: int, *, settings: tuple[str, ...] = ()) -> Any:
    more = [f"--config={setting}" for setting in settings]
    run("topic", "create", topic, "-p", "1", "-r", str(replicas), *more)
    (partition,) = partitions(run, topic)
    return partition


def test_the_preferred_replica_leads_again_when_it_is_asked_for(run: Run, three: Cluster) -> None:
    partition = create(run, "back", 3)
    first = partition["replicas"][0]
    assert partition["leader"] == first
    three.kill(first)
    until(lambda: partitions(run, "back")[0]["leader"] not in (None, first))
    three.restart(first)
    until(lambda: first in partitions(run, "back")[0]["isr"])
    if partitions(run, "back")[0]["leader"] != first:  # else the controller's clock was quicker
        told = json.loads(run("elect", "preferred", "back", "--json"))
        assert [each["topic"] for each in told] == ["back"]
    until(lambda: partitions(run, "back")[0]["leader"] == first)
    assert "leads back-0 already" in run("elect", "preferred", "back:0")


def test_an_unclean_election_is_not_held_where_somebody_leads(run: Run) -> None:
    create(run, "led", 3)
    assert "there is nothing to elect" in run("elect", "unclean", "led:0", status=1)
    assert "has a leader" in run("elect", "unclean", "led:0", "--yes", status=1)
    assert "has no partition 7" in run("elect", "unclean", "led:7", "--yes", status=1)


def test_a_partition_is_planned_moved_and_found_where_it_should_be(
    run: Run, tmp_path: Path
) -> None:
    origin = create(run, "moved", 1)["replicas"]
    run("produce", "moved", stdin="".join(f"record {number}\n" for number in range(100)))
    others = [node for node in (1, 2, 3) if node not in origin]
    table = run("reassign", "plan", "moved", "--without", str(origin[0]), "--replicas", "2")
    assert table.splitlines()[1].split()[:3] == ["moved", "0", str(origin[0])]
    planned = run(
        "reassign", "plan", "moved", "--without", str(origin[0]), "--replicas", "2", "--json"
    )
    (row,) = json.loads(planned)["partitions"]
    assert (row["topic"], row["partition"], sorted(row["replicas"])) == ("moved", 0, others)
    (tmp_path / "plan.json").write_text(planned)
    assert "moved-0 moves\ndone\n" in run(
        "reassign", "start", str(tmp_path / "plan.json"), "--throttle", "50MB", "--wait"
    )
    (partition,) = partitions(run, "moved")
    assert sorted(partition["replicas"]) == others
    assert sorted(partition["isr"]) == others
    assert run("reassign", "progress") == "no partition is being reassigned\n"
    assert run("throttle", "show") == "nothing is throttled\n"
    records = run("consume", "moved", "--from", "earliest", "--until-end").splitlines()
    assert records == [f"record {number}" for number in range(100)]


def test_a_throttled_move_goes_slowly_is_seen_to_and_can_be_cancelled(run: Run) -> None:
    (origin,) = create(run, "slow", 1)["replicas"]
    size = 12_000_000
    line = "x" * 999 + "\n"
    run("produce", "slow", stdin=line * (size // len(line)))
    target = next(node for node in (1, 2, 3) if node != origin)
    plan = {"partitions": [{"topic": "slow", "partition": 0, "replicas": [target]}]}
    run("reassign", "start", "-", "--throttle", "1KB", stdin=json.dumps(plan))
    shown = json.loads(run("throttle", "show", "--json"))
    assert [each["follower_bytes_per_second"] for each in shown["brokers"]] == [1_000] * 3
    assert {"topic": "slow", "leaders": f"0:{origin}", "followers": f"0:{target}"} in shown[
        "topics"
    ]
    until(lambda: json.loads(run("reassign", "progress", "--json"))[0]["bytes_left"] < size)
    (moving,) = json.loads(run("reassign", "progress", "--json"))
    assert (moving["topic"], moving["adding"], moving["removing"]) == ("slow", [target], [origin])
    assert 0 < moving["bytes_left"] < moving["bytes"]

    def is_said_to_be_throttled() -> bool:
        (partition,) = json.loads(run("status", "slow", "--json"))["partitions"]
        (new,) = [each for each in partition["standing"] if each["broker"] == target]
        words = new["why_not_in_sync"]
        return "caught up to" in words and words.endswith("throttled")

    until(is_said_to_be_throttled)
    assert run("reassign", "cancel", "slow") == "slow-0 stays where it was\n"
    assert partitions(run, "slow")[0]["replicas"] == [origin]
    assert "none of these is being reassigned" in run("reassign", "cancel", "slow", status=1)
    assert run("throttle", "clear") == "nothing is throttled\n"
    assert run("throttle", "show") == "nothing is throttled\n"


def test_a_throttle_is_set_shown_and_cleared_by_topic(run: Run) -> None:
    run("throttle", "clear")
    create(run, "busy", 2)
    assert "9.5 MiB a second on broker 2" in run("throttle", "set", "10MB", "busy", "--broker", "2")
    shown = json.loads(run("throttle", "show", "--json"))
    assert shown["brokers"] == [
        {"id": 2, "leader_bytes_per_second": 10**7, "follower_bytes_per_second": 10**7}
    ]
    assert shown["topics"] == [{"topic": "busy", "leaders": "*", "followers": "*"}]
    run("throttle", "clear", "busy")
    shown = json.loads(run("throttle", "show", "--json"))
    assert (len(shown["brokers"]), shown["topics"]) == (1, [])
    run("throttle", "clear")
    assert json.loads(run("throttle", "show", "--json")) == {"brokers": [], "topics": []}


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (("throttle", "set", "12x"), 2, "'12x' is not a rate; write it like 500KB"),
        (("throttle", "set", "1MB", "--broker", "9"), 1, "no broker 9 serves; those that do are"),
        (("reassign", "plan", "--brokers", "1,a"), 2, "'1,a' is not a list of broker ids"),
        (("reassign", "plan", "--brokers", "1,9"), 1, "no broker 9 serves"),
        (("reassign", "plan", "none"), 1, "topic 'none' does not exist"),
        (("reassign", "cancel"), 2, "name topics or partitions, or say --all"),
        (("reassign", "start", "-"), 2, "not a plan: it must be JSON like"),
        (("elect", "preferred", "back:x"), 2, "'back:x' is not TOPIC or TOPIC:PARTITION"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(
    run: Run, arguments: tuple[str, ...], status: int, sentence: str
) -> None:
    if arguments[-1] == "back:x":
        run("topic", "create", "back", "-r", "3", "--if-not-exists")
    told = run(*arguments, status=status)
    assert sentence in told
    assert told.count("\n") == 1


def test_a_plan_that_names_no_broker_of_the_cluster_is_refused_and_throttles_nothing(
    run: Run,
) -> None:
    run("throttle", "clear")
    create(run, "kept", 1)
    plan = {"partitions": [{"topic": "kept", "partition": 0, "replicas": [9]}]}
    told = run("reassign", "start", "-", "--throttle", "1KB", stdin=json.dumps(plan), status=1)
    assert told == "no broker 9 is registered\n"
    assert run("throttle", "show") == "nothing is throttled\n"
