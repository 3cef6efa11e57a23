"""A member of a group that reads, processes and writes exactly once: each time in one transaction.

    joining   as any member (group_member.py); before it asks what is committed, it becomes the
              holder of its transactional id, which fences whatever it left behind
    working   some input is read, and an Attempt copies it to every output partition and commits
              how far it has read; some are aborted, and some stand still for longer than sessions
              and transactions last, with heartbeats or without

When it loses its place, its attempt is given up; or it goes on by itself, as the zombie of a
process that does not know yet; or it lingers, while its process joins the group again: that one
goes on when the attempt has ended, as the same producer.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from cotidal.errors import ErrorCode
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from cotidal.messages.rpc.init_producer_id import InitProducerIdRequest
from cotidal.sim import probes as seen
from cotidal.sim.agenda import MS
from cotidal.sim.network import Address
from cotidal.sim.probes import Probes
from cotidal.sim.workloads.attempt import Attempt, Holder, Membership
from cotidal.sim.workloads.find import TRANSACTIONAL_KEY, find_coordinator
from cotidal.sim.workloads.group_ledger import GroupLedger
from cotidal.sim.workloads.group_member import GroupMember
from cotidal.sim.workloads.transaction_ledger import COPIES, Input, TransactionLedger
from cotidal.sim.world import World
from cotidal.values import TopicPartition
from cotidal.wire.records import read_records

TIMEOUTS_MS: Final = (3_000, 12_000)
"""Of transactions: some end before a stalled member has lost its place, some can still commit."""
INIT_VERSION: Final = 4
FETCH_VERSION: Final = 12
INPUT_BYTES: Final = 2_000
INPUT_WAIT_MS: Final = 50
INPUTS_MAX: Final = 6
TURN_GAP_US: Final = 40 * MS
ABORT_ONE_IN: Final = 5
NO_MEMBER: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)


class Processor(GroupMember):
    STABLE: ClassVar[bool] = True

    def __init__(
        self,
        world: World,
        name: str,
        group: str,
        partitions: tuple[TopicPartition, ...],
        commits: GroupLedger,
        ledger: TransactionLedger,
        probes: Probes,
    ) -> None:
        super().__init__(world, name, group, partitions, commits, probes, static=False)
        self.topics = (*self.topics, COPIES)
        self.ledger = ledger
        self.probes = probes
        self.transactional_id = f"{name}-transactions"
        self.transactions_at: Address | None = None
        """Where its transactions' coordinator was last."""
        self._raises = self.draw(2) == 0
        """It speaks transaction version 2."""
        self._timeout_ms = TIMEOUTS_MS[self.draw(len(TIMEOUTS_MS))]
        self._holder: Holder | None = None
        """Who it is as a producer; None: nobody yet, or nobody any more."""
        self._attempt: Attempt | None = None
        self._lingering: Attempt | None = None
        """Of the generation before, and not ended."""
        self._awaits = False
        """For that, before it asks what is committed."""
        self._finding = False
        self._stalled_until = 0

    def begin(self) -> None:
        self.refresh()
        super().begin()

    def stop(self) -> None:
        """Stay, and process what is left."""
        self.restless = False

    def position(self, partition: TopicPartition) -> int | None:
        """How far it has processed a partition; None if that is not its own."""
        if not self._works or partition not in self._owned:
            return None
        return max(self._owned[partition], 0)

    # Whom it asks

    def group_coordinator(self) -> Address | None:
        return self._coordinator

    def look_again(self, key: ApiKey) -> None:
        """Whoever was asked this is perhaps no longer there."""
        match key:
            case ApiKey.PRODUCE:
                self._forget_leaders(COPIES)
            case ApiKey.TXN_OFFSET_COMMIT:
                if self._works and self._coordinator is not None:
                    self._look()
            case _:
                self.transactions_at = None
                self._find_transactions()

    def _forget_leaders(self, topic: str) -> None:
        for partition in [each for each in self.leaders if each.topic == topic]:
            del self.leaders[partition]
        self.refresh()

    def _find_transactions(self) -> None:
        if self._finding:
            return
        self._finding = True

        def found(address: Address | None) -> None:
            self._finding = False
            if address is not None:
                self.transactions_at = address

        find_coordinator(self, self.transactional_id, found, kind=TRANSACTIONAL_KEY)

    # Becoming the holder of its transactional id

    def _join(self) -> None:
        if self._attempt is not None and self.draw(2):
            self.probes.see(seen.TXN_LINGERS)
            self._lingering, self._attempt = self._attempt, None
        self._let_go()
        super()._join()

    def _go_away(self) -> None:
        self._let_go()
        super()._go_away()

    def _let_go(self) -> None:
        attempt, self._attempt = self._attempt, None
        if attempt is not None:
            self._holder = None
            if self.draw(2):
                self.probes.see(seen.TXN_ZOMBIE)
            else:
                attempt.cancel()

    def _fetch(self) -> None:
        self._awaits = self._lingering is not None
        if self._awaits:
            return  # it asks when that has ended
        if self._holder is None:
            self._init(self._life)
        else:
            super()._fetch()

    def _init(self, life: int) -> None:
        if life != self._life:
            return
        if self.transactions_at is None:
            self._find_transactions()
            self.after(self.back_off(), self._init, life)
            return
        request = InitProducerIdRequest(self.transactional_id, self._timeout_ms)

        def told(reply: Any) -> None:
            if reply is not None and not reply.error_code:
                self.ledger.on_holder(self.transactional_id)
                if life == self._life:
                    self._holder = Holder(reply.producer_id, reply.producer_epoch)
                    self._fetch()
            elif life == self._life:
                self.look_again(ApiKey.INIT_PRODUCER_ID)
                self.after(self.back_off(), self._init, life)

        self.ask(self.transactions_at, ApiKey.INIT_PRODUCER_ID, INIT_VERSION, request, told)

    # Working

    def stall(self, attempt: Attempt, duration_us: int) -> None:
        if attempt is self._attempt:
            self.probes.see(seen.TXN_STALLED)
            if self.draw(2):
                self._stalled_until = self.world.now + duration_us

    def _beat(self, life: int) -> None:
        wait = self._stalled_until - self.world.now
        if wait > 0:
            self.after(wait, self._beat, life)
        else:
            super()._beat(life)

    def _commit(self, life: int) -> None:
        """Its turn: read some input, and process it in a transaction."""
        if life != self._life or self._attempt is not None:
            return
        owned = tuple(self._owned)
        partition = owned[self.draw(len(owned))] if owned else None
        leader = None if partition is None else self.leaders.get(partition)
        if partition is None or leader is None:
            self.refresh()
            self.after(self.back_off(), self._commit, life)
            return
        offset = max(self._owned[partition], 0)
        wanted = FetchPartition(partition.partition, -1, offset, partition_max_bytes=INPUT_BYTES)
        request = FetchRequest(
            max_wait_ms=INPUT_WAIT_MS,
            min_bytes=1,
            max_bytes=INPUT_BYTES,
            isolation_level=1,
            topics=(FetchTopic(partition.topic, partitions=(wanted,)),),
        )

        def told(reply: FetchResponse | None) -> None:
            if life != self._life or self._attempt is not None:
                return
            inputs = None if reply is None else _inputs(reply, partition, offset)
            if inputs is None:
                self._forget_leaders(partition.topic)
            if inputs:
                self._process(inputs)
            else:
                self.after(1 + self.draw(TURN_GAP_US), self._commit, life)

        self.ask(leader.address, ApiKey.FETCH, FETCH_VERSION, request, told)

    def _process(self, inputs: tuple[Input, ...]) -> None:
        assert self._holder is not None
        self._attempt = Attempt(
            self,
            self.ledger.begin(self.transactional_id, inputs),
            self._holder,
            Membership(self._group, self._member_id, self._instance, self._generation),
            raises=self._raises,
            commits=not self.restless or self.draw(ABORT_ONE_IN) > 0,
        )
        self._attempt.begin()

    def on_ended(self, attempt: Attempt, after: Holder, *, committed: bool) -> None:
        last = attempt.fact.inputs[-1]
        reached = last.offset + 1
        if committed:
            self._ledger.on_committed(self._group, last.partition, reached)
        if attempt is self._lingering:
            self._on_lingered(after)
        if attempt is not self._attempt:
            return
        self._attempt = None
        self._holder = after
        if committed and last.partition in self._owned:
            self._owned[last.partition] = reached
        self.after(1 + self.draw(TURN_GAP_US), self._commit, self._life)

    def on_given_up(self, attempt: Attempt, error: ErrorCode) -> None:
        self.probes.see(seen.TXN_GIVEN_UP)
        if attempt is self._lingering:
            self._on_lingered(None)
        if attempt is not self._attempt:
            return
        self._attempt = self._holder = None
        if not self._works:
            return
        if error in NO_MEMBER:
            self._on_error(error)
            return
        self.settled = self._works = False
        if self._coordinator is not None:  # else: it asks again when that is found
            self._life += 1
            self._fetch()

    def _on_lingered(self, after: Holder | None) -> None:
        self._lingering = None
        self._holder = after
        if self._awaits and self._coordinator is not None:
            self._fetch()


def _inputs(
    reply: FetchResponse, partition: TopicPartition, offset: int
) -> tuple[Input, ...] | None:
    """What is to be processed next; None if this is not the one to ask."""
    told = reply.responses[0].partitions[0]
    if told.error_code:
        return None
    if told.records is None or not told.records.headers:
        return ()
    found: list[Input] = []
    at = 0
    for header in told.records.headers:
        records = read_records(told.records.data, at)
        found.extend(Input(partition, each.offset) for each in records if each.offset >= offset)
        at += header.size_bytes
    return tuple(found[:INPUTS_MAX])
