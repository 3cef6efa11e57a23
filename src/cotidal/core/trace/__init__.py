"""What happened, in words: one line for a person, one JSON object for a program. Pure.

Scripts, the simulator, the live trace and the page share it, so that an event reads the same
wherever it is met. Names are those of the classes, in lower case: ``ProposeIsr`` is
``propose-isr``.

    told        the shape of what is told, and shared words
    partition   one replica of one partition: events, verdicts, effects, where it stands
    quorum      one node of the quorum, and what such nodes say to each other
    cluster     the metadata log, what is asked of the controller and what it decides

A node's own events and effects, which are not of ``core``, are told by ``node.trace``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, get_args

from cotidal.core.trace.cluster import ClusterMoment, partition_words, tell_cluster, tell_record
from cotidal.core.trace.partition import (
    PartitionMoment,
    state_json,
    state_line,
    tell_partition,
)
from cotidal.core.trace.quorum import QuorumMoment, quorum_json, quorum_line, tell_quorum
from cotidal.core.trace.told import Json, Told, spans

__all__ = [
    "Json",
    "Moment",
    "Told",
    "as_json",
    "line",
    "partition_words",
    "quorum_json",
    "quorum_line",
    "spans",
    "state_json",
    "state_line",
    "tell",
    "tell_record",
]

Moment: TypeAlias = PartitionMoment | QuorumMoment | ClusterMoment


def tell(moment: Moment) -> Told:
    return _TELLERS[type(moment)](moment)


def line(moment: Moment) -> str:
    return tell(moment).line


def as_json(moment: Moment) -> Json:
    return tell(moment).json


_TELLERS: Final[dict[type, Callable[[Any], Told]]] = {
    **dict.fromkeys(get_args(PartitionMoment), tell_partition),
    **dict.fromkeys(get_args(QuorumMoment), tell_quorum),
    **dict.fromkeys(get_args(ClusterMoment), tell_cluster),
}
