"""A read_committed consumer of what processors write: no aborted result, and none that is open.

It leaves out what the broker tells it was aborted, as clients do, and hands every other result to
the ledger of transactions. It is never given anything at or above the last stable offset, and a
leader's last stable offset never goes back within its epoch (LSO_MONOTONIC).
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from cotidal.invariants import LSO_MONOTONIC, TXN_ABORTED_UNSEEN
from cotidal.messages.rpc.fetch import PartitionData
from cotidal.sim.network import Address
from cotidal.sim.probes import Probes
from cotidal.sim.violation import Violation
from cotidal.sim.workloads.consumer import Consumer, Place
from cotidal.sim.workloads.history import History
from cotidal.sim.workloads.transaction_ledger import Input, TransactionLedger
from cotidal.sim.world import World
from cotidal.values import TopicPartition
from cotidal.wire.records import read_records


class Stable(NamedTuple):
    epoch: int
    offset: int


class CommittedReader(Consumer):
    ISOLATION: ClassVar[int] = 1

    def __init__(
        self,
        world: World,
        name: str,
        partitions: tuple[TopicPartition, ...],
        ledger: TransactionLedger,
        probes: Probes,
        *,
        rack: str = "",
    ) -> None:
        super().__init__(
            world,
            name,
            partitions,
            History(),
            probes,
            may_lose=False,
            rack=rack,
            sessions=bool(rack),
        )
        self._ledger = ledger
        self._stable: dict[TopicPartition, Stable] = {}
        self._results: dict[TopicPartition, dict[int, tuple[int, Input]]] = {
            each: {} for each in partitions
        }

    @property
    def results(self) -> dict[TopicPartition, list[tuple[int, Input]]]:
        """All that was seen, in the order of offsets."""
        return {
            partition: [found[offset] for offset in sorted(found)]
            for partition, found in self._results.items()
        }

    def _take(self, partition: TopicPartition, told: PartitionData, address: Address) -> None:
        leader = self.leaders.get(partition)
        if not told.error_code and leader is not None and leader.address == address:
            self._look_at_stable(partition, leader.epoch, told)
        super()._take(partition, told, address)

    def _look_at_stable(self, partition: TopicPartition, epoch: int, told: PartitionData) -> None:
        if told.last_stable_offset < 0:
            return  # it sends elsewhere, or tells where logs part
        before = self._stable.get(partition)
        if before is not None and before.epoch == epoch and told.last_stable_offset < before.offset:
            raise Violation(
                LSO_MONOTONIC,
                f"{partition} was stable up to {before.offset} in epoch {epoch}, and is up to"
                f" {told.last_stable_offset} now",
            )
        self._stable[partition] = Stable(epoch, told.last_stable_offset)

    def _read(self, partition: TopicPartition, place: Place, told: PartitionData) -> None:
        super()._read(partition, place, told)
        assert told.records is not None
        data, headers = told.records.data, told.records.headers
        if headers[-1].next_offset > told.last_stable_offset:
            raise Violation(
                TXN_ABORTED_UNSEEN,
                f"{self.name} was given {headers[-1].last_offset} of {partition}, which is stable"
                f" up to {told.last_stable_offset}",
            )
        ahead = sorted(
            (each.first_offset, each.producer_id) for each in told.aborted_transactions or ()
        )
        aborts = {marker.offset for marker in told.records.markers if not marker.committed}
        aborted: set[int] = set()
        at = 0
        for header in headers:
            while ahead and ahead[0][0] <= header.last_offset:
                aborted.add(ahead.pop(0)[1])
            if header.base_offset in aborts:
                aborted.discard(header.producer_id)
            elif not header.is_control and header.producer_id not in aborted:
                for record in read_records(data, at):
                    seen = self._ledger.on_seen(self.name, record.value or b"")
                    self._results[partition][record.offset] = seen
            at += header.size_bytes
