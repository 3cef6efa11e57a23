"""Which acknowledged records are gone. Looked up in the logs, never assumed.

A record is lost when its leader's log has another one at its offset, or ends before it. With acks=1
that breaks no promise, for none was given; it is told all the same.
"""

from __future__ import annotations

from typing import NamedTuple

from cotidal.sim.checkers.ghost import Ghost
from cotidal.sim.workloads.history import Acked, History
from cotidal.sim.world import World
from cotidal.values import NodeId, Offset, TopicPartition
from cotidal.wire.batch import read_batches, stored_crc

READ_BYTES = 1 << 24


class Lost(NamedTuple):
    partition: TopicPartition
    offset: int
    acks: str


class Losses:
    def __init__(self, world: World, history: History, ghost: Ghost) -> None:
        self._world = world
        self._history = history
        self._ghost = ghost

    def found(self) -> list[Lost]:
        """Everything acknowledged that the leaders of now do not have."""
        gone: list[Lost] = []
        for level, facts in (
            ("all", self._history.acked),
            ("1", self._history.acked_by_leader),
        ):
            for partition, acked in facts.items():
                gone += self._missing(partition, acked, level)
        return gone

    def _missing(self, partition: TopicPartition, acked: list[Acked], level: str) -> list[Lost]:
        told = self._ghost.told(partition)
        if told is None:
            return []
        held = self.held(told.leader, partition)
        if held is None:
            return []
        return [
            Lost(partition, fact.offset, level)
            for fact in acked
            if held.get(fact.offset) != fact.crc
        ]

    def held(self, node_id: NodeId, partition: TopicPartition) -> dict[int, int] | None:
        """Base offset -> checksum of every batch in this log; None if it is not open."""
        machine = self._world.machines.get(node_id)
        process = None if machine is None else machine.process
        log = None if process is None else process.disk.log_of(partition)
        if machine is None or log is None:
            return None
        held: dict[int, int] = {}
        offset = log.start_offset
        with machine.files.unharmed():
            while offset < log.end_offset:
                data = log.read(Offset(offset), max_bytes=READ_BYTES, below=log.end_offset)
                batches = read_batches(data)
                if not batches.headers:
                    break
                position = 0
                for header in batches.headers:
                    held[header.base_offset] = stored_crc(data, position)
                    position += header.size_bytes
                    offset = header.next_offset
        return held
