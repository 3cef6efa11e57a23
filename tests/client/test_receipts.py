from __future__ import annotations

import json
from hashlib import sha256

from cotidal.client.producer import Acknowledged
from cotidal.client.receipts import receipts
from cotidal.values import Offset


def test_a_receipt_names_place_and_digest_of_each_record_of_a_batch() -> None:
    told = [json.loads(line) for line in receipts("t", Acknowledged(2, Offset(7), (b"a", None)))]
    assert told == [
        {"topic": "t", "partition": 2, "offset": 7, "sha256": sha256(b"a").hexdigest()},
        {"topic": "t", "partition": 2, "offset": 8, "sha256": None},
    ]
