"""``cotidal``: the root of the command line, and where every outcome becomes an exit status.

0 done, 1 refused or failed, 2 wrong usage. A failure is one sentence on stderr that says what to
do next. Only the chosen verb's module is imported: a verb is a module of this room whose name is
the verb's and which holds its ``command``.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Final

import click

from cotidal.cli.verb import Failed, VerbGroup

VERBS: Final[dict[str, str]] = {
    "up": "Start a local cluster in the foreground.",
    "format": "Prepare a data directory for a broker.",
    "broker": "Run one broker from a server.properties file.",
    "topic": "Create, list, describe, alter and delete topics.",
    "configs": "Read and change the settings of topics and brokers.",
    "produce": "Write lines from stdin to a topic.",
    "consume": "Print the records of a topic.",
    "groups": "List, describe, reset and delete consumer groups.",
    "txn": "List and describe transactions, and end those that hang.",
    "status": "Show brokers and replicas, why one is out of sync, what an election would drop.",
    "elect": "Elect leaders by hand: preferred ones, or any where nobody leads.",
    "reassign": "Move partitions to other brokers, and watch them go.",
    "throttle": "Bound what replicas that catch up may take of the network.",
    "quota": "Bound what clients may take of each broker.",
    "quorum": "Show the controllers and how far each has got.",
    "console": "Show a live cluster as a web page.",
    "chaos": "Kill, pause and part the nodes of a local cluster.",
    "events": "Tell what has happened to replication.",
    "sim": "Simulate clusters under faults and look for broken promises.",
    "pipeline": "Run jobs on Spark over a cluster's data.",
    "log": "Look into log files on disk.",
    "completion": "Print the completion script of a shell.",
}


class ReaderLeft(Exception):
    """Whoever read our output has closed it. Click would make a failure of a BrokenPipeError."""


class LazyVerbs(VerbGroup):
    """Lists verbs from the table above and imports one only when it is called."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            returned = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError as broken:
            raise ReaderLeft from broken
        return returned

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command = importlib.import_module(f"cotidal.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


@click.group(
    cls=LazyVerbs,
    examples=(
        ("a local cluster, until Ctrl-C", "cotidal up"),
        ("a topic of six partitions", "cotidal topic create orders --partitions 6"),
        ("write two records", "printf 'a:1\\nb:2\\n' | cotidal produce orders --key-separator :"),
        ("read them back", "cotidal consume orders --from earliest --until-end"),
    ),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="cotidal", message="cotidal %(version)s")
def cotidal() -> None:
    """A replicated, partitioned log that speaks Kafka's wire protocol."""


def run(arguments: Sequence[str]) -> int:
    """Run one command line; the exit status."""
    try:
        returned = cotidal.main(list(arguments), prog_name="cotidal", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as help_wanted:
        return say(help_wanted.format_message(), status=2)
    except click.UsageError as wrong:
        return say(usage_sentence(wrong), status=2)
    except click.ClickException as wrong:
        return say(wrong.format_message(), status=2)
    except Failed as failed:
        return say(str(failed), status=failed.status)
    except click.Abort:
        return say("interrupted", status=1)
    except ReaderLeft:
        return silence_stdout()
    except Exception as error:
        from cotidal.cli.explanation import explanation

        sentence = explanation(error)
        if sentence is None:
            raise
        return say(sentence, status=1)
    return returned if isinstance(returned, int) else 0


def main() -> None:
    sys.exit(run(sys.argv[1:]))


def say(sentence: str, *, status: int) -> int:
    # What was printed so far belongs before the sentence that ends it.
    try:
        sys.stdout.flush()
    except OSError:
        pass
    try:
        print(sentence, file=sys.stderr)
    except BrokenPipeError:
        pass
    return status


def usage_sentence(wrong: click.UsageError) -> str:
    """Click's complaint as one sentence that names the help to read."""
    complaint = " ".join(wrong.format_message().split()).rstrip(".")
    if complaint[:2].istitle() or complaint[:2] == "No":
        complaint = complaint[0].lower() + complaint[1:]
    path = wrong.ctx.command_path if wrong.ctx else "cotidal"
    return f"{complaint}; see `{path} --help`"


def silence_stdout() -> int:
    """``cotidal ... | head`` is a reader that has seen enough, not a failure.

    What is still in stdout's buffer goes nowhere: without this the interpreter's last flush would
    fail too, and say so.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
