"""The health sample of each second: what a broker leads, and which of it is worth a line. Pure.

A partition is listed when it has changed since it was last listed, or while a follower lags in it;
so whoever reads all samples knows the state of every partition, though most are short. Where there
is no room for all, those that have waited longest come first. The events topic is left out.
"""

from __future__ import annotations

from typing import NamedTuple

from cotidal.core.cluster.decide.topics import EVENTS_TOPIC
from cotidal.core.partition.replica import Leadership, Replica
from cotidal.limits import ACK_SPANS, HEALTH_PARTITIONS_MAX
from cotidal.node import vitals
from cotidal.node.happenings import Health
from cotidal.node.state import NodeState
from cotidal.values import NodeId, Offset, TopicPartition


class Marks(NamedTuple):
    """What makes a partition worth another line when it changes."""

    ails: bool
    end_offset: Offset
    high_watermark: Offset
    start_offset: Offset
    isr: tuple[NodeId, ...]


class Due(NamedTuple):
    """A partition that is worth a line."""

    last_sample: int
    """Which named it last; 0: none."""
    replica: Replica
    leadership: Leadership
    marks: Marks


class Sampler:
    __slots__ = ("_acks", "_last", "_samples")

    def __init__(self) -> None:
        self._samples = 0
        self._acks: tuple[int, ...] = (0,) * ACK_SPANS
        """As the tally had them at the last sample."""
        self._last: dict[TopicPartition, tuple[int, Marks]] = {}
        """The last sample that named a partition, and what it looked like then."""

    def sample(self, state: NodeState) -> Health:
        self._samples += 1
        leads = under_replicated = under_min_isr = 0
        due: list[Due] = []
        for replica, leadership in vitals.led(state):
            if replica.partition.topic == EVENTS_TOPIC:
                continue
            leads += 1
            under_replicated += vitals.is_under_replicated(leadership)
            under_min_isr += vitals.is_under_min_isr(leadership)
            marks = _marks(replica, leadership)
            number, before = self._last.get(replica.partition, (0, None))
            if marks.ails or marks != before:
                due.append(Due(number, replica, leadership, marks))
        left_out = max(0, len(due) - HEALTH_PARTITIONS_MAX)
        if left_out:
            due.sort(key=_waited)
            del due[HEALTH_PARTITIONS_MAX:]
        self._remember(state, due)
        return Health(
            leads,
            sum(partition.topic != EVENTS_TOPIC for partition in state.hosted),
            under_replicated,
            under_min_isr,
            vitals.offline_replicas(state),
            state.tally.events_dropped,
            self._new_acks(state),
            tuple(vitals.partition_health(d.replica, d.leadership, state.now) for d in due),
            left_out,
        )

    def _new_acks(self, state: NodeState) -> tuple[int, ...]:
        before, self._acks = self._acks, tuple(state.tally.ack_ms)
        new = [after - earlier for earlier, after in zip(before, self._acks, strict=True)]
        while new and not new[-1]:
            new.pop()
        return tuple(new)

    def _remember(self, state: NodeState, told: list[Due]) -> None:
        for each in told:
            self._last[each.replica.partition] = (self._samples, each.marks)
        if len(self._last) > 2 * len(state.hosted):  # of partitions that have gone elsewhere
            self._last = {at: last for at, last in self._last.items() if at in state.hosted}


def _marks(replica: Replica, leadership: Leadership) -> Marks:
    end = replica.end_offset
    ails = vitals.is_under_replicated(leadership)
    for follower in leadership.followers.values():
        ails = ails or follower.end_offset < end
    return Marks(ails, end, replica.high_watermark, replica.start_offset, leadership.isr)


def _waited(due: Due) -> int:
    return due.last_sample
