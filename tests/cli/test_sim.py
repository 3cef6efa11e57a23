"""`cotidal sim`: runs, scripts and what is said about them."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from cotidal.cli.sim import command
from cotidal.cli.tally import Tally
from cotidal.cli.verb import Failed
from cotidal.core.partition import leader
from cotidal.sim.run import Outcome

HOLDS = """\
plan calm
seed 4
set seconds 2
at 0.500 kill 2 for 0.500
breaks LEADER_HOLDS_ACKED
"""


@pytest.fixture
def reckless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader that waits for nobody."""
    monkeypatch.setattr(leader, "committed_offset", lambda leader_end, ends_waited_for: leader_end)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(*arguments: str) -> str:
    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def refused(status: int, *arguments: str) -> tuple[str, str]:
    """What was printed before it failed, and the sentence with which it did."""
    done = CliRunner().invoke(command, arguments)
    assert isinstance(done.exception, Failed), done.output
    assert done.exception.status == status
    return done.output, str(done.exception)


def test_a_script_is_replayed(here: Path) -> None:
    (here / "one.script").write_text(HOLDS)
    told = said("replay", "one.script")
    assert "every promise held" in told
    assert "LEADER_HOLDS_ACKED, which the script says was broken, held too" in told


def test_what_holds_cannot_be_shrunk(here: Path) -> None:
    (here / "one.script").write_text(HOLDS)
    _, sentence = refused(1, "shrink", "one.script")
    assert sentence == "every promise held: there is nothing to shrink"
    assert (here / "one.script").read_text() == HOLDS


def test_a_file_that_is_no_script_is_refused_with_its_line(here: Path) -> None:
    (here / "one.script").write_text("plan calm\nseed 1\nat noon kill 2\n")
    _, sentence = refused(2, "replay", "one.script")
    assert sentence.startswith("one.script is no script of a run: line 3: 'at noon kill 2'")


@pytest.mark.parametrize("verb", ["replay", "shrink"])
def test_a_run_must_be_named(verb: str) -> None:
    _, sentence = refused(2, verb, "--plan", "mild")
    assert sentence == "which run? Give a script's FILE, or --plan and --seed"


@pytest.mark.plain
@pytest.mark.usefixtures("reckless")
def test_a_failing_run_leaves_a_script_that_breaks_the_same_promise(here: Path) -> None:
    out, sentence = refused(1, "run", "--plan", "calm", "--seed", "7")
    assert "`cotidal sim replay ./calm-7.script`" in sentence
    script = (here / "calm-7.script").read_text()
    assert script in out
    assert script.startswith("# HIGH_WATERMARK_WAITS: ")
    assert script.endswith("breaks HIGH_WATERMARK_WAITS\n")
    _, sentence = refused(1, "replay", "calm-7.script")
    assert sentence == "calm-7.script breaks HIGH_WATERMARK_WAITS"


@pytest.mark.usefixtures("reckless")
def test_every_run_is_a_row_of_a_parquet_file_and_a_promise_has_one_script(here: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is nobody's dependency here")
    wanted = ("--plan", "calm", "--seed", "7", "--seeds", "2", "--jobs", "1")
    _, sentence = refused(1, "run", *wanted, "--parquet", "runs.parquet")
    assert sentence.startswith("2 of 2 runs broke a promise")
    rows = parquet.read_table(here / "runs.parquet").to_pylist()
    assert [(row["seed"], row["broken"]) for row in rows] == [
        (7, "HIGH_WATERMARK_WAITS"),
        (8, "HIGH_WATERMARK_WAITS"),
    ]
    assert [each.name for each in here.glob("*.script")] == ["calm-7.script"]


@pytest.mark.plain
@pytest.mark.usefixtures("reckless")
def test_shrinking_may_be_turned_off(here: Path) -> None:
    out, sentence = refused(1, "run", "--plan", "calm", "--seed", "7", "--no-shrink")
    assert "\n1 run of plan calm: 1 failed; " in f"\n{out}"
    assert sentence.startswith("1 of 1 run broke a promise; ")
    assert "`cotidal sim replay --plan calm --seed 7`" in sentence
    assert list(here.iterdir()) == []


def test_an_unknown_plan_is_answered_with_the_nearest() -> None:
    _, sentence = refused(2, "run", "--plan", "hash")
    assert sentence.startswith("there is no plan 'hash'; did you mean 'harsh'?")


def test_the_probes_are_listed_with_the_plan_that_must_meet_them() -> None:
    told = said("probes")
    assert "an ISR shrinks to one" in told
    assert "seesaw" in told


def test_the_probes_are_counted() -> None:
    told = said("probes", "--plan", "unclean-on", "--seeds", "2", "--jobs", "1", "--json")
    (row,) = json.loads(told)
    assert (row["situation"], row["runs"]) == ("an unclean leader is elected", 2)
    assert 0 <= row["met_in"] <= 2


def test_what_was_run_is_written_down_and_added_up(here: Path) -> None:
    for first in ("1", "2"):
        wanted = ("--plan", "calm", "--seed", first, "--seeds", "2", "--jobs", "1")
        said("run", *wanted, "--tally", "runs.jsonl", "--commit", f"c{first}")
    (total,) = json.loads(said("tally", "runs.jsonl", "--json"))
    assert (total["plan"], total["commits"], total["seeds"], total["runs"]) == ("calm", 2, 3, 4)
    assert total["steps"] > 1_000
    assert "calm" in said("tally", "runs.jsonl").splitlines()[1]
    said("tally", "runs.jsonl", "--gather", "runs.jsonl")
    assert json.loads(said("tally", "runs.jsonl", "--json")) == [total]


def test_a_file_that_is_no_tally_is_refused_with_its_line(here: Path) -> None:
    (here / "runs.jsonl").write_text("once upon a time\n")
    _, sentence = refused(2, "tally", "runs.jsonl")
    assert sentence.startswith("runs.jsonl, line 1: ")


def test_what_cannot_be_gathered_there_is_refused_in_a_sentence(here: Path) -> None:
    (here / "runs.jsonl").write_text("")
    _, sentence = refused(2, "tally", "runs.jsonl", "--gather", "nowhere/kept.jsonl")
    assert sentence == "nowhere/kept.jsonl: No such file or directory"


def test_a_campaign_that_is_broken_off_has_written_down_what_it_ran(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cotidal.cli.tally.RUNS_PER_LINE", 2)
    with contextlib.suppress(KeyboardInterrupt), Tally("runs.jsonl", "c") as tally:
        for seed in range(5):
            tally.add(Outcome(seed, "calm", None, "", 0, 0, 10, 12, 0, 0, 0, 0, {}, ()))
        assert len((here / "runs.jsonl").read_text().splitlines()) == 2
        raise KeyboardInterrupt
    (total,) = json.loads(said("tally", "runs.jsonl", "--json"))
    assert (total["runs"], total["steps"], total["events"]) == (5, 50, 60)
