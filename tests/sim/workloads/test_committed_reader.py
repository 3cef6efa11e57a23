"""Readers of what is committed leave out what is not, and notice when they are given it."""

from __future__ import annotations

import pytest

from cotidal.invariants import LSO_MONOTONIC, TXN_ABORTED_UNSEEN
from cotidal.messages.records.transaction import EndTxnMarker
from cotidal.messages.rpc.fetch import AbortedTransaction, PartitionData
from cotidal.sim.run import Run
from cotidal.sim.violation import Violation
from cotidal.sim.workloads.client import Leader
from cotidal.sim.workloads.committed_reader import CommittedReader
from cotidal.sim.workloads.consumer import Place
from cotidal.sim.workloads.transaction_ledger import Input
from cotidal.values import TopicPartition
from cotidal.wire.batch import read_batches
from cotidal.wire.records import ControlType, Record, build_batch, control_record
from simulated import calm_run

COPIES = TopicPartition("copies", 0)
ORDERS = TopicPartition("orders", 0)
LEADER = Leader(("h", 1), 3)


@pytest.fixture(scope="module")
def run() -> Run:
    return calm_run()


@pytest.fixture
def reader(run: Run) -> CommittedReader:
    reader = CommittedReader(run.world, "r", (COPIES,), run.transactions, run.probes)
    reader.leaders[COPIES] = LEADER
    return reader


def told(reader: CommittedReader, *, committed: bool, stable: int = 2) -> PartitionData:
    """One result of a transaction of one input, and its end."""
    fact = reader._ledger.begin("x", (Input(ORDERS, 0),))
    fact.commit_sent = committed
    value = fact.value(fact.inputs[0])
    kind = ControlType.COMMIT if committed else ControlType.ABORT
    whose = {"producer_id": 9, "producer_epoch": 0, "transactional": True}
    data = build_batch([Record(None, value, timestamp=1)], base_sequence=0, **whose)
    data += build_batch(
        [control_record(kind, EndTxnMarker(1), timestamp=1)],
        base_offset=1,
        control=True,
        **whose,
    )
    return PartitionData(
        0,
        high_watermark=2,
        last_stable_offset=stable,
        aborted_transactions=() if committed else (AbortedTransaction(9, 0),),
        records=read_batches(data),
    )


def test_what_is_aborted_is_left_out(reader: CommittedReader) -> None:
    reader._read(COPIES, Place(), told(reader, committed=False))
    assert reader.results == {COPIES: []}


def test_what_is_committed_is_told(reader: CommittedReader) -> None:
    reader._read(COPIES, Place(), told(reader, committed=True))
    assert [one for _, one in reader.results[COPIES]] == [Input(ORDERS, 0)]


def test_what_a_broker_forgets_to_name_as_aborted_is_noticed(reader: CommittedReader) -> None:
    answer = told(reader, committed=False)._replace(aborted_transactions=())
    with pytest.raises(Violation) as caught:
        reader._read(COPIES, Place(), answer)
    assert caught.value.promise is TXN_ABORTED_UNSEEN


def test_what_is_given_beyond_the_last_stable_offset_is_noticed(reader: CommittedReader) -> None:
    with pytest.raises(Violation) as caught:
        reader._read(COPIES, Place(), told(reader, committed=True, stable=1))
    assert caught.value.promise is TXN_ABORTED_UNSEEN


def test_a_last_stable_offset_that_goes_back_is_noticed(reader: CommittedReader) -> None:
    at = PartitionData(0, high_watermark=9, last_stable_offset=7)
    reader._take(COPIES, at, LEADER.address)
    back = at._replace(last_stable_offset=6)
    reader._take(COPIES, back, ("another", 1))
    with pytest.raises(Violation) as caught:
        reader._take(COPIES, back, LEADER.address)
    assert caught.value.promise is LSO_MONOTONIC
    reader.leaders[COPIES] = LEADER._replace(epoch=4)
    reader._take(COPIES, back, LEADER.address)
