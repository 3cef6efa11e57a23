"""Real processes under faults: a short storm, a nemesis by itself, and bugs that are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from cotidal.broker.faults import HELD
from cotidal.sim.faults.schedule import Schedule, parse_command
from cotidal.sim.violation import Violation
from cotidal.sim.workloads.history import Acked, Consumed, History
from cotidal.testing.cluster import ProcessCluster
from cotidal.values import TopicPartition
from cotidal.wire.records import Record, build_batch
from tests.chaos.__main__ import run
from tests.chaos.clients import NUMBERS
from tests.chaos.judge import look_at_records, raised_epochs
from tests.chaos.nemesis import Nemesis
from tests.chaos.plan import STORM, storm_schedule

SEED = 7
"""A stop, a lost disk, kills and a partition, in that order."""


def test_nothing_is_lost_in_a_short_storm(tmp_path: Path) -> None:
    outcome = run(tmp_path, seed=SEED, faults=5, trace=True)
    assert outcome.broken is None, outcome.sentence
    assert outcome.faults >= 5
    assert outcome.steps > 1_000
    assert outcome.slowest()["rolling restart"][0] == 3
    assert all(level.acked > 50 for level in outcome.levels)
    assert outcome.transactions.committed > 10
    assert [level.lost for level in outcome.levels if "all" in level.name] == [0, 0]


OF_TRANSACTIONS = ("EXACTLY_ONCE", "TXN_ATOMIC", "TXN_ABORTED_UNSEEN", "TXN_DECIDED_ONCE")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("mutant", "seed", "broken"),
    [
        ("acks-before-high-watermark", 247, {"LEADER_HOLDS_ACKED", "ACKED_IS_KEPT"}),
        ("consumers-read-to-the-end", 247, {"CONSUMED_NEVER_CHANGES"}),
        ("follower-forgets-producers", 2, {"IDEMPOTENT_ONCE"}),
        ("duplicate-written-twice", 2, {"IDEMPOTENT_ONCE"}),
        ("aborted-not-in-the-index", 2, {"TXN_ABORTED_UNSEEN"}),
    ],
)
def test_a_planted_bug_is_found_on_real_processes(
    tmp_path: Path, mutant: str, seed: int, broken: set[str]
) -> None:
    """A schedule does not say what processes are doing when it strikes: three attempts."""
    outcomes = (
        run(tmp_path / str(attempt), seed=seed, faults=40, mutant=mutant) for attempt in range(3)
    )
    found = next((outcome for outcome in outcomes if outcome.broken is not None), None)
    assert found is not None
    # Whoever lost an acknowledged record, or what is known of producers, may also find that an
    # idempotent writer cannot go on, or that a transaction is torn.
    assert found.broken in broken | {"IDEMPOTENT_ONCE", *OF_TRANSACTIONS}, found.sentence


class Recorder(ProcessCluster):
    """A cluster of which only the orders are kept."""

    def __init__(self) -> None:
        super().__init__(3)
        self.orders: list[str] = []
        self.running = {1, 2, 3}

    def is_running(self, node: int) -> bool:
        return node in self.running

    def kill(self, node: int) -> None:
        self.orders.append(f"kill {node}")
        self.running.remove(node)

    def restart(self, node: int, *, wait: bool = True) -> None:
        self.orders.append(f"start {node}")
        self.running.add(node)

    def pause(self, node: int) -> None:
        self.orders.append(f"pause {node}")

    def resume(self, node: int) -> None:
        self.orders.append(f"resume {node}")

    def suffer(self, faults: object) -> None:
        self.faults = faults  # type: ignore[assignment]


@pytest.fixture
def cluster() -> Recorder:
    recorder = Recorder()
    recorder._data.drop()
    return recorder


def nemesis(cluster: Recorder, *lines: str, whole: bool = True) -> Nemesis:
    schedule: Schedule = tuple(parse_command(line) for line in lines)
    return Nemesis(
        cluster,
        schedule,
        logs=["storm-0", "storm-1"],
        whole=lambda: whole,
        on_strike=lambda command: None,
    )


def test_a_fault_begins_and_ends_when_its_time_has_come(cluster: Recorder) -> None:
    storm = nemesis(cluster, "at 1.000 kill 2 for 0.500", "at 1.200 pause 3 for 1.000")
    for moment in (999, 1_000, 1_200, 1_499):
        storm.tick(moment)
    assert cluster.orders == ["kill 2", "pause 3"]
    for moment in (1_500, 2_199, 2_200):
        storm.tick(moment)
    assert cluster.orders == ["kill 2", "pause 3", "start 2", "resume 3"]
    assert storm.struck == 2
    assert storm.quiet


def test_the_last_node_that_runs_is_spared(cluster: Recorder) -> None:
    storm = nemesis(cluster, *(f"at 1.000 kill {node} for 9.000" for node in (1, 2, 3)))
    storm.tick(1_000)
    assert cluster.orders == ["kill 1", "kill 2"]
    assert storm.struck == 2


def test_a_link_is_as_bad_as_the_worst_that_is_done_to_it(cluster: Recorder) -> None:
    storm = nemesis(
        cluster,
        "at 1.000 slow-link 1 2 by 0.300 for 9.000",
        "at 2.000 deafen 2 1 for 1.000",
        "at 2.500 isolate 3 for 0.100",
    )
    storm.tick(2_000)
    assert dict(cluster.faults.delays) == {(1, 2): HELD}
    storm.tick(2_500)
    assert len(cluster.faults.delays) == 5
    storm.tick(3_000)
    assert dict(cluster.faults.delays) == {(1, 2): 0.3}
    storm.heal()
    assert not cluster.faults.delays


def test_a_disk_is_wiped_only_while_everything_is_whole(cluster: Recorder) -> None:
    storm = nemesis(cluster, "at 1.000 wipe 2 for 1.000 if whole", whole=False)
    storm.tick(1_000)
    busy = nemesis(cluster, "at 1.000 pause 1 for 9.000", "at 1.001 wipe 2 for 1.000 if whole")
    busy.tick(2_000)
    assert cluster.orders == ["pause 1"]


def test_a_full_log_is_mended_by_a_new_disk_and_a_new_process(cluster: Recorder) -> None:
    storm = nemesis(cluster, "at 1.000 full 2 1 for 0.500")
    storm.tick(1_000)
    assert cluster.faults.full == ((2, "storm-1"),)
    storm.tick(1_500)
    assert cluster.faults.full == ()
    assert cluster.orders == ["kill 2", "start 2"]


def test_a_node_that_ends_by_itself_is_a_broken_promise(cluster: Recorder) -> None:
    storm = nemesis(cluster, "at 1.000 kill 1 for 9.000")
    storm.tick(1_000)
    storm.look()
    cluster.running.remove(3)
    cluster._data.path.mkdir()
    cluster.journal.write_text("what it said")
    with pytest.raises(Violation, match="node 3 ended by itself"):
        storm.look()
    cluster._data.drop()


def test_a_schedule_has_more_commands_than_faults_are_asked_for() -> None:
    assert len(storm_schedule(1, 100)) > 100
    assert {command.fault for command in storm_schedule(1, 300)} >= {
        "kill", "stop", "pause", "isolate", "sever", "deafen", "slow-link", "full", "wipe",
    }  # fmt: skip
    assert STORM.down_max == 1


class Wrote:
    acks, idempotent, name = -1, True, "w"

    def __init__(self, *unplaced: Acked) -> None:
        self.unplaced = unplaced

    def owns(self, number: int) -> bool:
        return number < NUMBERS


@pytest.mark.parametrize(
    ("held", "broken"),
    [
        ([1, 2, 3], None),
        ([1, 3], "ACKED_IS_KEPT"),
        ([1, 2], "ACKED_IS_KEPT"),
        ([1, 2, 2, 3], "IDEMPOTENT_ONCE"),
        ([1, 2, 3, 2], "IDEMPOTENT_ONCE"),
    ],
)
def test_what_is_left_is_judged(held: list[int], broken: str | None) -> None:
    place = TopicPartition("storm", 0)
    told, final = History(), History()
    told.on_acked(Acked(place, 1, 2, -1, 0))
    final.consumed[place] = {
        offset: Consumed(number, offset + 1) for offset, number in enumerate(held)
    }
    writers = [Wrote(Acked(place, -1, 3, -1, 0))]
    if broken is None:
        look_at_records(told, final, writers, {})  # type: ignore[arg-type]
        return
    with pytest.raises(Violation) as found:
        look_at_records(told, final, writers, {})  # type: ignore[arg-type]
    assert found.value.name == broken


def test_what_a_producer_sends_again_in_another_epoch_is_its_own_affair() -> None:
    place = TopicPartition("storm", 0)
    final = History()
    final.consumed[place] = {
        offset: Consumed(number, offset + 1) for offset, number in enumerate([1, 2, 3, 2, 3])
    }
    log = b"".join(
        build_batch([Record(None, b"x")], base_offset=offset, producer_id=7, producer_epoch=epoch)
        for offset, epoch in enumerate([0, 0, 0, 1, 1])
    )
    raised = {place: raised_epochs(log)}
    assert raised == {place: {3: (7, 1)}}
    look_at_records(History(), final, [Wrote()], raised)  # type: ignore[list-item]
