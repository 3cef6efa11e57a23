"""Scripts: stories that are tests. Shipped.

    # A comment tells the story.
    command option=value
    ----
    what happened

A blank line ends what happened. Running a script gives it back with what really happened: it
passes if nothing differs, and `COTIDAL_REWRITE_SCRIPTS=1` writes it back, so that the diff is the
review. A command is a word, then words and ``name=value`` options; a list is ``(1,2,3)``, a time
``5s`` or ``500ms``.

Commands are obeyed by a world; which one, says the directory of a script: ``partition`` is one
partition and several replicas (partition_commands), ``cluster`` a controller and its brokers
(cluster_commands), ``quorum`` the voters of the metadata log (quorum_commands).

    python -m cotidal.testing.scripts FILE...       run scripts and show what differs
    python -m cotidal.testing.scripts --help        this, and the commands of every world
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

RULE = "----"


class ScriptError(Exception):
    """A script that cannot be read or obeyed; the message names the command."""


class World(Protocol):
    """Obeys one command after the other; answers with lines."""

    def obey(self, command: Command) -> list[str]: ...


class Step(NamedTuple):
    """A comment or blank lines before a command, the command, what it is expected to answer."""

    before: tuple[str, ...]
    command: str
    expected: tuple[str, ...]


class Script(NamedTuple):
    steps: tuple[Step, ...]
    after: tuple[str, ...]
    """Comments that follow the last command."""


class Command:
    """One command, taken apart. Every option must be asked for, or it is not known."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.name, *rest = text.split()
        self.words = [word for word in rest if "=" not in word]
        self._options = dict(word.split("=", 1) for word in rest if "=" in word)

    def __contains__(self, option: str) -> bool:
        return option in self._options

    def text_of(self, option: str, default: str | None = None) -> str:
        found = self._options.pop(option, default)
        if found is None:
            raise ScriptError(f"'{self.text}' lacks {option}=")
        return found

    def number(self, option: str, default: int | None = None) -> int:
        found = self.text_of(option, None if default is None else str(default))
        return self._int(found)

    def numbers(self, option: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        if default is not None and option not in self._options:
            return default
        return tuple(self._int(each) for each in self.list_of(option))

    def list_of(self, option: str) -> list[str]:
        inside = self.text_of(option).removeprefix("(").removesuffix(")")
        return [each for each in inside.split(",") if each]

    def milliseconds(self, option: str, default: str) -> int:
        return milliseconds(self.text_of(option, default))

    def rest(self) -> dict[str, str]:
        """Every option that nobody has asked for yet: settings, say, by their own names."""
        rest, self._options = self._options, {}
        return rest

    def finish(self) -> None:
        if self._options:
            unknown = ", ".join(f"{option}=" for option in self._options)
            raise ScriptError(f"'{self.text}' does not know {unknown}")

    def _int(self, text: str) -> int:
        try:
            return int(text)
        except ValueError:
            raise ScriptError(f"'{self.text}': '{text}' is not a number") from None


def milliseconds(text: str) -> int:
    for unit, factor in (("ms", 1), ("s", 1000), ("", 1)):
        number = text.removesuffix(unit)
        if text.endswith(unit) and number.isdigit():
            return int(number) * factor
    raise ScriptError(f"'{text}' is not a time such as 5s or 500ms")


def read_script(text: str) -> Script:
    steps: list[Step] = []
    before: list[str] = []
    lines = text.splitlines()
    position = 0
    while position < len(lines):
        here = lines[position]
        position += 1
        if not here.strip() or here.startswith("#"):
            before.append(here)
            continue
        expected: list[str] = []
        if position < len(lines) and lines[position] == RULE:
            position += 1
            while position < len(lines) and lines[position].strip():
                expected.append(lines[position])
                position += 1
        steps.append(Step(tuple(before), here, tuple(expected)))
        before = []
    return Script(tuple(steps), tuple(before))


def run_script(text: str, world: World) -> str:
    """The script with what really happened in place of what was expected."""
    script = read_script(text)
    lines: list[str] = []
    for step in script.steps:
        happened = world.obey(Command(step.command))
        lines += [*step.before, step.command, RULE, *happened]
    lines += script.after
    return "\n".join(lines).rstrip("\n") + "\n"


def difference(expected: str, happened: str) -> str:
    """Empty if there is none."""
    return "".join(
        difflib.unified_diff(
            expected.splitlines(keepends=True),
            happened.splitlines(keepends=True),
            "expected",
            "happened",
        )
    )


def world_of(path: Path) -> World:
    """A new world for the script at ``path``."""
    from cotidal.testing.cluster_commands import ClusterCommands
    from cotidal.testing.partition_commands import PartitionCommands
    from cotidal.testing.quorum_commands import QuorumCommands

    worlds: dict[str, Callable[[], World]] = {
        "partition": PartitionCommands,
        "cluster": ClusterCommands,
        "quorum": QuorumCommands,
    }
    kind = path.absolute().parent.name
    if kind not in worlds:
        raise ScriptError(f"'{path}' lies in none of the directories {', '.join(worlds)}")
    return worlds[kind]()


def help_text() -> str:
    """What a script is, and the words that each world understands."""
    from cotidal.testing import cluster_commands, partition_commands, quorum_commands

    worlds = (partition_commands, cluster_commands, quorum_commands)
    return "\n\n".join(str(text).strip() for text in (__doc__, *(w.__doc__ for w in worlds)))


def main(paths: list[str], new_world: Callable[[Path], World] = world_of) -> int:
    if not paths or "--help" in paths:
        print(help_text())
        return 0 if paths else 2
    differing = 0
    for path in map(Path, paths):
        text = path.read_text(encoding="utf-8")
        found = difference(text, run_script(text, new_world(path)))
        differing += bool(found)
        print(f"{path}: {'differs' if found else 'as written'}\n{found}", end="")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
