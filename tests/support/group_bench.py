"""A group coordinator driven by hand: a log in a list, a clock that a test moves.

What it writes is committed at once, unless ``holds`` is set: then ``commit`` does it. ``end`` ends
a producer's transaction. ``move`` is a failover: another coordinator reads what was committed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from cotidal.core.coordinator import (
    Acts,
    Await,
    InTransaction,
    KeyedRecord,
    Moment,
    Order,
    Tell,
    Waiter,
    Write,
)
from cotidal.core.groups.asks import (
    Beat,
    Commit,
    CommitOffsets,
    DescribeGroup,
    FetchOffsets,
    Join,
    Joined,
    Leave,
    Leaver,
    Protocol,
    Sync,
)
from cotidal.core.groups.coordinator import GroupCoordinator
from cotidal.core.groups.state import GroupRules
from cotidal.core.groups.surroundings import KnownTopic
from cotidal.core.machine import Entropy
from cotidal.errors import ErrorCode, Refusal
from cotidal.values import (
    NO_PRODUCER_ID,
    Millis,
    ProducerEpoch,
    ProducerId,
    TopicPartition,
    Uuid,
    WallMillis,
)

WALL = 1_700_000_000_000
RULES = GroupRules(
    session_min_ms=1_000,
    session_max_ms=60_000,
    initial_delay_ms=0,
    members_max=100,
    metadata_length_max=64,
    retention_ms=100_000,
    expiry_interval_ms=10_000,
)


def subscription(*topics: str) -> bytes:
    """What a consumer says, in the first version."""
    out = (0).to_bytes(2, "big") + len(topics).to_bytes(4, "big")
    for topic in topics:
        out += len(topic).to_bytes(2, "big") + topic.encode()
    return out + (-1).to_bytes(4, "big", signed=True)


class Ended(NamedTuple):
    """A marker in the log."""

    producer_id: ProducerId
    committed: bool


class Topics:
    """Implements ``core.groups.surroundings.Surroundings``: topics that a test makes."""

    def __init__(self, **counts: int) -> None:
        self.version = 1
        self._known: dict[str, KnownTopic] = {}
        self.session_ms, self.heartbeat_ms = 10_000, 1_000
        for name, count in counts.items():
            self.set(name, count)

    def set(self, name: str, count: int) -> None:
        """It has so many partitions now; 0: it is deleted."""
        self.version += 1
        if count:
            self._known[name] = KnownTopic(name, topic_id(name), count)
        else:
            del self._known[name]

    def topic(self, name: str) -> KnownTopic | None:
        return self._known.get(name)

    def topic_name(self, wanted: Uuid) -> str | None:
        return next((each.name for each in self._known.values() if each.topic_id == wanted), None)

    def topic_names(self) -> Iterable[str]:
        return tuple(self._known)

    def session_timeout_ms(self, group_id: str) -> int:
        return self.session_ms

    def heartbeat_interval_ms(self, group_id: str) -> int:
        return self.heartbeat_ms


def topic_id(name: str) -> Uuid:
    return Uuid(name.encode().ljust(16, b"."))


class GroupBench:
    def __init__(
        self,
        rules: GroupRules = RULES,
        log: tuple[Write | Ended, ...] = (),
        now: int = 1_000,
        topics: Topics | None = None,
    ) -> None:
        self.rules = rules
        self.now = now
        self.topics = Topics() if topics is None else topics
        self.machine = GroupCoordinator(rules, Entropy(7), self.topics)
        self.log: list[Write | Ended] = []
        self.holds = False
        self.refuses: Refusal | None = None
        self.held: list[Write] = []
        self.answers: dict[int, Any] = {}
        self._waiter = 0
        for entry in log:
            self._replay(entry)
            self.log.append(entry)
        self._obey(self.machine.on_loaded(self._at()))

    @property
    def committed(self) -> list[KeyedRecord]:
        return [each for entry in self.log if isinstance(entry, Write) for each in entry.records]

    def _replay(self, entry: Write | Ended) -> None:
        if isinstance(entry, Ended):
            self.machine.replay_end(entry.producer_id, committed=entry.committed)
            return
        whose = entry.transaction
        for record in entry.records:
            self.machine.replay(record, NO_PRODUCER_ID if whose is None else whose.producer_id)

    def end(self, producer_id: int, *, committed: bool = True) -> None:
        """The leader of the partition writes a marker."""
        self.log.append(Ended(ProducerId(producer_id), committed))
        self._replay(self.log[-1])

    def _at(self) -> Moment:
        return Moment(Millis(self.now), WallMillis(WALL + self.now))

    def begin(self, ask: Any) -> int:
        """Ask; the answer may come later."""
        self._waiter += 1
        waiter = self._waiter
        self._obey(self.machine.ask(ask, Waiter(waiter), self._at()))
        return waiter

    def ask(self, ask: Any) -> Any:
        waiter = self.begin(ask)
        assert waiter in self.answers, f"no answer yet to {ask}"
        return self.answers[waiter]

    def advance(self, milliseconds: int) -> None:
        """Time passes; whatever runs out on the way does so in its order."""
        end = self.now + milliseconds
        while True:
            due = self.machine.next_deadline()
            if due is None or due > end:
                break
            self.now = max(self.now, due)
            self._obey(self.machine.on_ticked(self._at()))
        self.now = end

    def commit(self) -> None:
        """Everything that was held back is committed, in order; or else not in time."""
        held, self.held = self.held, []
        for write in held:
            if self.refuses is None:
                self._commit(write)
            else:
                self._refuse(write, self.refuses)

    def move(self) -> GroupBench:
        """The coordinator is another one now."""
        return GroupBench(self.rules, tuple(self.log), self.now, self.topics)

    def _obey(self, acts: Acts) -> None:
        for act in acts:
            assert not isinstance(act, Order)
            if isinstance(act, Tell):
                self._answer(act)
            elif isinstance(act, Await):
                assert not self.holds
                self._obey(self.machine.on_committed(act.then, self._at()))
            elif self.refuses is not None:
                self._refuse(act, self.refuses)
            else:
                self._replay(act)
                for group in self.machine.groups.image.consumers.values():
                    group.check()
                if self.holds:
                    self.held.append(act)
                else:
                    self._commit(act)

    def _answer(self, tell: Tell) -> None:
        assert tell.waiter not in self.answers, "answered twice"
        self.answers[tell.waiter] = tell.answer

    def _commit(self, write: Write) -> None:
        self.log.append(write)
        if isinstance(write.then, Tell):
            self._answer(write.then)
        else:
            self._obey(self.machine.on_committed(write.then, self._at()))

    def _refuse(self, write: Write, refusal: Refusal) -> None:
        if isinstance(write.then, Tell):
            self._answer(Tell(write.then.waiter, refusal))
        else:
            self._obey(self.machine.on_refused(write.then, refusal, self._at()))

    # Short ways to say things

    def joining(self, member_id: str = "", **fields: Any) -> int:
        return self.begin(join(member_id, **fields))

    def join_new(self, **fields: Any) -> int:
        """As clients do: be given an id, then join with it."""
        given = self.ask(join("", **fields))
        assert given.error is ErrorCode.MEMBER_ID_REQUIRED
        return self.joining(given.member_id, **fields)

    def stable(self, members: int = 1, **fields: Any) -> list[Joined]:
        """A group of so many members that all have their assignment."""
        joins = [self.join_new(**fields) for _ in range(members)]
        self.advance(self.rules.initial_delay_ms * (members + 1))
        answers: list[Joined] = [self.answers[join] for join in joins]
        self.sync_all(answers)
        return answers

    def sync_all(self, joined: list[Joined]) -> list[Any]:
        leader = next(each for each in joined if each.member_id == each.leader)
        given = tuple((each.member_id, each.member_id.encode()) for each in joined)
        waiting = [self.begin(sync(each)) for each in joined if each is not leader]
        waiting.append(self.begin(sync(leader, assignments=given)))
        return [self.answers.get(each) for each in waiting]

    def beat(self, joined: Joined, **fields: Any) -> ErrorCode:
        told = Beat("g", joined.generation, joined.member_id, None)._replace(**fields)
        answer = self.ask(told)
        return answer.error if isinstance(answer, Refusal) else ErrorCode.NONE

    def leave(self, *member_ids: str) -> Any:
        return self.ask(Leave("g", tuple(Leaver(each, None) for each in member_ids)))

    def state(self, group: str = "g") -> Any:
        answer = self.ask(DescribeGroup(group))
        return answer.error if isinstance(answer, Refusal) else answer.state

    def commit_offset(self, offset: int, **fields: Any) -> Any:
        answer = self.ask(committing(offset, **fields))
        return answer.error if isinstance(answer, Refusal) else answer.errors[0]

    def offset(self, partition: int = 0, topic: str = "t", group: str = "g") -> int | None:
        wanted = TopicPartition(topic, partition)
        ((_, value),) = self.ask(FetchOffsets(group, (wanted,))).offsets
        return None if value is None else value.offset


def in_transaction(producer_id: int = 7, epoch: int = 0) -> InTransaction:
    return InTransaction(ProducerId(producer_id), ProducerEpoch(epoch))


def join(member_id: str = "", **fields: Any) -> Join:
    return Join(
        group_id="g",
        member_id=member_id,
        instance_id=None,
        client_id="c",
        client_host="/h",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=5_000,
        protocol_type="consumer",
        protocols=(Protocol("range", subscription("t")),),
    )._replace(**fields)


def sync(joined: Joined, **fields: Any) -> Sync:
    asked = Sync("g", joined.generation, joined.member_id, None, None, None, ())
    return asked._replace(**fields)


def committing(
    offset: int,
    *,
    joined: Joined | None = None,
    topic: str = "t",
    partition: int = 0,
    metadata: str = "",
    **fields: Any,
) -> CommitOffsets:
    commit = Commit(TopicPartition(topic, partition), offset, -1, metadata)
    generation = -1 if joined is None else joined.generation
    member_id = "" if joined is None else joined.member_id
    return CommitOffsets("g", generation, member_id, None, (commit,))._replace(**fields)
