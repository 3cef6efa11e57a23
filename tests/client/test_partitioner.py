from __future__ import annotations

import pytest
from aiokafka.partitioner import murmur2 as signed_murmur2
from hypothesis import given
from hypothesis import strategies as st

from cotidal.client.partitioner import murmur2, partition_for_key


@given(st.binary(max_size=70))
def test_a_key_hashes_as_another_client_hashes_it(key: bytes) -> None:
    assert murmur2(key) == signed_murmur2(key) & 0xFFFFFFFF


@pytest.mark.parametrize(
    ("key", "hashed"),
    [  # the values that Kafka's own test of its murmur2 holds, as unsigned numbers
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_a_key_hashes_as_java_hashes_it(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed & 0xFFFFFFFF


@given(st.binary(max_size=20), st.integers(1, 1000))
def test_every_key_has_a_partition_that_exists(key: bytes, partitions: int) -> None:
    assert 0 <= partition_for_key(key, partitions=partitions) < partitions
