"""A digest of rows that does not depend on their order. Pure.

A batch that is run again may bring its rows in another order (after a shuffle it does), and is the
same batch all the same. So each row has a number of its own, SipHash of its columns under fixed
keys, and the digest is their sum: rows that differ, lack or come twice change it.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

MASK: Final = 0xFFFFFFFFFFFFFFFF
NULL: Final = np.uint64(0x9E3779B97F4A7C15)
"""What a null counts as: no value hashes to it on purpose."""


class Digest(NamedTuple):
    rows: int = 0
    total: int = 0

    def __str__(self) -> str:
        return f"{self.total:016x}"

    def with_rows(self, columns: list[pa.Array]) -> Digest:
        """``columns``: binary, all of the same length."""
        count = len(columns[0])
        row = np.zeros(count, np.uint64)
        for at, column in enumerate(columns):
            row = _mixed(row * np.uint64(31) + _hashes(column, at))
        return Digest(self.rows + count, (self.total + int(row.sum(dtype=np.uint64))) & MASK)


def _hashes(column: pa.Array, at: int) -> Any:
    from pandas.util import hash_array

    plain = column.fill_null(b"").to_numpy(zero_copy_only=False)
    hashed = hash_array(plain, hash_key=f"cotidal-column-{at}"[:16].ljust(16), categorize=False)
    if column.null_count:
        hashed = np.where(column.is_null().to_numpy(zero_copy_only=False), NULL, hashed)
    return hashed


def _mixed(numbers: Any) -> Any:
    """Every bit of the result depends on every bit of the number."""
    numbers = (numbers ^ (numbers >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    numbers = (numbers ^ (numbers >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return numbers ^ (numbers >> np.uint64(33))
