"""The same offsets of several replicas, side by side."""

from cotidal.client.replica_reading import Placed, Stretch
from cotidal.console.desk.replicas_compared import Copy, compare
from cotidal.values import NodeId
from cotidal.wire.batch import read_header
from cotidal.wire.records import Record, build_batch


def copy(node, values, *, epoch=0, to=None, failure=None):
    """``values``: by offset; ``to``: up to where it serves."""
    placed = []
    for offset, value in values.items():
        record = Record(key=None, value=value, offset=offset)
        header = read_header(build_batch([record]))._replace(leader_epoch=epoch)
        placed.append(Placed(record, header))
    end = max(values, default=-1) + 1 if to is None else to
    return Copy(NodeId(node), Stretch(placed, end, 0), failure)


def told(*copies, first=0, below=3):
    return compare(copies, leader=NodeId(1), first=first, below=below)


SAME = {0: b"a", 1: b"b", 2: b"c"}


def test_the_same_records_are_the_same():
    answer = told(copy(1, SAME), copy(2, SAME), copy(3, SAME))
    assert answer["sentence"] == "3 replicas hold the same records from offset 0 to 2."
    assert not answer["differ"]


def test_another_value_is_a_difference_and_the_first_one_is_named():
    answer = told(copy(1, SAME), copy(2, {**SAME, 1: b"B", 2: b"C"}))
    assert answer["differ"]
    assert [row["offset"] for row in answer["rows"] if row["differs"]] == [1, 2]
    assert answer["sentence"] == (
        "The replicas differ, first at offset 1: broker 1 has a record of epoch 0;"
        " broker 2 has a record of epoch 0."
    )


def test_another_epoch_is_a_difference_though_the_value_is_the_same():
    assert told(copy(1, SAME), copy(2, SAME, epoch=4))["differ"]


def test_a_record_that_one_has_skipped_is_a_difference():
    answer = told(copy(1, SAME), copy(2, {0: b"a", 2: b"c"}))
    assert "broker 2 has no record" in answer["sentence"]
    assert answer["rows"][1]["cells"]["2"] is None


def test_a_replica_that_serves_less_is_not_different():
    answer = told(copy(1, SAME), copy(2, {0: b"a"}, to=1))
    assert not answer["differ"]
    assert answer["sentence"].endswith("as far as all of them serve them (to 1).")
    assert "2" not in answer["rows"][1]["cells"]


def test_a_replica_that_cannot_be_read_is_left_out_and_says_why():
    answer = told(copy(1, SAME), copy(2, SAME), copy(3, {}, to=0, failure="cannot reach it"))
    assert answer["sentence"] == "2 replicas hold the same records from offset 0 to 2."
    assert answer["replicas"][2]["failure"] == "cannot reach it"


def test_one_replica_alone_is_compared_with_nobody():
    assert "nothing to compare" in told(copy(1, SAME), copy(2, {}, to=0, failure="x"))["sentence"]
    assert told(copy(1, {}, to=0, failure="x"))["sentence"] == "No replica could be read."
