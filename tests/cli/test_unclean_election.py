"""What an unclean election loses is told beforehand, and then exactly that is lost."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from cotidal.testing.cluster import Cluster

SECONDS_MAX = 40


def lines(first: int, last: int) -> str:
    return "".join(f"record {number}\n" for number in range(first, last))


@pytest.mark.parametrize(
    ("min_isr", "acks", "told"),
    [
        # A leader alone commits by itself: what it acknowledges is on no other disk.
        (1, "all", {"acknowledged_with_acks_all": 50, "acknowledged_with_acks_1_at_most": 0}),
        # Below min ISR nothing is committed: acks=all is refused, acks=1 takes its chances.
        (2, "1", {"acknowledged_with_acks_all": 0, "acknowledged_with_acks_1_at_most": 50}),
    ],
)
def test_status_names_beforehand_what_an_unclean_election_loses(
    cotidal: Any, min_isr: int, acks: str, told: dict[str, int]
) -> None:
    with Cluster(3) as cluster:

        def run(*arguments: str, stdin: str = "", status: int = 0) -> str:
            outcome = cotidal(*arguments, stdin=stdin, bootstrap=cluster.bootstrap)
            assert outcome.status == status, (arguments, outcome)
            return str(outcome.out)

        def seen() -> Any:
            (partition,) = json.loads(run("status", "orders", "--json"))["partitions"]
            return partition

        def until(what: Callable[[Any], bool]) -> Any:
            deadline = time.monotonic() + SECONDS_MAX
            while not what(partition := seen()):
                assert time.monotonic() < deadline, partition
                time.sleep(0.1)
            return partition

        # One hundred records on two replicas; then one of them dies, and fifty more are written.
        setting = f"min.insync.replicas={min_isr}"
        run("topic", "create", "orders", "-p", "1", "-r", "2", "--config", setting)
        run("produce", "orders", "--acks", "all", stdin=lines(0, 100))
        leader = seen()["leader"]
        follower = next(node for node in seen()["replicas"] if node != leader)
        cluster.kill(follower)
        until(lambda partition: partition["isr"] == [leader])
        run("produce", "orders", "--acks", acks, stdin=lines(100, 150))

        # What would be lost if the other one led, while that can still be known.
        (other,) = [each for each in seen()["standing"] if each["broker"] == follower]
        assert other["loss_if_elected"] == told | {"bound": "at_most"}
        assert "holds up to 100 of 150" in other["why_not_in_sync"]

        # The leader dies too, the other one comes back: nobody leads, and it is said why.
        cluster.kill(leader)
        cluster.restart(follower)
        partition = until(lambda partition: partition["leader"] is None and not partition["isr"])
        assert (partition["last_known_leader"], partition["unheard"]) == (leader, [leader])
        (other,) = [each for each in partition["standing"] if each["broker"] == follower]
        assert other["log_end_offset"] == 100
        assert other["loss_if_elected"]["bound"] == "at_least"
        assert "nothing that is known here" in run("elect", "unclean", "orders", status=1)
        assert seen()["leader"] is None

        # Somebody decides that going on is worth more.
        run("configs", "set", "topic", "orders", "unclean.leader.election.enable=true")
        partition = until(lambda partition: partition["leader"] == follower)
        assert partition["leader_epoch"] > 0
        if min_isr == 1:  # else the high watermark waits for a second replica (KIP-966)
            kept = run("consume", "orders", "--from", "earliest", "--until-end")
            assert kept == lines(0, 100)

        # Who was lost comes back, and drops what nobody else has.
        cluster.restart(leader)
        partition = until(lambda partition: leader in partition["isr"])
        assert {each["log_end_offset"] for each in partition["standing"]} == {100}
        run("produce", "orders", "--acks", "all", stdin=lines(200, 201))
        everything = run("consume", "orders", "--from", "earliest", "--until-end")
        assert everything == lines(0, 100) + lines(200, 201)
