"""What can be done to the processes and links of a cluster that `cotidal up` runs on this machine.

The same words as the simulator's: kill, stop, start, pause-node, resume-node; and, in a cluster
that was started with --chaos, cut, join and slow. Each does what it says and returns a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from cotidal.broker.control import ControlError, Handle
from cotidal.broker.faults import HELD, both_ways
from cotidal.console.live.sight import Machine
from cotidal.console.world import Command, Json, Refused

NODE_MAX: Final = 1_000_000
SLOW_MS_MAX: Final = 10_000

_STATES: Final = {
    "ended": "down",
    "paused": "paused",
    "serves": "up",
    "runs, and does not serve": "starting",
}


class Act(NamedTuple):
    kind: str
    """As the time line has it."""
    do: Callable[[Handle, Command], str]


class Controls:
    def __init__(self, home: str) -> None:
        """``home``: the directory of the cluster's data."""
        self._home = home

    @property
    def acts(self) -> Mapping[str, Act]:
        """What can be done now, by name; nothing where no cluster runs there."""
        try:
            handle = Handle(self._home)
        except ControlError:
            return {}
        return {**PROCESS_ACTS, **LINK_ACTS} if handle.up.chaos else PROCESS_ACTS

    def do(self, name: str, command: Command) -> str:
        """ControlError or Refused if it cannot be done."""
        return self.acts[name].do(Handle(self._home), command)

    def machines(self) -> dict[int, Machine]:
        try:
            handle = Handle(self._home)
        except ControlError:
            return {}
        return {node: Machine(_STATES[handle.state(node)]) for node in handle.nodes}

    def links(self) -> dict[str, Json]:
        """Those that are not as they should be, in either direction."""
        links: dict[str, Json] = {}
        try:
            delays = Handle(self._home).faults.delays
        except (ControlError, OSError, ValueError):
            return {}
        for (source, target), delay in delays.items():
            key = f"{min(source, target)}-{max(source, target)}"
            how = {"cut": True} if delay == HELD else {"slow_ms": round(delay * 1000)}
            links.setdefault(key, {}).update(how)
        return links


def _node(command: Command, name: str = "node") -> int:
    return command.number(name, least=0, most=NODE_MAX)


def _kill(handle: Handle, command: Command) -> str:
    node = _node(command)
    handle.kill(node)
    return f"You kill broker {node} with -9: whatever it had not written is gone."


def _stop(handle: Handle, command: Command) -> str:
    node = _node(command)
    handle.stop(node)
    return f"You stop broker {node}: it hands over what it led, and ends."


def _start(handle: Handle, command: Command) -> str:
    node = _node(command)
    handle.start(node, wait=False)
    return f"You start broker {node} with the logs it had."


def _pause(handle: Handle, command: Command) -> str:
    node = _node(command)
    handle.pause(node)
    return f"You pause broker {node}: its process stands still, its connections stay open."


def _resume(handle: Handle, command: Command) -> str:
    node = _node(command)
    handle.resume(node)
    return f"You let broker {node} go on: it does not know yet what happened meanwhile."


def _two(handle: Handle, command: Command) -> tuple[int, int]:
    one, other = _node(command, "one"), _node(command, "other")
    if one == other:
        raise Refused(f"broker {one} has no link to itself")
    for node in (one, other):
        handle.pid(node)  # is there such a node?
    return one, other


def _cut(handle: Handle, command: Command) -> str:
    one, other = _two(handle, command)
    handle.disturb(lambda faults: faults.held(both_ways(one, [other])))
    return f"You cut the link between brokers {one} and {other}: what is sent waits."


def _join(handle: Handle, command: Command) -> str:
    one, other = _two(handle, command)
    handle.disturb(lambda faults: faults.healed(both_ways(one, [other])))
    return f"You join brokers {one} and {other} again."


def _slow(handle: Handle, command: Command) -> str:
    by_ms = command.number("by_ms", least=0, most=SLOW_MS_MAX)
    if "node" in command:
        node = _node(command)
        handle.pid(node)
        pairs = both_ways(node, [other for other in handle.nodes if other != node])
        what = f"everything to and from broker {node}"
    else:
        one, other = _two(handle, command)
        pairs = both_ways(one, [other])
        what = f"the link between brokers {one} and {other}"
    handle.disturb(
        lambda faults: faults.slowed(pairs, by_ms / 1000) if by_ms else faults.healed(pairs)
    )
    if not by_ms:
        return f"You make {what} as fast as before."
    return f"You slow down {what} by {by_ms} ms each way."


PROCESS_ACTS: Final[Mapping[str, Act]] = {
    "kill": Act("kill", _kill),
    "stop": Act("kill", _stop),
    "start": Act("start", _start),
    "pause-node": Act("pause", _pause),
    "resume-node": Act("resume", _resume),
}
LINK_ACTS: Final[Mapping[str, Act]] = {
    "cut": Act("link", _cut),
    "join": Act("link", _join),
    "slow": Act("link", _slow),
}
