"""What the active controller knows at this moment besides the image. Pure.

Handed to the decisions that brokers and controllers ask for among themselves (registry.INTERNAL).
Soft state: a decision may change it, and it is gone after a failover.
"""

from __future__ import annotations

from typing import NamedTuple

from cotidal.core.cluster.duties import Duties
from cotidal.values import Millis, Offset


class Active(NamedTuple):
    duties: Duties
    now: Millis
    end_offset: Offset
    """Where the first record of a decision will be written."""
    cluster_id: str
