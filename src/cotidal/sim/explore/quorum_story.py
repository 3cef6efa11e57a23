"""A way through the quorum's world, in words. Pure.

The states of a symmetric search are renamed on the way; the story is told with the names of its
beginning, by taking the move whose outcome is the next state but for names.
"""

from __future__ import annotations

from cotidal.core.quorum import dialogue as said
from cotidal.sim.explore.quorum_world import FAULT, Kind, QuorumWorld
from cotidal.sim.explore.search import Move, State
from cotidal.sim.explore.voter import (
    VOTERS,
    Answer,
    Ask,
    AskAgain,
    CameBack,
    Event,
    Turn,
    name_of,
    stands,
)
from cotidal.sim.violation import Violation


def story(world: QuorumWorld, path: list[State]) -> list[str]:
    lines: list[str] = []
    state = path[0]
    for wanted in path[1:]:
        move, state_after = next(
            (move, after)
            for move, after in world.plain_moves(state)
            if _is_same(world, after, wanted)
        )
        lines.append(_headline(world, move))
        lines += [f"    {each}" for each in _what_follows(world, state, move)]
        state = state_after
    wrong = world.broken(state)
    return lines if wrong is None else [*lines, f"so: {wrong.sentence}"]


def _is_same(world: QuorumWorld, after: State, wanted: State) -> bool:
    """But for names, those in the words for a fault included."""
    if world.bounds.symmetric:
        after = world.canonical(after)
    return after[:FAULT] == wanted[:FAULT] and bool(after[FAULT]) == bool(wanted[FAULT])


def _what_follows(world: QuorumWorld, before: State, move: Move) -> list[str]:
    turn = Turn(world.thawed(before[move.who]))
    try:
        turn.take(world.events.values[move.what])
    except (AssertionError, Violation) as wrong:
        turn.lines.append(f"breaks a promise: {wrong}")
    sent = [f"sends {_message(each)}" for each in turn.sent]
    who = name_of(VOTERS[move.who])
    return [f"{who}: {each}" for each in (*turn.lines, *sent, stands(turn.voter))]


def _headline(world: QuorumWorld, move: Move) -> str:
    who = f"voter {name_of(VOTERS[move.who])}"
    event = world.events.values[move.what]
    match move.kind:
        case Kind.DELIVER:
            return f"{_message(event)} arrives"
        case Kind.WRITE_DONE:
            return f"what {who} was writing is on its disk"
        case Kind.TIME_OUT:
            return f"the wait of {who} is over"
        case Kind.AGAIN:
            assert isinstance(event, AskAgain)
            return f"{who} asks {name_of(event.peer)} again"
        case Kind.PROPOSE:
            return f"a record is proposed to {who}"
        case _:
            assert isinstance(event, CameBack)
            return f"{who} crashes with {event.done} of its writes done, and starts again"


def _message(message: Event) -> str:
    match message:
        case Ask(sender, to, _, question):
            return f"{_question(question)} from {name_of(sender)} to {name_of(to)}"
        case Answer(sender, to, reply):
            return f"{_reply(reply)} from {name_of(sender)} to {name_of(to)}"
        case _:
            raise AssertionError(message)


def _question(question: said.Question) -> str:
    match question:
        case said.Vote(epoch=epoch, last_epoch=last, end_offset=end, pre_vote=pre_vote):
            name = "pre-vote" if pre_vote else "vote"
            return f"{name} epoch={epoch} last-epoch={last} end={end}"
        case said.BeginEpoch(epoch=epoch):
            return f"begin-epoch {epoch}"
        case said.Fetch(epoch=epoch, offset=offset, last_epoch=last):
            return f"fetch epoch={epoch} offset={offset} last-epoch={last}"
        case _:
            return type(question).__name__


def _reply(reply: said.Reply) -> str:
    refused = f" {reply.error.name}" if reply.error else ""
    match reply:
        case said.VoteReply(granted=granted):
            return f"vote-reply {'granted' if granted else 'not granted'}{refused}"
        case said.FetchReply(diverging=diverging, high_watermark=high_watermark, records=records):
            if diverging is not None:
                return f"fetch-reply diverging epoch={diverging.epoch} end={diverging.end_offset}"
            if isinstance(records, said.FetchedRecords):
                spans = " ".join(f"{each.base_offset}@{each.epoch}" for each in records.batches)
                return f"fetch-reply {spans} hw={high_watermark}"
            return f"fetch-reply hw={high_watermark}{refused}"
        case _:
            return f"{type(reply).__name__} epoch={reply.hint.epoch}{refused}"
