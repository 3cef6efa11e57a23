"""The partition's world: three replicas and a controller, everything that can happen to them. Pure.

A state is eight numbers: three brokers, what the controller has decided, what is true (committed,
acknowledged), what may still happen, the messages under way, and what went wrong.

  a follower fetches       and is answered from what the leader holds then, all at once; but
                           ``late`` times in all the question or the answer takes its time
  a message arrives        in any order; one that never does is lost
  a producer writes        at whoever takes itself for the leader, acks=all
  metadata is applied      any number of versions at once, at each broker in its own time; at once
                           where it changes nothing for the broker's replica
  a member falls behind    any of those that are not at the leader's end
  a broker is fenced       dead or alive; it comes back when it has heard of its registration
  a broker crashes         its log keeps everything, or (``lossy``) any part; it restarts when it
                           likes, as a new incarnation

What could not change anything any more is not kept under way: answers of an earlier epoch than
their receiver's, refusals that only ask for patience, proposals that the controller has overtaken.
``decisions`` bounds how often the controller decides in all, healing included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Final, NamedTuple

from cotidal.core.partition.isr import out_of_sync
from cotidal.sim.explore import replica_controller as desk
from cotidal.sim.explore.freezing import Freezer, Table
from cotidal.sim.explore.ledger import Ledger
from cotidal.sim.explore.parcels import NOTHING, Parcels
from cotidal.sim.explore.replica_bounds import Bounds, Left
from cotidal.sim.explore.replica_broker import NOW, Broker, Turn, asks
from cotidal.sim.explore.replica_controller import REPLICAS, Decided, Desk
from cotidal.sim.explore.replica_events import (
    NOTHING_HEARD,
    Ask,
    Asking,
    Crashed,
    Event,
    FellBehind,
    Heard,
    Propose,
    Reply,
    Restarted,
    Verdict,
    Written,
)
from cotidal.sim.explore.replica_mail import (
    NEVER_AGAIN,
    Facts,
    asks_patience,
    concerns,
    is_open,
    receiver,
)
from cotidal.sim.explore.replica_promises import Seen, Truth, judge
from cotidal.sim.explore.search import Move, State
from cotidal.sim.violation import Violation
from cotidal.values import NO_EPOCH, BrokerEpoch, NodeId


class Kind:
    """Of a move."""

    DELIVER: Final = 0
    FETCH: Final = 1
    ASK_LATE: Final = 2
    WRITE: Final = 3
    APPLY: Final = 4
    SHRINK: Final = 5
    RESEND: Final = 6
    FENCE: Final = 7
    UNFENCE: Final = 8
    CRASH: Final = 9
    RESTART: Final = 10
    FETCH_LATE: Final = 11


class Part:
    """Masks of what moves touch; the lowest three bits are the brokers."""

    CONTROLLER: Final = 1 << 3
    """Brokers apply at once what changes nothing for them: a decision touches ALL."""
    TRUTH: Final = 1 << 4
    RECORDS: Final = 1 << 5
    CRASHES: Final = 1 << 6
    FENCES: Final = 1 << 7
    SHRINKS: Final = 1 << 8
    LATE: Final = 1 << 9
    RESENDS: Final = 1 << 10
    ALL: Final = (1 << 11) - 1


DECIDED, TRUE, LEFT, BAG, FAULT = range(3, 8)
"""Places in a state, after the brokers."""

CONTROLLER: Final = 3
"""``who`` of a move that is the controller's."""


class Stepped(NamedTuple):
    """A broker after an event."""

    broker: int
    sent: tuple[int, ...]
    heard: int
    fault: int


class ReplicaWorld:
    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.events: Table[Event] = Table()
        self.decided: Table[Decided] = Table()
        self.parcels: Parcels[Event] = Parcels(self.events)
        self.facts: list[Facts] = []
        self._desk = Desk(min_isr=bounds.min_isr)
        self._freezer = Freezer()
        self._brokers: Table[tuple[object, ...]] = Table()
        self._seen: list[Seen] = []
        self._ledger: Ledger[Truth, Heard] = Ledger(Truth(), NOTHING_HEARD, Truth.after)
        self._lefts: Table[Left] = Table()
        self._steps: dict[tuple[int, int], Stepped] = {}
        self._tellings: dict[tuple[int, int, int], int] = {}
        self._decisions: dict[tuple[int, ...], int] = {}
        self._verdicts: dict[tuple[int, int], tuple[int, tuple[int, ...], int]] = {}
        self._caught_up_of: dict[tuple[int, int], int] = {}
        self._judged: dict[tuple[int, ...], Violation | None] = {}

    # what a search asks

    def first(self) -> State:
        decided = self.decided.number(desk.first())
        brokers = []
        for node_id in REPLICAS:
            broker = Broker(node_id, BrokerEpoch(0))
            Turn(broker).take(self.restart(decided))
            brokers.append(self._broker_number(broker))
        return (*brokers, decided, 0, self._lefts.number(Left.of(self.bounds)), 0, 0)

    def moves(self, state: State) -> Iterator[tuple[Move, State]]:
        is_eager = self.bounds.eager
        for move, after in self._all_moves(state):
            yield move, self._settled(after) if is_eager else after

    def broken(self, state: State) -> Violation | None:
        if state[FAULT]:
            return self._ledger.violation(state[FAULT])
        key = state[:LEFT]
        if key not in self._judged:
            seen = tuple([self._seen[number] for number in state[:3]])
            decided = self.decided.values[key[DECIDED]]
            truth = self._ledger.truths.values[key[TRUE]]
            self._judged[key] = None
            try:
                judge(seen, decided, truth)
            except Violation as wrong:
                self._judged[key] = wrong
        return self._judged[key]

    def _all_moves(self, state: State) -> Iterator[tuple[Move, State]]:
        left = self._lefts.values[state[LEFT]]
        version = self.decided.values[state[DECIDED]].version
        for number in dict.fromkeys(self.parcels.held(state[BAG])):
            yield from self._delivered(state, number)
        for place in range(3):
            facts = self.facts[state[place]]
            if facts.is_up:
                yield from self._replicated(state, place, facts, left)
                if facts.leads:
                    yield from self._led(state, place, facts, left)
                for later in range(facts.applied + 1, version + 1):
                    event = self._telling(state[DECIDED], facts.applied, later)
                    move = Move(Kind.APPLY, place, later, 1 << place)
                    yield self._stepped(state, place, event, move)
                if left.crashes:
                    yield from self._crashed(state, place, facts, left)
            elif version < self.bounds.decisions:
                yield self._restarted(state, place)
            if version < self.bounds.decisions:
                yield from self._controlled(state, place, facts, left)

    def _settled(self, state: State) -> State:
        """Metadata that changes nothing for a replica is applied: it may as well have been."""
        version = self.decided.values[state[DECIDED]].version
        for place in range(3):
            facts = self.facts[state[place]]
            if facts.applied < version and facts.is_up:
                broker = self._caught_up(state[place], state[DECIDED])
                if broker != state[place]:
                    state = _with(state, place, broker)
        return state

    def _caught_up(self, number: int, decided: int) -> int:
        key = (number, decided)
        known = self._caught_up_of.get(key)
        if known is None:
            known = number
            while self.facts[known].applied < self.decided.values[decided].version:
                applied = self.facts[known].applied
                after = self._step(known, self._telling(decided, applied, applied + 1)).broker
                broker = self.thawed(after)
                broker.applied = applied
                if self.frozen(broker) != self._brokers.values[known]:
                    break
                known = after
            self._caught_up_of[key] = known
        return known

    # messages

    def _delivered(self, state: State, number: int) -> Iterator[tuple[Move, State]]:
        message = self.events.values[number]
        if isinstance(message, Propose):
            yield from self._proposed(state, number, message)
            return
        place = REPLICAS.index(receiver(message))
        move = Move(Kind.DELIVER, place, number, 1 << place)
        yield self._stepped(state, place, number, move, without=number)

    def _proposed(
        self, state: State, number: int, message: Propose
    ) -> Iterator[tuple[Move, State]]:
        key = (state[DECIDED], number)
        known = self._verdicts.get(key)
        if known is None:
            known = self._verdicts[key] = self._verdict(state[DECIDED], message)
        decided, sent, fault = known
        if self.decided.values[decided].version > self.bounds.decisions:
            return
        arriving = self._arriving(state, sent)
        bag = self.parcels.changed(state[BAG], without=number, sent=arriving)
        move = Move(Kind.DELIVER, CONTROLLER, number, Part.ALL)
        yield move, self._redecided((*state[:BAG], bag, fault), decided)

    def _verdict(self, decided: int, message: Propose) -> tuple[int, tuple[int, ...], int]:
        try:
            after, answer = self._desk.propose(self.decided.values[decided], message)
        except (AssertionError, Violation) as wrong:
            return decided, (), self._ledger.fault(wrong)
        verdict = self.events.number(Verdict(message.sender, message.life, answer))
        return self.decided.number(after), (verdict,), 0

    def _arriving(self, state: State, sent: tuple[int, ...]) -> tuple[int, ...]:
        return tuple([each for each in sent if self._can_matter(state, self.events.values[each])])

    def _can_matter(self, state: State, message: Event) -> bool:
        """Whoever is down or in another life is not connected, and what is over is over."""
        if isinstance(message, Propose):
            return is_open(message, self.decided.values[state[DECIDED]])
        assert isinstance(message, Ask | Reply | Verdict)
        facts = self.facts[state[REPLICAS.index(message.to)]]
        return facts.is_up and concerns(message, facts)

    # followers

    def _replicated(
        self, state: State, place: int, facts: Facts, left: Left
    ) -> Iterator[tuple[Move, State]]:
        if facts.asks == NOTHING or not self.facts[state[facts.leader]].is_up:
            return
        both = 1 << place | 1 << facts.leader
        yield from self._fetched(state, place, facts, Move(Kind.FETCH, place, 0, both), left)
        if left.late and self._can_matter(state, self.events.values[facts.asks]):
            spent = self._lefts.number(left._replace(late=left.late - 1))
            bag = self.parcels.changed(state[BAG], sent=(facts.asks,))
            move = Move(Kind.ASK_LATE, place, 0, both | Part.LATE)
            yield move, (*state[:LEFT], spent, bag, 0)

    def _fetched(
        self, state: State, place: int, facts: Facts, move: Move, left: Left
    ) -> Iterator[tuple[Move, State]]:
        stepped = self._step(state[facts.leader], facts.asks)
        answers = [each for each in stepped.sent if self._is_answer(each)]
        others = tuple([each for each in stepped.sent if each not in answers])
        move, asked = self._after(state, facts.leader, stepped._replace(sent=others), move)
        after = asked
        for answer in answers:
            _, after = self._stepped(asked, place, answer, move)
        if after != state:
            yield move, after
        if left.late and answers:
            spent = self._lefts.number(left._replace(late=left.late - 1))
            bag = self.parcels.changed(asked[BAG], sent=tuple(answers))
            late = Move(Kind.FETCH_LATE, place, 0, move.touches | Part.LATE)
            yield late, (*asked[:LEFT], spent, bag, asked[FAULT])

    def _is_answer(self, number: int) -> bool:
        return isinstance(self.events.values[number], Reply)

    # leaders

    def _led(
        self, state: State, place: int, facts: Facts, left: Left
    ) -> Iterator[tuple[Move, State]]:
        mine = 1 << place
        if left.records:
            spent = left._replace(records=left.records - 1)
            event = self.events.number(Written(f"r{self.bounds.records - spent.records}"))
            move = Move(Kind.WRITE, place, event, mine | Part.RECORDS)
            move, after = self._stepped(state, place, event, move)
            if after[place] != state[place] or after[FAULT]:  # else it was refused
                yield move, _with(after, LEFT, self._lefts.number(spent))
        if facts.behind and left.shrinks:
            number = self._lefts.number(left._replace(shrinks=left.shrinks - 1))
            for size in range(1, len(facts.behind) + 1):
                for members in combinations(facts.behind, size):
                    event = self.events.number(FellBehind(members))
                    move = Move(Kind.SHRINK, place, event, mine | Part.SHRINKS)
                    move, after = self._stepped(state, place, event, move)
                    yield move, _with(after, LEFT, number)
        if left.resends and facts.proposes not in (NOTHING, *self.parcels.held(state[BAG])):
            number = self._lefts.number(left._replace(resends=left.resends - 1))
            event = self.events.number(Asking())
            move = Move(Kind.RESEND, place, event, mine | Part.CONTROLLER | Part.RESENDS)
            move, after = self._stepped(state, place, event, move)
            yield move, _with(after, LEFT, number)

    # lives

    def _crashed(
        self, state: State, place: int, facts: Facts, left: Left
    ) -> Iterator[tuple[Move, State]]:
        spent = self._lefts.number(left._replace(crashes=left.crashes - 1))
        for keeps in range(0 if self.bounds.lossy else facts.end, facts.end + 1):
            for checkpoint in (False, True) if min(facts.high_watermark, keeps) else (False,):
                event = self.events.number(Crashed(keeps, checkpoint))
                move = Move(Kind.CRASH, place, event, 1 << place | Part.CRASHES)
                move, after = self._stepped(state, place, event, move)
                yield move, _with(after, LEFT, spent)

    def _restarted(self, state: State, place: int) -> tuple[Move, State]:
        node_id = REPLICAS[place]
        decided = self._decide(
            (state[DECIDED], Kind.RESTART, place),
            lambda before: self._desk.register(before, node_id),
        )
        event = self.events.number(self.restart(decided))
        move = Move(Kind.RESTART, place, event, Part.ALL)
        move, after = self._stepped(state, place, event, move)
        return move, self._redecided(after, decided)

    def restart(self, decided: int) -> Restarted:
        """As the incarnation that the last version registers."""
        known = self.decided.values[decided]
        told = known.told(applied=NOTHING, version=known.version, min_isr=self.bounds.min_isr)
        return Restarted(BrokerEpoch(known.version), told)

    # the controller

    def _controlled(
        self, state: State, place: int, facts: Facts, left: Left
    ) -> Iterator[tuple[Move, State]]:
        node_id = REPLICAS[place]
        registered = self.decided.values[state[DECIDED]].broker(node_id)
        if registered.active and left.fences:
            decided = self._decide(
                (state[DECIDED], Kind.FENCE, place),
                lambda before: self._desk.fence(before, node_id),
            )
            spent = self._lefts.number(left._replace(fences=left.fences - 1))
            move = Move(Kind.FENCE, place, 0, Part.ALL)
            yield move, self._redecided(_with(state, LEFT, spent), decided)
        elif registered.fenced and facts.is_up:
            life, applied = facts.life, facts.applied
            decided = self._decide(
                (state[DECIDED], Kind.UNFENCE, place, life, applied),
                lambda before: self._desk.heartbeat(before, node_id, life=life, applied=applied),
            )
            if decided != state[DECIDED]:
                move = Move(Kind.UNFENCE, place, 0, Part.ALL)
                yield move, self._redecided(state, decided)

    def _decide(self, key: tuple[int, ...], how: Callable[[Decided], Decided]) -> int:
        known = self._decisions.get(key)
        if known is None:
            after = how(self.decided.values[key[0]])
            known = self._decisions[key] = self.decided.number(after)
        return known

    def _redecided(self, state: State, decided: int) -> State:
        known = self.decided.values[decided]
        bag = self.parcels.kept(
            state[BAG],
            decided,
            lambda message: not isinstance(message, Propose) or is_open(message, known),
        )
        return (*state[:DECIDED], decided, state[TRUE], state[LEFT], bag, state[FAULT])

    def _telling(self, decided: int, applied: int, version: int) -> int:
        key = (decided, applied, version)
        known = self._tellings.get(key)
        if known is None:
            told = self.decided.values[decided].told(
                applied=applied, version=version, min_isr=self.bounds.min_isr
            )
            known = self._tellings[key] = self.events.number(told)
        return known

    # steps of one broker

    def _stepped(
        self, state: State, place: int, event: int, move: Move, *, without: int = NOTHING
    ) -> tuple[Move, State]:
        return self._after(state, place, self._step(state[place], event), move, without=without)

    def _after(
        self, state: State, place: int, stepped: Stepped, move: Move, *, without: int = NOTHING
    ) -> tuple[Move, State]:
        broker, sent, heard, fault = stepped
        truth = state[TRUE]
        if heard:
            truth, wrong = self._ledger.learned(truth, heard)
            fault = fault or wrong
            move = move._replace(touches=move.touches | Part.TRUTH)
        if sent:
            sent = self._arriving(state, sent)
        bag = self.parcels.changed(state[BAG], without=without, sent=sent)
        facts, before = self.facts[broker], self.facts[state[place]]
        if (facts.is_up, facts.epoch, facts.life) != (before.is_up, before.epoch, before.life):
            node_id = REPLICAS[place]
            bag = self.parcels.kept(
                bag,
                (node_id, facts.is_up, facts.epoch, facts.life),
                lambda message: (
                    isinstance(message, Propose)
                    or receiver(message) != node_id
                    or (facts.is_up and concerns(message, facts))
                ),
            )
        brokers = (*state[:place], broker, *state[place + 1 : DECIDED])
        return move, (*brokers, state[DECIDED], truth, state[LEFT], bag, fault or state[FAULT])

    def _step(self, number: int, event: int) -> Stepped:
        key = (number, event)
        known = self._steps.get(key)
        if known is None:
            known = self._steps[key] = self._take(number, self.events.values[event])
        return known

    def _take(self, number: int, event: Event) -> Stepped:
        broker = self.thawed(number)
        turn = Turn(broker)
        try:
            heard = turn.take(event)
        except (AssertionError, Violation) as wrong:
            return Stepped(number, (), 0, self._ledger.fault(wrong))
        sent = tuple(self.events.number(each) for each in turn.sent if not asks_patience(each))
        return Stepped(self._broker_number(broker), sent, self._ledger.heard.number(heard), 0)

    def thawed(self, number: int) -> Broker:
        broker = self._freezer.thaw(self._brokers.values[number])
        assert isinstance(broker, Broker)
        return broker

    def frozen(self, broker: Broker) -> tuple[object, ...]:
        frozen = self._freezer.freeze(broker)
        assert isinstance(frozen, tuple)
        return frozen

    def _broker_number(self, broker: Broker) -> int:
        number = self._brokers.number(self.frozen(broker))
        if number == len(self.facts):
            self.facts.append(self._facts_of(broker))
            self._seen.append(Seen.of(self.thawed(number)))
        return number

    def _facts_of(self, broker: Broker) -> Facts:
        replica = broker.replica
        ask = asks(broker)
        leadership = None if replica is None else replica.leadership
        proposes, behind = NOTHING, tuple[NodeId, ...]()
        if replica is not None and leadership is not None:
            if leadership.proposal is not None:
                message = Propose(broker.node_id, broker.life, leadership.proposal)
                proposes = self.events.number(message)
            else:
                behind = out_of_sync(replica, leadership, NOW)
        epoch = NO_EPOCH if replica is None else replica.leader_epoch
        return Facts(
            is_up=replica is not None,
            life=broker.life,
            epoch=NEVER_AGAIN if epoch == NO_EPOCH else epoch,
            applied=broker.applied,
            asks=NOTHING if ask is None else self.events.number(ask),
            leader=NOTHING if ask is None else REPLICAS.index(ask.to),
            leads=leadership is not None,
            proposes=proposes,
            behind=behind,
            end=broker.end,
            high_watermark=0 if replica is None else replica.high_watermark,
        )


def _with(state: State, place: int, number: int) -> State:
    return (*state[:place], number, *state[place + 1 :])
