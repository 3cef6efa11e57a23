"""One broker of the partition's world: the real replica, its disk, and who waits for it. Pure.

The disk obeys at once. Time belongs to the adversary: a follower never has to wait before it asks,
and whoever is behind has been behind for as long as the move wants (``LAG_MAX_MS`` is below zero:
only who stands at the leader's end is in sync, unless the move says otherwise).

Does not do: log starts that move, idempotent producers, fetches that are parked at the leader (an
answer is made when its question arrives).
"""

from __future__ import annotations

from typing import Final

from cotidal.core.partition import effects as fx
from cotidal.core.partition import follower, leader, reading
from cotidal.core.partition.replica import Appointment, Replica, on_log_opened, on_start_moved
from cotidal.core.trace import line, state_line
from cotidal.errors import ErrorCode, Refusal
from cotidal.invariants import (
    HIGH_WATERMARK_MONOTONIC,
    OFFSETS_CONTIGUOUS,
    ONE_LEADER_PER_EPOCH,
)
from cotidal.messages.batch import NO_BATCHES, Batches, BatchHeader
from cotidal.sim.explore.held import Held
from cotidal.sim.explore.replica_events import (
    NOTHING_HEARD,
    PARTITION,
    Acked,
    Ask,
    Asking,
    Crashed,
    Event,
    FellBehind,
    Heard,
    Message,
    Propose,
    Reply,
    Restarted,
    Told,
    Verdict,
    Written,
)
from cotidal.values import (
    NO_EPOCH,
    NO_OFFSET,
    ZERO_UUID,
    BrokerEpoch,
    EpochEntry,
    Millis,
    NodeId,
    Offset,
    ProducerEpoch,
    ProducerId,
    Sequence,
    WallMillis,
)

NOW: Final = Millis(0)
LONG_AFTER: Final = Millis(1 << 40)
LAG_MAX_MS: Final = -1
IN_TIME: Final = Millis(1)
"""A moment at which a follower was caught up, late enough for LAG_MAX_MS."""
RULES: Final = leader.WriteRules(1 << 20, 1 << 30, 1 << 40, stamps_time=False)


_UNTOLD: Final = (fx.EndMoved, fx.Readable, fx.RememberProducers, fx.RememberEpochs)
"""The line that says where a replica stands shows what these change."""


class Broker:
    """Survives its crashes; ``replica`` does not."""

    __slots__ = (
        "applied",
        "batches",
        "checkpoint",
        "epochs",
        "life",
        "node_id",
        "parked",
        "replica",
    )

    def __init__(self, node_id: NodeId, life: BrokerEpoch) -> None:
        self.node_id = node_id
        self.life = life
        self.applied = 0
        """The version of the metadata that it has applied."""
        self.replica: Replica | None = None
        self.batches: list[tuple[BatchHeader, bytes]] = []
        self.epochs: tuple[EpochEntry, ...] = ()
        self.checkpoint = Offset(0)
        self.parked: list[Offset] = []
        """Ends of the acks=all writes that wait."""

    @property
    def end(self) -> Offset:
        return Offset(len(self.batches))

    def held(self) -> tuple[Held, ...]:
        return tuple(Held(header.leader_epoch, data.decode()) for header, data in self.batches)


class Turn:
    """One event of one broker: what it sends, what the world hears, and the words for it."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.sent: list[Message] = []
        self.lines: list[str] = []
        self._acked: list[Acked] = []
        replica = broker.replica
        leadership = None if replica is None else replica.leadership
        self._epoch = NO_EPOCH if replica is None else replica.leader_epoch
        self._led = NO_EPOCH if leadership is None else leadership.epoch
        self._high_watermark = Offset(0) if replica is None else replica.high_watermark

    def take(self, event: Event) -> Heard:
        """Let it happen; asserts what a broker can promise alone."""
        is_new_life = isinstance(event, Crashed | Restarted)
        self._dispatch(event)
        broker = self.broker
        replica = broker.replica
        if replica is None:
            return NOTHING_HEARD
        replica.check()
        replica.epochs.check()
        assert replica.end_offset == broker.end, OFFSETS_CONTIGUOUS
        if not is_new_life and replica.leader_epoch != NO_EPOCH:
            assert replica.leader_epoch >= self._epoch, ONE_LEADER_PER_EPOCH
        committed: tuple[Held, ...] = ()
        leadership = replica.leadership
        if leadership is not None:
            high_watermark = replica.high_watermark
            if leadership.epoch == self._led:
                assert high_watermark >= self._high_watermark, HIGH_WATERMARK_MONOTONIC
            if high_watermark > self._high_watermark:
                committed = broker.held()[:high_watermark]
        _forget_time(replica)
        return Heard(committed, tuple(self._acked))

    def _dispatch(self, event: Event) -> None:
        broker = self.broker
        match event:
            case Ask():
                self._answer(event)
            case Reply(_, _, answer):
                if isinstance(answer, follower.LeaderEnds):
                    self.obey(follower.on_leader_ends(self.replica, answer))
                else:
                    self.obey(follower.on_answered(self.replica, answer, NOW))
            case Verdict(_, _, verdict):
                self.obey(leader.on_isr_answered(self.replica, verdict, NOW))
            case Told():
                self._apply(event)
            case Written(value):
                self._write(value)
            case FellBehind(members):
                self._shrink(members)
            case Asking():
                leadership = self.replica.leadership
                assert leadership is not None
                assert leadership.proposal is not None
                self.obey((leadership.proposal,))
            case Crashed(keeps, high_watermark):
                broker.checkpoint = Offset(0)
                if high_watermark:
                    broker.checkpoint = min(self._high_watermark, Offset(keeps))
                del broker.batches[keeps:]
                broker.replica = None
                broker.parked.clear()
            case Restarted(life, told):
                broker.life = life
                self._open()
                self._apply(told)
            case Propose():
                raise AssertionError("a broker is no controller")

    @property
    def replica(self) -> Replica:
        assert self.broker.replica is not None
        return self.broker.replica

    def _open(self) -> None:
        broker = self.broker
        broker.replica = Replica(PARTITION, ZERO_UUID)
        on_log_opened(
            broker.replica,
            start_offset=Offset(0),
            end_offset=broker.end,
            high_watermark=broker.checkpoint,
            epochs=broker.epochs,
            producers=None,
            headers_after=(),
        )

    # metadata: as node/publishing.py does

    def _apply(self, told: Told) -> None:
        broker, replica = self.broker, self.replica
        broker.applied = told.version
        active = dict(told.active)
        if replica.leadership is not None:
            replica.leadership.active = active
        partition = told.partition
        if partition is None:
            return
        if partition.leader < 0:
            self.obey(leader.stop_leading(replica, f"{replica.partition} has no leader"))
            follower.stop_following(replica)
        elif partition.leader != broker.node_id:
            epoch = partition.leader_epoch
            self.obey(follower.follow(replica, leader=partition.leader, epoch=epoch))
        else:
            appointment = Appointment(
                node_id=broker.node_id,
                epoch=partition.leader_epoch,
                partition_epoch=partition.partition_epoch,
                replicas=partition.replicas,
                isr=partition.isr,
                min_isr=told.min_isr,
                lag_max_ms=LAG_MAX_MS,
                active=active,
            )
            leads = replica.leadership is not None and (
                replica.leader_epoch >= partition.leader_epoch
            )
            take = leader.on_partition_changed if leads else leader.become_leader
            self.obey(take(replica, appointment, NOW))

    # replication

    def _answer(self, ask: Ask) -> None:
        """The high watermark of an answer is from before the fetch that it answers."""
        answer = self._ends(ask) if ask.ends else self._records(ask)
        self.lines.append(line(answer))
        self.sent.append(Reply(ask.sender, ask.life, answer))

    def _records(self, ask: Ask) -> follower.Answered:
        replica = self.replica
        answer = follower.Answered(
            ask.question,
            ErrorCode.NONE,
            replica.high_watermark,
            replica.start_offset,
            None,
            NO_BATCHES,
        )
        verdict = self._admit(ask)
        match verdict:
            case Refusal(error):
                return answer._replace(error=error)
            case reading.Diverged(end):
                return answer._replace(diverging=end)
            case reading.Granted(below):
                return answer._replace(batches=self._read(ask.question.offset, below=below))

    def _ends(self, ask: Ask) -> follower.Answered | follower.LeaderEnds:
        replica, asked = self.replica, ask.question
        refusal = reading.check_leader_epoch(replica, asked.leader_epoch)
        if refusal is None:
            return follower.LeaderEnds(asked, replica.start_offset, replica.end_offset)
        return follower.Answered(asked, refusal.error, NO_OFFSET, NO_OFFSET, None, NO_BATCHES)

    def _admit(self, ask: Ask) -> reading.Granted | reading.Diverged | Refusal:
        replica, asked = self.replica, ask.question
        verdict = reading.admit_replica_fetch(
            replica,
            node_id=ask.sender,
            broker_epoch=ask.life,
            offset=asked.offset,
            current_epoch=asked.leader_epoch,
            last_fetched_epoch=asked.last_fetched_epoch,
        )
        if isinstance(verdict, reading.Granted):
            fetched = leader.FollowerFetched(ask.sender, asked.offset, asked.start_offset, ask.life)
            self.obey(leader.on_follower_fetched(replica, fetched, NOW))
        return verdict

    def _read(self, offset: Offset, *, below: Offset) -> Batches:
        found = self.broker.batches[offset:below]
        return Batches(tuple(header for header, _ in found), b"".join(data for _, data in found))

    def _shrink(self, members: tuple[NodeId, ...]) -> None:
        leadership = self.replica.leadership
        assert leadership is not None
        for node_id, progress in leadership.followers.items():
            if node_id not in members:
                progress.last_caught_up = IN_TIME
        self.obey(leader.shrink_isr(self.replica, NOW))

    # clients

    def _write(self, value: str) -> None:
        broker, replica = self.broker, self.replica
        batch = _batch_of(value)
        verdict = leader.admit_batch(
            replica, batch, acks=leader.ACKS_ALL, rules=RULES, wall=WallMillis(0)
        )
        self.lines.append(line(verdict))
        if isinstance(verdict, Refusal):
            return
        assert replica.leadership is not None
        assert verdict.base_offset == broker.end, OFFSETS_CONTIGUOUS
        placed = batch.headers[0]._replace(
            base_offset=verdict.base_offset, leader_epoch=replica.leadership.epoch
        )
        broker.parked.append(verdict.next_offset)
        broker.batches.append((placed, bytes(batch.data)))
        self.obey(leader.on_appended(replica, verdict.next_offset, NOW))
        self._complete()

    def _complete(self) -> None:
        """Answer every acks=all write whose fate is known."""
        still: list[Offset] = []
        for next_offset in self.broker.parked:
            outcome = leader.acks_outcome(self.replica, next_offset=next_offset)
            if isinstance(outcome, Refusal):
                self.lines.append(f"{next_offset - 1} {line(outcome)}")
            elif outcome:
                self.lines.append(f"acknowledge {next_offset - 1}")
                offset = Offset(next_offset - 1)
                self._acked.append(Acked(offset, self.broker.held()[offset]))
            else:
                still.append(next_offset)
        self.broker.parked = still

    # effects

    def obey(self, effects: tuple[fx.PartitionEffect, ...]) -> None:
        broker = self.broker
        for effect in effects:
            if not isinstance(effect, _UNTOLD):
                self.lines.append(line(effect))
            match effect:
                case fx.EndMoved() | fx.Readable() | fx.RememberProducers() | fx.RememberAborted():
                    pass
                case fx.RememberEpochs(entries):
                    broker.epochs = entries
                case fx.CompleteAcks() | fx.LeadershipLost():
                    self._complete()
                case fx.ProposeIsr():
                    self.sent.append(Propose(broker.node_id, broker.life, effect))
                case fx.AppendFetched(batches):
                    self._append(batches)
                case fx.Truncate(offset):
                    del broker.batches[offset:]
                    self._cut(offset)
                case fx.StartOver(offset):
                    assert offset == 0, "no log of this world begins elsewhere"
                    broker.batches.clear()
                    self._cut(offset)
                case fx.AdvanceLogStart(offset):
                    on_start_moved(self.replica, offset)

    def _append(self, batches: Batches) -> None:
        broker = self.broker
        position = 0
        for header in batches.headers:
            assert header.base_offset == broker.end, OFFSETS_CONTIGUOUS
            data = bytes(batches.data[position : position + header.size_bytes])
            broker.batches.append((header, data))
            position += header.size_bytes
        self.obey(follower.on_appended(self.replica, broker.end))

    def _cut(self, offset: Offset) -> None:
        broker = self.broker
        broker.epochs = tuple(entry for entry in broker.epochs if entry.start_offset < offset)
        effects = follower.on_log_cut(
            self.replica,
            start_offset=Offset(0),
            end_offset=broker.end,
            epochs=broker.epochs,
            producers=None,
            headers_after=(),
        )
        self.obey(effects)


def asks(broker: Broker) -> Ask | None:
    """What this broker would ask its leader now; back-offs have passed."""
    replica = broker.replica
    if replica is None or replica.following is None:
        return None
    ends = follower.question_of_ends(replica, LONG_AFTER)
    asked = ends or follower.question(replica, LONG_AFTER)
    if asked is None:
        return None
    return Ask(broker.node_id, broker.life, replica.following.leader, asked, ends is not None)


def stands(broker: Broker) -> str:
    """Where it stands, in words."""
    if broker.replica is None:
        return f"is down; its log holds {broker.end}"
    return state_line(broker.replica)


def _forget_time(replica: Replica) -> None:
    """What only the clock could make use of, and what is over when a step is."""
    following = replica.following
    if following is not None:
        following.not_before = Millis(0)
        following.refusals = 0
        following.leader_high_watermark = NO_OFFSET
        following.leader_start = NO_OFFSET
    if replica.leadership is not None:
        for progress in replica.leadership.followers.values():
            progress.last_caught_up = NOW
            progress.leader_end_at_fetch = NO_OFFSET


def _batch_of(value: str) -> Batches:
    data = value.encode()
    header = BatchHeader(
        base_offset=Offset(0),
        size_bytes=len(data),
        leader_epoch=NO_EPOCH,
        attributes=0,
        last_offset_delta=0,
        base_timestamp=WallMillis(0),
        max_timestamp=WallMillis(0),
        producer_id=ProducerId(-1),
        producer_epoch=ProducerEpoch(-1),
        base_sequence=Sequence(-1),
        record_count=1,
    )
    return Batches((header,), data)
