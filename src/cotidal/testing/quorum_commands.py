"""The words in which a script speaks to a quorum_world. Shipped.

quorum voters= [observers= spares= played= static=yes snapshot-every= down=yes elected=yes]
                           formatted nodes; they start at once unless they are down. observers are
                           brokers, spares controllers that do not vote yet. elected: the story
                           begins when they have a leader. played: nodes without a machine
disk node= log=(1,1,2) [epoch= leader= voted=]  what a node that is down has: the epoch of each
                           record, and its quorum-state file
start node= [wiped=yes]; kill node=; stop node= wiped: on a new disk, which is another directory
cut node=; heal node=      a node that nobody hears and that hears nobody
hold node=; release node= [once=yes]            its disk: nothing is written until it is released;
                           once: only what it was given first
propose VALUE... [to=]     records for the log, from the controller above
add-voter node=; remove-voter node=             asked of the leader
vote for= of= epoch= [log=END@EPOCH pre=yes]    a question made by hand
fetch by= of= offset=END@EPOCH                  the same: by has everything below END
grant by= to=              a node that is played votes for the one who asked
tick TIME; log; records    ranges and epochs; what is in them
votes                      what each node has on its disk about elections
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from cotidal.core.quorum import dialogue as say
from cotidal.core.quorum import events as seen
from cotidal.core.quorum.effects import VotersChanged
from cotidal.core.quorum.log_view import LogEnd
from cotidal.core.quorum.states import QuorumConfig
from cotidal.core.quorum.voters import VoterSet, key_of
from cotidal.core.trace import line
from cotidal.core.trace.told import node as named
from cotidal.core.trace.told import span
from cotidal.errors import ErrorCode
from cotidal.messages.records.quorum import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    QuorumStateData,
    VotersRecord,
    VotersRecordVoter,
)
from cotidal.testing.quorum_disk import Batch
from cotidal.testing.quorum_world import (
    BOTH_VERSIONS,
    Machine,
    QuorumWorld,
    directory,
    formatted,
    voter_set,
)
from cotidal.testing.scripts import Command, ScriptError, milliseconds
from cotidal.values import NO_NODE, ZERO_UUID, LeaderEpoch, NodeId, Offset

ELECTED_WITHIN_MS: Final = 300
"""Nodes that have each other need a round of questions, a round of votes, and their rank."""


class QuorumCommands:
    """A world that is spoken to in commands."""

    def __init__(self) -> None:
        self.world = QuorumWorld()

    def obey(self, command: Command) -> list[str]:
        on_command = COMMANDS.get(command.name)
        if on_command is None:
            raise ScriptError(f"there is no command '{command.name}'")
        self.world.begin()
        on_command(self.world, command)
        command.finish()
        return self.world.told()


def on_quorum(world: QuorumWorld, command: Command) -> None:
    voters = command.numbers("voters")
    observers = command.numbers("observers", ())
    spares = command.numbers("spares", ())
    played = command.numbers("played", ())
    is_static = command.text_of("static", "no") == "yes"
    every = command.number("snapshot-every", 1 << 40)
    in_force = voter_set(voters)
    unknown = VoterSet(
        tuple(VotersRecordVoter(each, ZERO_UUID, (), BOTH_VERSIONS) for each in voters)
    )
    for number in (*voters, *spares, *observers):
        config = QuorumConfig(
            NodeId(number),
            directory(number),
            voters=unknown if is_static else VoterSet(),
            bootstrap=tuple((NodeId(each), ()) for each in voters),
            can_vote=number not in observers,
            snapshot_after_bytes=every,
        )
        machine = world.machines[NodeId(number)] = Machine(config)
        if number in voters and not is_static:
            formatted(machine.disk, in_force)
        machine.is_played = number in played
        machine.last_voters = VotersChanged(in_force, 0 if is_static else 1)
    if command.text_of("down", "no") == "yes":
        return
    for machine in world.machines.values():
        world.start(machine)
    if command.text_of("elected", "no") == "yes":
        world.tick(ELECTED_WITHIN_MS)
        world.begin()


def on_disk(world: QuorumWorld, command: Command) -> None:
    machine = world.machine(command.number("node"))
    epochs = command.numbers("log", ())
    machine.disk.batches = [
        Batch(Offset(place), LeaderEpoch(epoch), (f"e{epoch}",))
        for place, epoch in enumerate(epochs)
    ]
    voted = command.number("voted", -1)
    machine.disk.state = QuorumStateData(
        leader_id=command.number("leader", -1),
        leader_epoch=command.number("epoch", max(epochs, default=0)),
        voted_id=voted,
        voted_directory_id=ZERO_UUID if voted < 0 else directory(voted),
    )


def on_start(world: QuorumWorld, command: Command) -> None:
    machine = world.machine(command.number("node"))
    if command.text_of("wiped", "no") == "yes":
        fresh = Machine(machine.config._replace(directory_id=directory(machine.id, 7)))
        fresh.life = machine.life
        machine = world.machines[machine.id] = fresh
    world.start(machine)


def on_kill(world: QuorumWorld, command: Command) -> None:
    world.kill(world.machine(command.number("node")))


def on_stop(world: QuorumWorld, command: Command) -> None:
    world.step(world.machine(command.number("node")), seen.ShutdownAsked())
    world.run()


def on_cut(world: QuorumWorld, command: Command) -> None:
    world.machine(command.number("node")).is_cut = True


def on_heal(world: QuorumWorld, command: Command) -> None:
    world.machine(command.number("node")).is_cut = False
    world.tell_connections()
    world.run()


def on_hold(world: QuorumWorld, command: Command) -> None:
    world.machine(command.number("node")).is_held = True


def on_release(world: QuorumWorld, command: Command) -> None:
    machine = world.machine(command.number("node"))
    machine.is_held = False
    world.write(machine)
    machine.is_held = command.text_of("once", "no") == "yes"
    world.run()


def on_propose(world: QuorumWorld, command: Command) -> None:
    to = command.number("to", -1)
    machine = world.leader() if to < 0 else world.machine(to)
    world.propose(machine, tuple(command.words))


def on_add_voter(world: QuorumWorld, command: Command) -> None:
    added = world.machine(command.number("node"))
    world.ask_by_hand(world.leader(), say.AddVoter(added.key, (), BOTH_VERSIONS, 5_000))


def on_remove_voter(world: QuorumWorld, command: Command) -> None:
    leader = world.leader()
    found = world.living(leader).state.voter_set.find(NodeId(command.number("node")))
    if found is None:
        raise ScriptError("it does not vote")
    world.ask_by_hand(leader, say.RemoveVoter(key_of(found), 5_000))


def on_vote(world: QuorumWorld, command: Command) -> None:
    machine = world.machine(command.number("of"))
    candidate = world.machine(command.number("for"))
    reach = _reach(command.text_of("log", "0@0"))
    question = say.Vote(
        candidate.key,
        machine.key,
        LeaderEpoch(command.number("epoch")),
        reach.epoch,
        reach.end_offset,
        command.text_of("pre", "no") == "yes",
    )
    world.tell(machine, f"asked {line(question)}")
    world.ask_by_hand(machine, question)


def on_fetch(world: QuorumWorld, command: Command) -> None:
    machine = world.machine(command.number("of"))
    reach = _reach(command.text_of("offset"))
    asker = world.machine(command.number("by"))
    epoch = world.living(machine).state.epoch
    fetch = say.Fetch(asker.key, epoch, reach.end_offset, reach.epoch, Offset(0), 0)
    world.tell(machine, f"asked {line(fetch)}")
    world.ask_by_hand(machine, fetch)


def on_grant(world: QuorumWorld, command: Command) -> None:
    machine, peer = world.machine(command.number("to")), world.machine(command.number("by"))
    epoch = world.living(machine).state.epoch
    reply = say.VoteReply(ErrorCode.NONE, say.Hint(NO_NODE, epoch), granted=True)
    world.answer_by_hand(machine, peer, reply)


def on_tick(world: QuorumWorld, command: Command) -> None:
    world.tick(milliseconds(command.words[0]))


def on_log(world: QuorumWorld, command: Command) -> None:
    for _, machine in sorted(world.machines.items()):
        runs: list[list[int]] = []
        for batch in machine.disk.batches:
            last = batch.next_offset - 1
            if runs and runs[-1][2] == batch.epoch:
                runs[-1][1] = last
            else:
                runs.append([batch.base_offset, last, batch.epoch])
        ranges = " ".join(f"{span(first, last)}@{epoch}" for first, last, epoch in runs)
        start = f"snapshot below {machine.disk.start} " if machine.disk.start else ""
        world.tell(machine, f"{start}{ranges}".strip() or "empty")


def on_records(world: QuorumWorld, command: Command) -> None:
    for _, machine in sorted(world.machines.items()):
        told = [f"{offset}={_record(record)}" for offset, record in machine.disk.records()]
        world.tell(machine, " ".join(told) or "empty")


def on_votes(world: QuorumWorld, command: Command) -> None:
    for _, machine in sorted(world.machines.items()):
        state = machine.disk.state
        if state is None:
            world.tell(machine, "nothing")
        else:
            leader, voted = named(state.leader_id), named(state.voted_id)
            world.tell(machine, f"epoch={state.leader_epoch} leader={leader} voted={voted}")


def _reach(text: str) -> LogEnd:
    end, _, epoch = text.partition("@")
    return LogEnd(LeaderEpoch(int(epoch)), Offset(int(end)))


def _record(record: object) -> str:
    if isinstance(record, LeaderChangeMessage | KRaftVersionRecord | VotersRecord):
        return f"({line(record)})"
    return str(record)


COMMANDS: Final[Mapping[str, Callable[[QuorumWorld, Command], None]]] = {
    "quorum": on_quorum,
    "disk": on_disk,
    "start": on_start,
    "kill": on_kill,
    "stop": on_stop,
    "cut": on_cut,
    "heal": on_heal,
    "hold": on_hold,
    "release": on_release,
    "propose": on_propose,
    "add-voter": on_add_voter,
    "remove-voter": on_remove_voter,
    "vote": on_vote,
    "fetch": on_fetch,
    "grant": on_grant,
    "tick": on_tick,
    "log": on_log,
    "records": on_records,
    "votes": on_votes,
}
