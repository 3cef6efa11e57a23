"""A snapshot is read back as it was written, and nothing else is taken for one."""

from __future__ import annotations

import pytest

from cotidal.errors import MalformedFrame
from cotidal.messages.records.metadata import NoOpRecord, TopicRecord
from cotidal.messages.records.quorum import (
    Endpoint,
    KRaftVersionFeature,
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
    VotersRecordVoter,
)
from cotidal.values import LeaderEpoch, Uuid, WallMillis
from cotidal.wire.batch import read_batches
from cotidal.wire.metadata_batch import encode_metadata_batch
from cotidal.wire.metadata_snapshot import (
    BATCH_RECORDS,
    decode_metadata_snapshot,
    encode_metadata_snapshot,
)

VOTER = VotersRecordVoter(
    1, Uuid(b"d" * 16), (Endpoint("CONTROLLER", "localhost", 9093),), KRaftVersionFeature(0, 1)
)
CONTROL = (KRaftVersionRecord(0, 1), VotersRecord(0, (VOTER,)))
TOPICS = tuple(TopicRecord(f"t{n}", Uuid(n.to_bytes(16, "big"))) for n in range(3))


def written(records=TOPICS, control=CONTROL) -> list[bytes]:
    return list(
        encode_metadata_snapshot(
            records,
            control=control,
            epoch=LeaderEpoch(7),
            log_wall=WallMillis(1_000),
            wall=WallMillis(2_000),
        )
    )


def test_header_records_and_footer_are_read_back_in_their_order():
    header, body, footer = decode_metadata_snapshot(b"".join(written()))
    assert header.records == (SnapshotHeaderRecord(0, 1_000), *CONTROL)
    assert (body.records, body.control) == (TOPICS, False)
    assert footer.records == (SnapshotFooterRecord(0),)
    assert [each.base_offset for each in (header, body, footer)] == [0, 3, 6]
    assert {each.leader_epoch for each in (header, body, footer)} == {7}
    assert {each.wall for each in (header, body, footer)} == {2_000}


def test_an_empty_image_is_a_header_and_a_footer():
    header, footer = decode_metadata_snapshot(b"".join(written((), ())))
    assert header.records == (SnapshotHeaderRecord(0, 1_000),)
    assert footer.records == (SnapshotFooterRecord(0),)


def test_many_records_are_spread_over_batches_without_a_gap():
    data = b"".join(written([NoOpRecord()] * (2 * BATCH_RECORDS + 1)))
    headers = read_batches(data).headers
    assert [header.record_count for header in headers] == [3, BATCH_RECORDS, BATCH_RECORDS, 1, 1]
    assert [header.base_offset for header in headers[1:]] == [
        header.next_offset for header in headers[:-1]
    ]


@pytest.mark.parametrize("cut", [0, 1, 60, 200])
def test_what_is_cut_short_is_refused(cut):
    data = b"".join(written())
    with pytest.raises(MalformedFrame, match="ends before its footer"):
        decode_metadata_snapshot(data[:cut])


def test_a_missing_footer_is_refused():
    with pytest.raises(MalformedFrame, match="ends before its footer"):
        decode_metadata_snapshot(b"".join(written()[:-1]))


def test_a_log_is_no_snapshot():
    batch = encode_metadata_batch(
        TOPICS, base_offset=0, leader_epoch=7, control=False, wall=WallMillis(0)
    )
    with pytest.raises(MalformedFrame, match="does not begin with a header"):
        decode_metadata_snapshot(batch)


def test_a_changed_byte_is_found_wherever_it_is():
    data = bytearray(b"".join(written()))
    for at in range(len(data)):
        data[at] ^= 0x40
        try:
            found = decode_metadata_snapshot(bytes(data))
        except MalformedFrame:
            pass
        else:  # outside the crc: base offset and epoch of a batch
            assert [each.records for each in found][1] == TOPICS
        data[at] ^= 0x40
