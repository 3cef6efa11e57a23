"""The quorum's world: three voters, everything that can happen to them. Pure.

A state is seven numbers: three voters, what is true (committed, who led, who voted), what may still
happen, the messages under way, and what went wrong.

  a message arrives      in any order; one that never does is lost
  a write is done        whenever it likes; what waits for it leaves then
  a wait is over         any voter's that does not lead: ``timeouts`` times in all
  a peer is asked again  ``again`` times in all; what was asked before may still arrive
  a proposal is made     to whoever leads
  a voter crashes        with any part of the write under way on disk, and starts again at once: one
                         that is down is one that nothing reaches

**Symmetry.** Nothing but a lot tells one voter from another, so of states that differ only in the
voters' names one is looked at: the least. A state is renamed by renaming the ids in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any, Final, NamedTuple

from cotidal.core.quorum.states import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Quorum,
    Resigned,
    Unattached,
)
from cotidal.sim.explore.freezing import Freezer, Table, renamed
from cotidal.sim.explore.ledger import Ledger
from cotidal.sim.explore.parcels import NOTHING, Parcels
from cotidal.sim.explore.quorum_promises import Truth, judge
from cotidal.sim.explore.search import Move, State
from cotidal.sim.explore.voter import (
    FIRST_ID,
    NOBODY_WAITS,
    NOTHING_HEARD,
    VOTERS,
    WAITED_FOR,
    Answer,
    Ask,
    AskAgain,
    CameBack,
    Event,
    Heard,
    Proposed,
    TimedOut,
    Token,
    Turn,
    Voter,
    WriteDone,
    equip,
    put_in_order,
)
from cotidal.sim.violation import Violation
from cotidal.values import NodeId


class Bounds(NamedTuple):
    """How much may happen in all."""

    epochs: int = 2
    proposals: int = 0
    timeouts: int = 2
    again: int = 0
    crashes: int = 1
    symmetric: bool = True


class Left(NamedTuple):
    """How much may still happen."""

    proposals: int
    timeouts: int
    again: int
    crashes: int


class Kind:
    """Of a move."""

    DELIVER: Final = 0
    WRITE_DONE: Final = 1
    TIME_OUT: Final = 2
    AGAIN: Final = 3
    PROPOSE: Final = 4
    CRASH: Final = 5


class Part:
    """Masks of what moves touch; the lowest three bits are the voters."""

    TRUTH: Final = 1 << 3
    PROPOSALS: Final = 1 << 4
    TIMEOUTS: Final = 1 << 5
    AGAIN: Final = 1 << 6
    CRASHES: Final = 1 << 7


TRUE, LEFT, BAG, FAULT = range(3, 7)
"""Places in a state, after the voters."""


class Facts(NamedTuple):
    """What of a voter decides which moves there are."""

    epoch: int
    writes: int
    """How many writes are under way."""
    leads: bool
    waits_for: tuple[NodeId, ...]
    """Peers with an open question."""
    may_ask: tuple[NodeId, ...]
    """Peers that could be asked again."""


class Stepped(NamedTuple):
    """A voter after an event."""

    voter: int
    sent: tuple[int, ...]
    stale: tuple[NodeId, ...]
    heard: int
    fault: int


class QuorumWorld:
    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.events: Table[Event] = Table()
        self.parcels: Parcels[Event] = Parcels(self.events)
        self.facts: list[Facts] = []
        self._freezer = Freezer({Quorum: ("config", "entropy", "voters")})
        self._voters: Table[tuple[object, ...]] = Table()
        self._seen: list[Voter] = []
        self._ledger: Ledger[Truth, Heard] = Ledger(Truth(), NOTHING_HEARD, Truth.after)
        self._lefts: Table[Left] = Table()
        self._steps: dict[tuple[int, int], Stepped] = {}
        self._unawaited: dict[tuple[int, NodeId], int] = {}
        self._stale_bags: dict[tuple[int, NodeId, tuple[NodeId, ...]], int] = {}
        self._judged: dict[tuple[int, ...], Violation | None] = {}
        self._renamings = _renamings()
        self._renamed_voters: dict[tuple[int, int], int] = {}
        self._renamed_messages: dict[tuple[int, int], int] = {}
        self._kinds: dict[int, int] = {}
        self._orders: dict[tuple[int, ...], list[int]] = {}
        self._renamed_truths: dict[tuple[int, int], int] = {}
        self._renamed_bags: dict[tuple[int, int], int] = {}

    # what a search asks

    def first(self) -> State:
        voters = []
        for node_id in VOTERS:
            voter = Voter(node_id)
            Turn(voter).take(CameBack(0))
            Turn(voter).take(WriteDone())
            voters.append(self._voter_number(voter))
        bounds = self.bounds
        left = Left(bounds.proposals, bounds.timeouts, bounds.again, bounds.crashes)
        return (*voters, 0, self._lefts.number(left), 0, 0)

    def moves(self, state: State) -> Iterator[tuple[Move, State]]:
        is_symmetric = self.bounds.symmetric
        for move, after in self.plain_moves(state):
            yield move, self.canonical(after) if is_symmetric else after

    def plain_moves(self, state: State) -> Iterator[tuple[Move, State]]:
        """Nobody renamed."""
        epochs = self.bounds.epochs
        for move, after in self._all_moves(state):
            if self.facts[after[move.who]].epoch <= epochs:
                yield move, after

    def broken(self, state: State) -> Violation | None:
        if state[FAULT]:
            return self._ledger.violation(state[FAULT])
        key = state[:LEFT]
        if key not in self._judged:
            self._judged[key] = None
            try:
                judge(
                    tuple(self._seen[number] for number in state[:3]),
                    self._ledger.truths.values[state[TRUE]],
                )
            except Violation as wrong:
                self._judged[key] = wrong
        return self._judged[key]

    # moves

    def _all_moves(self, state: State) -> Iterator[tuple[Move, State]]:
        left = self._lefts.values[state[LEFT]]
        for number in dict.fromkeys(self.parcels.held(state[BAG])):
            message = self.events.values[number]
            assert isinstance(message, Ask | Answer)
            place = _place(message.to)
            move = Move(Kind.DELIVER, place, number, 1 << place)
            yield self._stepped(state, move, number, without=number)
        for place in range(3):
            facts, mine = self.facts[state[place]], 1 << place
            if facts.writes:
                event = self.events.number(WriteDone())
                yield self._stepped(state, Move(Kind.WRITE_DONE, place, event, mine), event)
            if left.timeouts and not facts.leads:
                event = self.events.number(TimedOut())
                move = Move(Kind.TIME_OUT, place, event, mine | Part.TIMEOUTS)
                spent = left._replace(timeouts=left.timeouts - 1)
                yield self._spent(self._stepped(state, move, event), spent)
            if left.proposals and facts.leads:
                value = f"v{self.bounds.proposals - left.proposals + 1}"
                event = self.events.number(Proposed(value))
                move = Move(Kind.PROPOSE, place, event, mine | Part.PROPOSALS)
                spent = left._replace(proposals=left.proposals - 1)
                yield self._spent(self._stepped(state, move, event), spent)
            if left.again:
                spent = left._replace(again=left.again - 1)
                for peer in facts.may_ask:
                    event = self.events.number(AskAgain(peer))
                    move = Move(Kind.AGAIN, place, event, mine | Part.AGAIN)
                    yield self._spent(self._stepped(state, move, event), spent)
            if left.crashes:
                spent = left._replace(crashes=left.crashes - 1)
                for done in range(facts.writes + 1):
                    event = self.events.number(CameBack(done))
                    move = Move(Kind.CRASH, place, event, mine | Part.CRASHES)
                    yield self._spent(self._stepped(state, move, event), spent)

    def _spent(self, moved: tuple[Move, State], left: Left) -> tuple[Move, State]:
        move, after = moved
        return move, (*after[:LEFT], self._lefts.number(left), *after[BAG:])

    def _stepped(
        self, state: State, move: Move, event: int, *, without: int = NOTHING
    ) -> tuple[Move, State]:
        place = move.who
        voter, sent, stale, heard, fault = self._step(state[place], event)
        truth = state[TRUE]
        if heard:
            truth, wrong = self._ledger.learned(truth, heard)
            fault = fault or wrong
            move = move._replace(touches=move.touches | Part.TRUTH)
        voters = [*state[:TRUE]]
        voters[place] = voter
        bag = self.parcels.changed(state[BAG], without=without)
        if stale:
            node_id = VOTERS[place]
            bag = self._without_answers(bag, node_id, stale)
            for peer in stale:
                other = _place(peer)
                voters[other] = self._unawaited_by(voters[other], node_id)
                move = move._replace(touches=move.touches | 1 << other)
        if sent:
            sent = tuple([each for each in sent if self._can_matter(voters, each)])
            bag = self.parcels.changed(bag, sent=sent)
        if self.facts[voter].epoch != self.facts[state[place]].epoch:
            bag = self._without_past(bag, place, self.facts[voter].epoch)
        return move, (*voters, truth, state[LEFT], bag, fault)

    def _step(self, number: int, event: int) -> Stepped:
        key = (number, event)
        known = self._steps.get(key)
        if known is None:
            known = self._steps[key] = self._take(number, self.events.values[event])
        return known

    def _take(self, number: int, event: Event) -> Stepped:
        voter = self.thawed(number)
        turn = Turn(voter)
        try:
            heard = turn.take(event)
        except (AssertionError, Violation) as wrong:
            return Stepped(number, (), (), 0, self._ledger.fault(wrong))
        return Stepped(
            self._voter_number(voter),
            tuple(self.events.number(message) for message in turn.sent),
            tuple(turn.stale),
            self._ledger.heard.number(heard),
            0,
        )

    # what is waited for no more

    def _can_matter(self, voters: list[int], number: int) -> bool:
        """A question of an earlier epoch changes nothing but through its answer; an answer to a
        question that is waited for no more changes nothing."""
        message = self.events.values[number]
        assert isinstance(message, Ask | Answer)
        facts = self.facts[voters[_place(message.to)]]
        if isinstance(message, Answer):
            return message.sender in facts.waits_for
        return message.ask == WAITED_FOR or _epoch_of(message) >= facts.epoch

    def _without_past(self, bag: int, place: int, epoch: int) -> int:
        return self.parcels.kept(
            bag,
            (place, epoch),
            lambda message: (
                not isinstance(message, Ask)
                or message.to != VOTERS[place]
                or message.ask == WAITED_FOR
                or _epoch_of(message) >= epoch
            ),
        )

    def _without_answers(self, bag: int, asker: NodeId, peers: tuple[NodeId, ...]) -> int:
        """The questions stay; nobody waits for their answers."""
        key = (bag, asker, peers)
        known = self._stale_bags.get(key)
        if known is None:
            held: list[int] = []
            for number in self.parcels.held(bag):
                message = self.events.values[number]
                assert isinstance(message, Ask | Answer)
                if isinstance(message, Answer):
                    if message.to != asker or message.sender not in peers:
                        held.append(number)
                elif message.sender == asker and message.to in peers:
                    held.append(self.events.number(message._replace(ask=NOBODY_WAITS)))
                else:
                    held.append(number)
            known = self._stale_bags[key] = self.parcels.bag_of(held)
        return known

    def _unawaited_by(self, number: int, asker: NodeId) -> int:
        """This voter still has a question of the asker's, who no longer waits."""
        key = (number, asker)
        known = self._unawaited.get(key)
        if known is None:
            before, after = Token(asker, WAITED_FOR), Token(asker, NOBODY_WAITS)
            freeze = self._freezer.freeze
            frozen = _replaced(self._voters.values[number], freeze(before), freeze(after))
            known = self._unawaited[key] = self._number(frozen)
        return known

    # symmetry

    def canonical(self, state: State) -> State:
        """The least of the states that are this one but for names.

        Voters that would be different under any names are put in order first, so that few ways to
        call them are left to be compared.
        """
        kinds = tuple([self._kind(number) for number in state[:3]])
        orders = self._orders.get(kinds)
        if orders is None:
            ways = range(len(self._renamings))
            least = min(self._ordered(kinds, way) for way in ways)
            orders = [way for way in ways if self._ordered(kinds, way) == least]
            self._orders[kinds] = orders
        if len(orders) == 1:
            return self._renamed(state, orders[0])
        return min([self._renamed(state, way) for way in orders])

    def renamings_of(self, state: State) -> list[State]:
        """The state under all names."""
        return [self._renamed(state, way) for way in range(len(self._renamings))]

    def _kind(self, voter: int) -> int:
        """Equal for voters that are the same under some names."""
        known = self._kinds.get(voter)
        if known is None:
            ways = range(len(self._renamings))
            known = self._kinds[voter] = min(self._renamed_voter(voter, way) for way in ways)
        return known

    def _ordered(self, kinds: tuple[int, ...], way: int) -> list[int]:
        names, ordered = self._renamings[way], [0, 0, 0]
        for place, kind in enumerate(kinds):
            ordered[names[FIRST_ID + place] - FIRST_ID] = kind
        return ordered

    def _renamed_voter(self, voter: int, way: int) -> int:
        key = (voter, way)
        known = self._renamed_voters.get(key)
        if known is None:
            frozen = renamed(self._voters.values[voter], self._renamings[way])
            twin = self._thaw(frozen)
            put_in_order(twin)
            known = self._renamed_voters[key] = self._voter_number(twin)
        return known

    def _renamed(self, state: State, way: int) -> State:
        if not way:
            return state
        names = self._renamings[way]
        voters = [0, 0, 0]
        for place in range(3):
            voter = self._renamed_voter(state[place], way)
            voters[names[FIRST_ID + place] - FIRST_ID] = voter
        key = (state[TRUE], way)
        truth = self._renamed_truths.get(key)
        if truth is None:
            known = renamed(self._ledger.truths.values[state[TRUE]], names)
            sorted_truth = Truth(
                known.committed, tuple(sorted(known.leaders)), tuple(sorted(known.votes))
            )
            truth = self._renamed_truths[key] = self._ledger.truths.number(sorted_truth)
        key = (state[BAG], way)
        bag = self._renamed_bags.get(key)
        if bag is None:
            held = [self._renamed_message(each, way) for each in self.parcels.held(state[BAG])]
            bag = self._renamed_bags[key] = self.parcels.bag_of(held)
        return (*voters, truth, state[LEFT], bag, state[FAULT])

    def _renamed_message(self, message: int, way: int) -> int:
        key = (message, way)
        known = self._renamed_messages.get(key)
        if known is None:
            value = renamed(self.events.values[message], self._renamings[way])
            known = self._renamed_messages[key] = self.events.number(value)
        return known

    # numbers

    def thawed(self, number: int) -> Voter:
        return self._thaw(self._voters.values[number])

    def _thaw(self, frozen: tuple[object, ...]) -> Voter:
        voter = self._freezer.thaw(frozen)
        assert isinstance(voter, Voter)
        equip(voter)
        return voter

    def _voter_number(self, voter: Voter) -> int:
        return self._number(self._freezer.freeze(voter))

    def _number(self, frozen: tuple[object, ...]) -> int:
        number = self._voters.number(frozen)
        if number == len(self.facts):
            voter = self.thawed(number)
            self._seen.append(voter)
            self.facts.append(_facts_of(voter))
        return number


def _facts_of(voter: Voter) -> Facts:
    quorum = voter.quorum
    role = quorum.role
    match role:
        case Prospective() | Candidate() | Resigned():
            may_ask = tuple(role.ask_at)
        case Follower():
            may_ask = (quorum.leader_id,)
        case Leader():
            may_ask = quorum.other_voters[:1]  # it tells all who leads
        case Unattached():
            may_ask = ()
    return Facts(
        epoch=quorum.epoch,
        writes=0 if voter.writing is None else len(voter.writing.writes),
        leads=isinstance(role, Leader),
        waits_for=tuple(quorum.asks),
        may_ask=may_ask,
    )


def _place(node_id: NodeId) -> int:
    return node_id - FIRST_ID


def _epoch_of(message: Ask) -> int:
    epoch = getattr(message.question, "epoch", 0)
    assert isinstance(epoch, int)
    return epoch


def _renamings() -> list[dict[int, int]]:
    """All ways to call the voters; the first leaves everybody his name."""
    return [dict(zip(VOTERS, names, strict=True)) for names in permutations(VOTERS)]


def _replaced(value: Any, old: tuple[object, ...], new: tuple[object, ...]) -> Any:
    """A frozen value with one part in the place of another."""
    if value == old:
        return new
    if not isinstance(value, tuple):
        return value
    return tuple.__new__(type(value), [_replaced(each, old, new) for each in value])
