"""What was acknowledged, as lines of JSON: the claims that an audit holds a topic against.

    {"topic": "orders", "partition": 0, "offset": 17, "sha256": "9f86d081884c7d65…"}

One line for each record, written after the cluster has acknowledged it. ``sha256`` is that of the
value, null for a tombstone; any producer can write such a file. With acks=0 there is nothing to be
written: nobody acknowledges.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256

from cotidal.client.producer import Acknowledged


def receipts(topic: str, acknowledged: Acknowledged) -> Iterator[str]:
    """A line for each record of a batch."""
    for number, value in enumerate(acknowledged.values):
        yield json.dumps(
            {
                "topic": topic,
                "partition": acknowledged.partition,
                "offset": acknowledged.base_offset + number,
                "sha256": None if value is None else sha256(value).hexdigest(),
            }
        )
