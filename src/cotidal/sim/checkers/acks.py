"""What producers are told, against what disks have told their nodes.

A node may say that a batch stands at an offset once its log has confirmed so much (WRITTEN_BEFORE_
TOLD), at every level of acks: acks=1 promises no more than that, so nothing else would notice. Who
else must have the batch before acks=all is told is looked at where high watermarks move (steps.py).
"""

from __future__ import annotations

from cotidal.invariants import WRITTEN_BEFORE_TOLD
from cotidal.messages.rpc.produce import ProduceResponse
from cotidal.node.effects import Effect, Respond
from cotidal.node.events import Appended, Event, LogOpened
from cotidal.sim.checkers.window import image_of
from cotidal.sim.process import Process
from cotidal.sim.violation import Violation
from cotidal.values import NodeId, Uuid

LogOfALife = tuple[NodeId, int, Uuid, int]
"""Node, incarnation, topic id, partition."""


class AckChecker:
    def __init__(self) -> None:
        self._ends: dict[LogOfALife, int] = {}
        """How far each log has ever reached, as the disk has told its node. A log that is cut later
        does not unsay what was told before."""

    def look(self, process: Process, event: Event, effects: tuple[Effect, ...]) -> None:
        kind = event.__class__
        if kind is Appended or kind is LogOpened:
            assert isinstance(event, (Appended, LogOpened))
            place = self._log(process, event.topic_id, event.partition.partition)
            self._ends[place] = max(self._ends.get(place, 0), event.end_offset)
        for effect in effects:
            if effect.__class__ is Respond and isinstance(effect.message, ProduceResponse):
                self._look_at_response(process, effect.message)

    def _look_at_response(self, process: Process, response: ProduceResponse) -> None:
        image = image_of(process)
        for topic in response.responses:
            name = topic.name or image.topic_names.get(topic.topic_id, "")
            known = image.topics.get(name)
            if known is None:
                continue  # deleted since
            for told in topic.partition_responses:
                end = self._ends.get(self._log(process, known.topic_id, told.partition_index), 0)
                if told.error_code == 0 and told.base_offset >= end:
                    raise Violation(
                        WRITTEN_BEFORE_TOLD,
                        f"node {process.node_id} acknowledges offset {told.base_offset} of"
                        f" {name}-{told.partition_index}; its disk has told of {end}",
                    )

    @staticmethod
    def _log(process: Process, topic_id: Uuid, partition: int) -> LogOfALife:
        return (process.node_id, process.incarnation, topic_id, partition)
