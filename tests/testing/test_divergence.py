"""A partition that has parted: what each side has, and what a real client is told of it."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from cotidal.testing.divergence import Diverged, diverged


def consumer(parted: Diverged, offset: int, epoch: int | None = None) -> Consumer:
    made = Consumer(
        {
            "bootstrap.servers": parted.bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 100,
            "log_level": 0,
        }
    )
    place = {} if epoch is None else {"leader_epoch": epoch}
    made.assign([TopicPartition(parted.at.topic, 0, offset, **place)])
    return made


def read(parted: Diverged) -> list[bytes]:
    reading = consumer(parted, 0)
    wanted = len(parted.common) + len(parted.kept)
    try:
        return [message.value() or b"" for message in reading.consume(wanted, 20)]
    finally:
        reading.close()


def stored(parted: Diverged, node: int) -> bytes:
    directory = parted.cluster._data.path / f"node-{node}" / str(parted.at)
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))


def test_the_old_leader_has_a_tail_of_its_own_until_it_is_back(cotidal_diverged: Diverged) -> None:
    parted = cotidal_diverged
    assert parted.old_leader != parted.new_leader
    assert parted.old_epoch < parted.new_epoch
    assert parted.fork == len(parted.common)
    assert parted.drowned
    assert all(value in stored(parted, parted.old_leader) for value in parted.drowned)
    assert read(parted) == [*parted.common, *parted.kept]
    parted.come_back()
    logs = {stored(parted, node) for node in parted.cluster.nodes}
    assert len(logs) == 1
    assert not any(value in logs.pop() for value in parted.drowned[-1:])
    assert read(parted) == [*parted.common, *parted.kept]


def test_a_client_that_has_read_what_is_gone_detects_the_truncation(
    cotidal_diverged: Diverged,
) -> None:
    parted = cotidal_diverged
    reading = consumer(parted, parted.fork + 1, parted.old_epoch)
    try:
        message = reading.poll(20)
        assert message is not None
        error = message.error()
        assert error is not None
        assert error.code() == KafkaError._AUTO_OFFSET_RESET
        assert f"truncation detected at offset {parted.fork + 1}" in error.str()
    finally:
        reading.close()


def test_a_client_that_has_read_what_stayed_reads_on(cotidal_diverged: Diverged) -> None:
    parted = cotidal_diverged
    reading = consumer(parted, parted.fork, parted.old_epoch)
    try:
        message = reading.poll(20)
        assert message is not None
        assert message.error() is None
        assert message.value() == parted.kept[0]
    finally:
        reading.close()


def test_fewer_than_two_records_would_not_part_a_log_for_sure() -> None:
    with pytest.raises(ValueError, match="two records"), diverged(drowned=1):
        pass
