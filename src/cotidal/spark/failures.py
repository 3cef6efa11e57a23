"""What a job is told when it cannot go on. Each message is one sentence that names what to do.

SparkFailure
  WrongOption       an option that is unknown, lacks, or does not go with another one
  Unusable          brokers that cannot be reached, a topic that is not there, a missing extra
  DataLost          records that were to be read are no longer there, with their range
  DifferentBatch    a batch comes again, with other rows than were written for it

Raised on the driver wherever the driver can know.
"""

from __future__ import annotations


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
