"""Entropy for every place of a world, from one seed and the place's name. Pure.

    sow(seed, "client", "p0")      the same numbers, whatever other places there are

No place draws from another's: leaving a fault, a client or a whole kind of them out does not shift
a single number elsewhere. What differs between two such runs differs because of what was left out.
"""

from __future__ import annotations

import zlib
from typing import Final

from cotidal.core.machine import Entropy

_ODD: Final = 0xD1B54A32D192ED03
"""Spreads the 32 bits of a checksum over 64."""


def sow(seed: int, *place: str | int) -> Entropy:
    name = "/".join(map(str, place)).encode()
    return Entropy(Entropy(seed).next_u64() ^ (zlib.crc32(name) * _ODD))
