from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from cotidal.cli.main import VERBS, cotidal


def every_command() -> list[tuple[str, click.Command]]:
    """All commands of the tree by their words, the groups among them."""
    found: list[tuple[str, click.Command]] = []

    def walk(words: str, command: click.Command) -> None:
        found.append((words, command))
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                child = command.get_command(context, name)
                assert child is not None
                walk(f"{words} {name}".strip(), child)

    walk("", cotidal)
    return found


COMMANDS = every_command()


@pytest.mark.parametrize("words", [words for words, _ in COMMANDS])
def test_every_help_has_examples_that_name_the_command(words: str, offline: Any) -> None:
    outcome = offline(*words.split(), "--help")
    assert outcome.status == 0
    _, _, examples = outcome.out.partition("Examples:")
    assert f"cotidal {words}".strip() in examples


def example_lines() -> list[str]:
    return [
        line.partition("| ")[2] if "| cotidal" in line else line
        for _, command in COMMANDS
        for _, line in getattr(command, "examples", ())
    ]


@pytest.mark.parametrize("line", example_lines())
def test_every_example_can_be_parsed(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line.partition(" | ")[0].partition(" <")[0].partition(" >")[0])
    assert words[0] == "cotidal"
    for word in words:
        if word.endswith((".script", ".trace")):  # what an example reads is there
            Path(word).touch()
    command: click.Command = cotidal
    context = click.Context(command, info_name="cotidal")
    rest = words[1:]
    while isinstance(command, click.Group):
        if command.invoke_without_command and (not rest or rest[0].startswith("-")):
            break
        found = command.get_command(context, rest[0])
        assert found is not None, line
        command, rest = found, rest[1:]
    command.make_context("example", list(rest))


@pytest.mark.parametrize("verb", VERBS)
def test_the_table_of_verbs_is_the_first_line_of_their_help(verb: str) -> None:
    command = cotidal.get_command(click.Context(cotidal), verb)
    assert command is not None
    assert VERBS[verb].rstrip(".").split(":")[0].split()[0] == (command.help or "").split()[0]


def test_no_verb_at_all_is_answered_with_the_help(offline: Any) -> None:
    outcome = offline()
    assert outcome.status == 2
    assert "Verbs:" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["topik"], "there is no verb 'topik'; did you mean 'topic'?; see `cotidal --help`"),
        (["topic", "crate"], "did you mean 'create'?; see `cotidal topic --help`"),
        (["topic", "create"], "missing argument 'NAME'; see `cotidal topic create --help`"),
        (["topic", "list", "--jsno"], "no such option '--jsno'"),
        (["topic", "create", "a", "-p", "0"], "see `cotidal topic create --help`"),
        (["topic", "create", "a", "--config", "b"], "'b' is not a setting; write it as name=value"),
        (["topic", "alter", "a"], "nothing to alter: give --partitions, --config or --unset"),
        (["produce", "a", "--acks", "2"], "see `cotidal produce --help`"),
        (["consume", "a", "--from", "soon"], "'soon' is no place to start from"),
        (["consume", "a", "--format", "%z"], "'%z' means nothing in a format"),
        (["configs", "set", "topic", "a"], "missing argument"),
        (["format"], "give either --config or --data"),
        (["topic", "list", "--bootstrap", "a:b"], "'a:b' is not an address of a broker"),
    ],
)
def test_wrong_usage_is_one_sentence_and_status_2(
    arguments: list[str], sentence: str, offline: Any
) -> None:
    outcome = offline(*arguments)
    assert outcome.status == 2
    assert sentence in outcome.err
    assert outcome.err.count("\n") == 1
    assert outcome.out == ""


def test_an_unreachable_cluster_is_one_sentence_that_says_what_to_do(offline: Any) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    outcome = offline("topic", "list", "--bootstrap", f"127.0.0.1:{port}")
    assert outcome.status == 1
    assert outcome.err == (
        f"cannot reach 127.0.0.1:{port}: connection refused; start a cluster with `cotidal up`, "
        "or name one with --bootstrap\n"
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_completion_script(shell: str, offline: Any) -> None:
    outcome = offline("completion", shell)
    assert outcome.status == 0
    assert "_COTIDAL_COMPLETE" in outcome.out


def test_a_simple_verb_imports_nothing_heavy() -> None:
    program = (
        "import sys; from cotidal.cli.main import run; "
        "run(['topic', 'list', '--bootstrap', '127.0.0.1:1']); "
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(done.stdout.split())
    assert not loaded & {
        "asyncio", "uvloop", "prometheus_client", "cramjam", "crc32c", "email", "http", "json",
        "logging", "multiprocessing", "concurrent", "ssl",
    }  # fmt: skip


def test_the_version_is_told(offline: Any) -> None:
    from cotidal import __version__

    assert offline("--version").out == f"cotidal {__version__}\n"


def complete(bootstrap: str, *words: str) -> list[str]:
    """What the shell would offer for the last word."""
    done = subprocess.run(
        [sys.executable, "-c", "from cotidal.cli.main import main; main()"],
        env={
            "COTIDAL_BOOTSTRAP": bootstrap,
            "_COTIDAL_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(words),
            "COMP_CWORD": str(len(words) - 1),
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_the_shell_completes_verbs_and_topics(node: str, topic: str) -> None:
    assert complete(node, "cotidal", "topic", "d") == ["delete", "describe"]
    assert topic in complete(node, "cotidal", "consume", topic[:6])


def test_completion_is_silent_without_a_cluster() -> None:
    assert complete("127.0.0.1:1", "cotidal", "consume", "a") == []
