"""The small text files, byte for byte as Kafka writes them, and every way they can be wrong."""

from __future__ import annotations

import pytest

from cotidal.log.checkpoint import (
    MetaProperties,
    decode_clean_shutdown,
    decode_epochs,
    decode_meta_properties,
    decode_offsets,
    decode_partition_metadata,
    encode_clean_shutdown,
    encode_epochs,
    encode_meta_properties,
    encode_offsets,
    encode_partition_metadata,
)
from cotidal.values import (
    BrokerEpoch,
    EpochEntry,
    LeaderEpoch,
    NodeId,
    Offset,
    TopicPartition,
    Uuid,
    uuid_from_text,
)

EPOCHS = (EpochEntry(LeaderEpoch(0), Offset(0)), EpochEntry(LeaderEpoch(3), Offset(17)))
TOPIC_ID = uuid_from_text("3Nc2Gj2JQr-GEeDfjM4zSw")


def test_epochs_are_written_as_kafka_writes_them() -> None:
    assert encode_epochs(EPOCHS) == b"0\n2\n0 0\n3 17\n"
    assert decode_epochs(b"0\n2\n0 0\n3 17\n") == EPOCHS
    assert encode_epochs(()) == b"0\n0\n"
    assert decode_epochs(b"0\n0\n") == ()
    assert decode_epochs(b"") == (), "made, and not yet filled"


def test_offsets_are_written_as_kafka_writes_them() -> None:
    offsets = {TopicPartition("a.b-c", 3): Offset(12), TopicPartition("d", 0): Offset(0)}
    data = b"0\n2\na.b-c 3 12\nd 0 0\n"
    assert encode_offsets(offsets) == data
    assert decode_offsets(data, "log-start-offset-checkpoint") == offsets


def test_partition_metadata_is_written_as_kafka_writes_it() -> None:
    data = b"version: 0\ntopic_id: 3Nc2Gj2JQr-GEeDfjM4zSw"
    assert encode_partition_metadata(TOPIC_ID) == data
    assert decode_partition_metadata(data) == TOPIC_ID
    assert decode_partition_metadata(data + b"\n") == TOPIC_ID


def test_meta_properties_that_kafka_wrote_are_read() -> None:
    data = (
        b"#\n#Fri Oct 25 12:00:00 UTC 2024\ncluster.id=4L6g3nShT-eMCtK--X86sw\n"
        b"directory.id=3Nc2Gj2JQr-GEeDfjM4zSw\nnode.id=2\nversion=1\n"
    )
    meta = MetaProperties("4L6g3nShT-eMCtK--X86sw", NodeId(2), TOPIC_ID)
    assert decode_meta_properties(data) == meta
    assert decode_meta_properties(encode_meta_properties(meta)) == meta
    old = decode_meta_properties(b"version=0\nbroker.id=7\ncluster.id=x\n")
    assert old == MetaProperties("x", NodeId(7), Uuid(bytes(16)))


def test_clean_shutdown_mark_carries_the_broker_epoch() -> None:
    assert encode_clean_shutdown(BrokerEpoch(41)) == b'{"version":0,"brokerEpoch":41}'
    assert decode_clean_shutdown(b'{"version":0,"brokerEpoch":41}') == 41
    assert decode_clean_shutdown(b"") == -1, "older Kafkas left it empty"
    assert decode_clean_shutdown(b'{"version":0}') == -1


@pytest.mark.parametrize(
    "data",
    [b"\n", b"0", b"0\n", b"1\n0\n", b"x\n0\n", b"0\n1\n", b"0\n0\n1 1\n", b"0\n1\n1\n",
     b"0\n1\n1 x\n", b"0\n1\n1 2 3\n", b"0\n2\n1 0\n1 5\n", b"0\n2\n2 5\n3 5\n", b"\xff\xfe",
     b"0\n-1\n", bytes(20)],
)  # fmt: skip
def test_damaged_epochs_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="leader-epoch-checkpoint"):
        decode_epochs(data)


def test_epochs_cut_short_at_any_byte_are_refused_or_whole() -> None:
    data = b"0\n2\n0 0\n3 170\n"
    for cut in range(1, len(data) - 4):
        with pytest.raises(ValueError, match="leader-epoch-checkpoint"):
            decode_epochs(data[:cut])


@pytest.mark.parametrize("data", [b"0\n1\ntopic 1\n", b"0\n1\ntopic x 1\n", b"0\n1\n1\n"])
def test_damaged_offsets_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"some-checkpoint: '.*' is not a line of it"):
        decode_offsets(data, "some-checkpoint")


@pytest.mark.parametrize(
    "data",
    [b"", b"version: 1\ntopic_id: 3Nc2Gj2JQr-GEeDfjM4zSw", b"version: 0\n", b"version: 0\ntopic",
     b"version: 0\ntopic_id: short"],
)  # fmt: skip
def test_damaged_partition_metadata_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"partition\.metadata|is not a uuid"):
        decode_partition_metadata(data)


@pytest.mark.parametrize(
    "data",
    [b"", b"version=2\nnode.id=1\ncluster.id=x", b"version=1\nnode.id=1",
     b"version=1\ncluster.id=x", b"version=1\ncluster.id=x\nnode.id=one", b"garbage"],
)  # fmt: skip
def test_damaged_meta_properties_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"meta\.properties"):
        decode_meta_properties(data)


@pytest.mark.parametrize("data", [b"{", b"[]", b'"x"', b'{"brokerEpoch": null}'])
def test_damaged_clean_shutdown_mark_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="kafka_cleanshutdown"):
        decode_clean_shutdown(data)
