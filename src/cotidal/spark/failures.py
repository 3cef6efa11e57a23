"""What a job is told when it cannot go on. Each message is one sentence that names what to do.

SparkFailure
  WrongOption       an option that is unknown, lacks, or does not go with another one
  Unusable          brokers that cannot be reached, a topic that is not there, a missing extra
  DataLost          records that were to be read are no longer there, with their range
  DifferentBatch    a batch comes again, with other rows than were written for it

Raised on the driver wherever the driver can know. Spark runs a source in a Python process of its
own and hands on what it raises as a text, with the stack: ``sentence_in`` finds the sentence.
"""

from __future__ import annotations

import re
from typing import Final

_TOLD: Final = re.compile(rf"^{re.escape(__name__)}\.\w+: (.+)$", re.MULTILINE)


class SparkFailure(Exception):
    pass


class WrongOption(SparkFailure):
    pass


class Unusable(SparkFailure):
    pass


class DataLost(SparkFailure):
    pass


class DifferentBatch(SparkFailure):
    pass


def sentence_in(text: str) -> str | None:
    """What a failure of ours says, in what Spark makes of it."""
    found = _TOLD.search(text)
    return found[1].strip() if found else None
