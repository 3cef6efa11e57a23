"""The newest offset of each key, in bounded memory. Pure.

A short key stands for itself and a long one for its digest, so that an entry has a bounded size.
Digests are 128 bits: that two keys of one log share one is less likely than a fault of the disk
that nobody notices, and Kafka takes the same chance. Short keys are shorter than a digest, so the
two never meet.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

DIGEST_BYTES: Final = 16

KEY_BYTES: Final = 216
"""Memory of one key at worst: its bytes object, its offset, and its share of a dictionary that has
just grown. A test measures it. log.cleaner.dedupe.buffer.size divided by this is how many keys one
cleaning can hold."""


class KeyMap:
    __slots__ = ("_offsets", "capacity", "latest")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.latest = -1
        """The last offset that was taken in: of what comes after it nothing is known."""
        self._offsets: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def is_full(self) -> bool:
        return len(self._offsets) >= self.capacity

    def note(self, key: bytes, offset: int) -> None:
        if len(key) >= DIGEST_BYTES:
            key = blake2b(key, digest_size=DIGEST_BYTES).digest()
        self._offsets[key] = offset

    def newest(self, key: bytes) -> int:
        """-1 for a key that was never noted."""
        if len(key) >= DIGEST_BYTES:
            key = blake2b(key, digest_size=DIGEST_BYTES).digest()
        return self._offsets.get(key, -1)


def capacity(buffer_bytes: int) -> int:
    """How many keys fit; at least one, or nothing would ever be cleaned."""
    return max(1, buffer_bytes // KEY_BYTES)
