"""A way through the partition's world, in words. Pure.

One line for each move, then what the machines said and where they stand, as in every trace.
"""

from __future__ import annotations

from itertools import pairwise

from cotidal.core.trace import line
from cotidal.sim.explore.replica_broker import Turn, stands
from cotidal.sim.explore.replica_controller import REPLICAS
from cotidal.sim.explore.replica_events import (
    Ask,
    Crashed,
    Event,
    FellBehind,
    Propose,
    Reply,
    Verdict,
)
from cotidal.sim.explore.replica_world import CONTROLLER, DECIDED, Kind, ReplicaWorld
from cotidal.sim.explore.search import Move, State
from cotidal.sim.violation import Violation


def story(world: ReplicaWorld, path: list[State]) -> list[str]:
    lines: list[str] = []
    for before, after in pairwise(path):
        move = next(move for move, found in world.moves(before) if found == after)
        lines.append(_headline(world, before, move))
        lines += [f"    {each}" for each in _what_follows(world, before, after, move)]
    wrong = world.broken(path[-1])
    return lines if wrong is None else [*lines, f"so: {wrong.sentence}"]


def _what_follows(world: ReplicaWorld, before: State, after: State, move: Move) -> list[str]:
    said: list[str] = []
    if before[DECIDED] != after[DECIDED]:
        decided = world.decided.values[after[DECIDED]]
        partition = decided.partition
        said.append(
            f"controller: version={decided.version} leader={partition.leader}"
            f" epoch={partition.leader_epoch} isr={partition.isr} elr={partition.elr}"
        )
    match move.kind:
        case Kind.FETCH | Kind.FETCH_LATE:
            facts = world.facts[before[move.who]]
            turn = _turn(world, before[facts.leader], world.events.values[facts.asks])
            said += _lines_of(turn)
            replies = [each for each in turn.sent if isinstance(each, Reply)]
            if move.kind == Kind.FETCH:
                for reply in replies:
                    said += _lines_of(_turn(world, before[move.who], reply))
        case Kind.APPLY:
            facts = world.facts[before[move.who]]
            told = world.decided.values[before[DECIDED]].told(
                applied=facts.applied, version=move.what, min_isr=world.bounds.min_isr
            )
            said += _lines_of(_turn(world, before[move.who], told))
        case Kind.FENCE | Kind.UNFENCE | Kind.ASK_LATE:
            pass
        case _:
            if move.who != CONTROLLER:
                said += _lines_of(_turn(world, before[move.who], world.events.values[move.what]))
    return said


def _turn(world: ReplicaWorld, number: int, event: Event) -> Turn:
    """The step once more, for its words."""
    turn = Turn(world.thawed(number))
    try:
        turn.take(event)
    except (AssertionError, Violation) as wrong:
        turn.lines.append(f"breaks a promise: {wrong}")
    return turn


def _lines_of(turn: Turn) -> list[str]:
    broker = turn.broker
    return [f"{broker.node_id}: {each}" for each in (*turn.lines, stands(broker))]


def _headline(world: ReplicaWorld, before: State, move: Move) -> str:
    who = f"broker {REPLICAS[move.who]}" if move.who < CONTROLLER else "the controller"
    match move.kind:
        case Kind.DELIVER:
            return _arrival(world.events.values[move.what])
        case Kind.FETCH | Kind.FETCH_LATE | Kind.ASK_LATE:
            ask = world.events.values[world.facts[before[move.who]].asks]
            assert isinstance(ask, Ask)
            asked = f"{who} asks broker {ask.to}: {line(ask.question)}"
            late = {Kind.ASK_LATE: "; this is late", Kind.FETCH_LATE: "; the answer is late"}
            return asked + late.get(move.kind, "")
        case Kind.WRITE:
            return f"a producer writes at {who}, acks=all"
        case Kind.APPLY:
            return f"{who} applies metadata up to version {move.what}"
        case Kind.SHRINK:
            event = world.events.values[move.what]
            assert isinstance(event, FellBehind)
            return f"{who} finds {event.members} behind for too long"
        case Kind.RESEND:
            return f"{who} proposes the same once more"
        case Kind.FENCE:
            return f"the controller fences {who}"
        case Kind.UNFENCE:
            return f"the controller lets {who} take part"
        case Kind.CRASH:
            event = world.events.values[move.what]
            assert isinstance(event, Crashed)
            end = world.facts[before[move.who]].end
            return f"{who} crashes; {event.keeps} of its {end} records are kept"
        case _:
            return f"{who} starts again and registers"


def _arrival(message: Event) -> str:
    match message:
        case Ask(sender, _, to):
            return f"a late question of broker {sender} arrives at broker {to}"
        case Reply(to, _, answer):
            return f"an answer arrives at broker {to}: {line(answer)}"
        case Propose(sender, _, proposal):
            return f"the proposal of broker {sender} arrives at the controller: {line(proposal)}"
        case Verdict(to, _, verdict):
            return f"the controller's answer arrives at broker {to}: {line(verdict)}"
        case _:
            raise AssertionError(message)
