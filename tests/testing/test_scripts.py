"""The script runner: what a script is, and what it says about one that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from cotidal.testing import cluster_commands, partition_commands, quorum_commands
from cotidal.testing.cluster_commands import ClusterCommands
from cotidal.testing.partition_commands import PartitionCommands
from cotidal.testing.quorum_commands import QuorumCommands
from cotidal.testing.scripts import (
    Command,
    ScriptError,
    difference,
    main,
    milliseconds,
    read_script,
    run_script,
    world_of,
)


class Echo:
    """A world that says what it was told."""

    def obey(self, command: Command) -> list[str]:
        return [f"{command.name} {' '.join(command.words)}".strip()]


SCRIPT = """\
# A story.
say hello world
----
say hello world

# It goes on,
# and on.
stop
----
stop
"""


def test_a_script_that_is_right_comes_back_as_it_was() -> None:
    assert run_script(SCRIPT, Echo()) == SCRIPT
    assert difference(SCRIPT, SCRIPT) == ""


def test_what_happened_replaces_what_was_expected_and_comments_stay() -> None:
    wrong = SCRIPT.replace("----\nsay hello world", "----\nsay goodbye")
    assert run_script(wrong, Echo()) == SCRIPT
    assert "-say goodbye\n+say hello world\n" in difference(wrong, SCRIPT)


def test_a_command_without_expectation_gets_one() -> None:
    assert run_script("say hello\n\nstop\n", Echo()) == (
        "say hello\n----\nsay hello\n\nstop\n----\nstop\n"
    )


def test_a_comment_after_the_last_command_stays() -> None:
    told = SCRIPT + "\n# The end.\n"
    assert run_script(told, Echo()) == told


def test_steps_keep_what_stands_before_them() -> None:
    script = read_script(SCRIPT)
    assert [step.command for step in script.steps] == ["say hello world", "stop"]
    assert script.steps[1].before == ("", "# It goes on,", "# and on.")


def test_options_are_numbers_lists_times_and_words() -> None:
    command = Command("append m1 records=3 isr=(1,2) wait=5s acks=all")
    assert command.words == ["m1"]
    assert command.number("records") == 3
    assert command.numbers("isr") == (1, 2)
    assert command.milliseconds("wait", "0s") == 5_000
    assert command.text_of("acks") == "all"
    assert command.number("other", 7) == 7
    command.finish()


@pytest.mark.parametrize(("text", "expected"), [("5s", 5_000), ("500ms", 500), ("7", 7)])
def test_times_have_units(text: str, expected: int) -> None:
    assert milliseconds(text) == expected


@pytest.mark.parametrize("text", ["soon", "s", "-5s", ""])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ScriptError, match="is not a time"):
        milliseconds(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("dance", "no command 'dance'"),
        ("leader", "lacks broker="),
        ("leader broker=one epoch=1", "'one' is not a number"),
        ("leader broker=1 epoch=1 isr=(1) colour=red", "does not know colour="),
        ("sync broker=9", "no broker 9"),
        ("late-answer", "no broker -1"),
    ],
)
def test_a_command_that_cannot_be_obeyed_says_why(text: str, why: str) -> None:
    with pytest.raises(ScriptError, match=why):
        run_script(text, PartitionCommands())


def test_a_broker_that_is_down_obeys_nothing() -> None:
    script = "leader broker=1 epoch=1 isr=(1)\n\nkill broker=1\n\nappend m1\n"
    with pytest.raises(ScriptError, match="broker 1 is down"):
        run_script(script, PartitionCommands())


@pytest.mark.parametrize(
    ("kind", "world"),
    [("partition", PartitionCommands), ("cluster", ClusterCommands), ("quorum", QuorumCommands)],
)
def test_the_directory_of_a_script_says_which_world_it_is_about(kind: str, world: type) -> None:
    assert isinstance(world_of(Path(f"scripts/{kind}/story.script")), world)


def test_a_script_in_no_known_directory_is_refused() -> None:
    with pytest.raises(ScriptError, match="lies in none of the directories partition, cluster"):
        world_of(Path("elsewhere/story.script"))


CLUSTER = "cluster brokers=(1,2)\n\ncreate orders replicas=(1,2)\n\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("dance", "no command 'dance'"),
        ("cluster brokers=(1,2) colour=red", "does not know colour="),
        (CLUSTER + "kill broker=9", "no broker 9"),
        (CLUSTER + "append m1 to=1 colour=red", "does not know colour="),
    ],
)
def test_a_command_that_a_cluster_cannot_obey_says_why(text: str, why: str) -> None:
    with pytest.raises(ScriptError, match=why):
        run_script(text, ClusterCommands())


def test_a_setting_that_the_controller_refuses_is_told() -> None:
    script = "cluster brokers=(1,2)\n\ncreate orders replicas=(1,2) min.insync.replicas=none\n"
    assert "refuse INVALID_CONFIG(40)" in run_script(script, ClusterCommands())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("dance", "no command 'dance'"),
        ("quorum voters=(1,2,3)\n\npropose m1", "nobody leads the quorum"),
        ("quorum voters=(1,2,3)\n\nkill node=9", "no node 9"),
        ("quorum voters=(1)\n\nkill node=1\n\nstop node=1", "node 1 is down"),
        ("quorum voters=(1)\n\nremove-voter node=2", "it does not vote"),
        ("quorum voters=(1,2) played=(2)\n\ngrant by=2 to=1", "has asked node 2 nothing"),
    ],
)
def test_a_command_that_a_quorum_cannot_obey_says_why(text: str, why: str) -> None:
    with pytest.raises(ScriptError, match=why):
        run_script(text, QuorumCommands())


def test_help_names_every_command_of_every_world(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    said = capsys.readouterr().out
    for commands in (partition_commands, cluster_commands, quorum_commands):
        words = set(str(commands.__doc__).replace(";", " ").split())
        assert set(commands.COMMANDS) <= words, commands.__name__
        assert str(commands.__doc__).strip() in said


def test_no_script_at_all_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "--help" in capsys.readouterr().out


def test_the_command_shows_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right, wrong = tmp_path / "right.script", tmp_path / "wrong.script"
    right.write_text(SCRIPT)
    wrong.write_text(SCRIPT.replace("----\nstop", "----\ngo"))
    assert main([str(right)], lambda _: Echo()) == 0
    assert main([str(right), str(wrong)], lambda _: Echo()) == 1
    said = capsys.readouterr().out
    assert "wrong.script: differs" in said
    assert "-go\n+stop\n" in said
