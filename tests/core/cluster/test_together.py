from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cotidal.core.cluster.together import counted, is_undecided
from cotidal.messages.records import metadata as m
from cotidal.node.effects import MetadataBatch
from cotidal.values import NO_TIMESTAMP, LeaderEpoch, Offset

BEGIN, END, ABORT = m.BeginTransactionRecord(), m.EndTransactionRecord(), m.AbortTransactionRecord()


def topic(name: str) -> m.TopicRecord:
    return m.TopicRecord(name=name)


def batches(*groups: tuple[object, ...]) -> list[MetadataBatch]:
    made, end = [], 0
    for records in groups:
        made.append(MetadataBatch(Offset(end), LeaderEpoch(1), records, False, NO_TIMESTAMP))
        end += len(records)
    return made


def names(*groups: tuple[object, ...]) -> list[tuple[int, str]]:
    return [
        (offset, record.name)
        for offset, record in counted(batches(*groups))
        if isinstance(record, m.TopicRecord)
    ]


def test_what_is_outside_of_a_transaction_counts_as_it_comes() -> None:
    assert names((topic("a"),), (topic("b"), topic("c"))) == [(0, "a"), (1, "b"), (2, "c")]


def test_a_transaction_counts_from_its_end_on_over_any_number_of_batches() -> None:
    assert names((topic("a"), BEGIN, topic("b")), (topic("c"),), (END, topic("d"))) == [
        (0, "a"),
        (2, "b"),
        (3, "c"),
        (5, "d"),
    ]


def test_an_aborted_transaction_does_not_count_nor_does_one_that_is_undecided() -> None:
    assert names((BEGIN, topic("a")), (ABORT, topic("b")), (BEGIN, topic("c"))) == [(3, "b")]


def test_records_of_the_quorum_are_passed_over() -> None:
    control = MetadataBatch(Offset(0), LeaderEpoch(1), (topic("a"),), True, NO_TIMESTAMP)
    assert list(counted([control])) == []


@given(st.lists(st.sampled_from((BEGIN, END, ABORT, topic("a"))), max_size=12), st.data())
def test_it_does_not_matter_how_records_are_parted_into_batches(
    records: list[object], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(records)))
    parted = batches(tuple(records[:cut]), tuple(records[cut:]))
    assert list(counted(parted)) == list(counted(batches(tuple(records))))
    middle = is_undecided(records[:cut])
    assert is_undecided(records[cut:], middle) == is_undecided(records)
