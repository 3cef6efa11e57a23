"""Whole runs: every plan holds for some seeds, and one seed is one run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cotidal.sim
import fingerprint
from cotidal.cli.tally import build
from cotidal.sim.checkers.window import hosted_by, image_of, quorum_of
from cotidal.sim.faults.schedule import draw_schedule
from cotidal.sim.plans import PLANS
from cotidal.sim.run import Run, run
from cotidal.sim.script import parse_script
from cotidal.sim.trace import Trace
from cotidal.sim.workloads.consumer import Consumer
from fingerprint import digest

SHORT = 5
CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.script"))


@pytest.mark.parametrize("name", list(PLANS))
def test_every_promise_of_a_plan_holds(name: str) -> None:
    outcome = run(1, PLANS[name]._replace(seconds=SHORT))
    assert (outcome.broken, outcome.sentence) == (None, "")
    assert outcome.acknowledged > 0
    assert outcome.read > 0


PACKAGE = Path(cotidal.sim.__path__[0]).parent


def digest_by(python: str, *, hash_seed: str, package: Path = PACKAGE) -> str:
    told = subprocess.run(
        [python, fingerprint.__file__, "5"],
        env={
            **os.environ,
            "PYTHONHASHSEED": hash_seed,
            "PYTHONPATH": str(package.parent),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return told.stdout.strip()


def test_one_seed_is_one_run_whatever_the_hash_seed() -> None:
    here = digest(5)
    for hash_seed in ("1", "2"):
        assert digest_by(sys.executable, hash_seed=hash_seed) == here


def other_pythons() -> list[str]:
    """One of each other version that this machine has and that runs."""
    found = []
    for minor in range(11, 15):
        name = f"python3.{minor}"
        kept = (Path.home() / ".pyenv" / "versions").glob(f"3.{minor}.*/bin/{name}")
        for python in (shutil.which(name), *map(str, kept)):
            if python is not None and minor != sys.version_info.minor and _runs(python):
                found.append(python)
                break
    return found


def _runs(python: str) -> bool:
    return subprocess.run([python, "--version"], capture_output=True).returncode == 0


@pytest.mark.skipif(not other_pythons(), reason="this machine has no other Python")
def test_one_seed_is_one_run_on_every_python() -> None:
    """Also without any library: the other Pythons have none installed."""
    here = digest(5)
    for python in other_pythons():
        assert digest_by(python, hash_seed="1") == here, python


@pytest.mark.skipif(build() == "plain", reason="this is the plain build: see make test-compiled")
def test_one_seed_is_one_run_compiled_or_plain(tmp_path: Path) -> None:
    plain = tmp_path / PACKAGE.name
    shutil.copytree(PACKAGE, plain, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    assert digest_by(sys.executable, hash_seed="1", package=plain) == digest(5)


def test_another_seed_is_another_run() -> None:
    assert digest(5) != digest(6)


def test_a_story_names_topics_and_tells_every_step() -> None:
    lines: list[str] = []
    outcome = run(5, PLANS["calm"]._replace(seconds=1), Trace(lines.append))
    assert len(lines) >= outcome.steps
    assert any("partition orders-0: replicas" in line for line in lines)
    assert any("Fetch v17 by" in line and "orders-0 offset=" in line for line in lines)


def test_lines_are_made_only_when_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    monkeypatch.setattr("cotidal.sim.trace.told", lambda moment, _: told.append(moment) or "")
    one = Run(5, PLANS["calm"]._replace(seconds=1))
    assert one.go().broken is None
    assert not told
    one.world.trace.last(10)
    assert told


def test_a_run_without_faults_retries_nothing() -> None:
    outcome = run(3, PLANS["calm"]._replace(seconds=SHORT, acks=(-1, -1, 1)))
    assert outcome.unknown == 0
    assert outcome.sent == outcome.acknowledged
    assert "a produce without an answer" not in outcome.seen


@pytest.mark.plain
def test_a_consumer_that_never_reads_to_the_end_breaks_a_promise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Consumer, "_fetch", lambda self, address: None)
    outcome = run(3, PLANS["calm"]._replace(seconds=1))
    assert outcome.broken == "READS_REACH_THE_END"
    assert "c0 has read orders-0 up to 0" in outcome.sentence


def test_every_fault_strikes_in_some_run() -> None:
    plan = PLANS["harsh"]._replace(seconds=40, gap_ms=300)
    seen: dict[str, int] = {}
    for seed in range(1, 4):
        one = Run(seed, plan)
        one.go()
        seen.update(one.probes.seen)
    single = set(plan.faults) - {"kill-all", "relapse"}  # are drawn as kills
    assert {f"fault: {name}" for name in single} <= set(seen)


def test_a_run_under_the_schedule_that_its_seed_draws_is_the_same_run() -> None:
    plan = PLANS["harsh"]._replace(seconds=SHORT)
    assert run(5, plan, schedule=draw_schedule(5, plan)) == run(5, plan)


def test_a_run_under_an_empty_schedule_meets_no_fault() -> None:
    outcome = run(5, PLANS["harsh"]._replace(seconds=SHORT), schedule=())
    assert outcome.broken is None
    assert not [situation for situation in outcome.seen if situation.startswith("fault")]


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_a_run_that_ever_failed_holds(path: Path) -> None:
    """The corpus: what the simulator once found stays looked at, whatever plans come to draw. Each
    file begins with what was found."""
    seed, plan, schedule, breaks = parse_script(path.read_text(encoding="utf-8"))
    assert not breaks
    outcome = run(seed, plan, schedule=schedule)
    assert outcome.broken is None, outcome.sentence


def test_every_run_of_the_corpus_says_what_was_found() -> None:
    assert len(CORPUS) > 10
    for path in CORPUS:
        assert path.read_text(encoding="utf-8").startswith("# "), path


def test_apart_no_broker_votes_and_no_controller_is_a_broker() -> None:
    one = Run(2, PLANS["apart"]._replace(seconds=SHORT))
    assert one.go().broken is None
    for process in one.world.running:
        assert {voter.voter_id for voter in quorum_of(process).voter_set.voters} == {4, 5, 6}
        assert set(image_of(process).brokers) == {1, 2, 3}
        assert bool(hosted_by(process)) is (process.node_id <= 3)
    for kinds in (("kill", "pause"), ("isolate",), ("sever", "deafen", "slow-link")):
        drawn = (each for seed in range(20) for each in draw_schedule(seed, PLANS["apart"]))
        struck = {node for each in drawn if each.fault in kinds for node in each.nodes[:1]}
        assert struck == {1, 2, 3, 4, 5, 6}, kinds
