"""Which partition a record goes to. Pure.

A keyed record goes where the Java clients would put it: murmur2 of the key. Records without a key
stick to one partition per flush, and the next flush takes the next one (KIP-480's idea): batches
stay large and partitions fill evenly.
"""

from __future__ import annotations

from typing import Final

SEED: Final = 0x9747B28C
MULTIPLIER: Final = 0x5BD1E995
MASK: Final = 0xFFFFFFFF


def murmur2(key: bytes) -> int:
    """Austin Appleby's 32-bit MurmurHash2 with the seed that Kafka chose, unsigned."""
    length = len(key)
    whole = length & ~3
    mixed = SEED ^ length
    for at in range(0, whole, 4):
        word = int.from_bytes(key[at : at + 4], "little") * MULTIPLIER & MASK
        word = (word ^ (word >> 24)) * MULTIPLIER & MASK
        mixed = (mixed * MULTIPLIER & MASK) ^ word
    if whole != length:
        mixed = (mixed ^ int.from_bytes(key[whole:], "little")) * MULTIPLIER & MASK
    mixed = (mixed ^ (mixed >> 13)) * MULTIPLIER & MASK
    return mixed ^ (mixed >> 15)


def partition_for_key(key: bytes, *, partitions: int) -> int:
    """The partition that a Java producer with default settings gives this key."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
