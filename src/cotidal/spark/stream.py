"""``spark.readStream.format("cotidal")``: what a stream is asked for, trigger by trigger.

``latestOffset`` is the driver's: how far the next batch goes. Spark asks for it some 85 times a
second while there is nothing to do, so the ends of the partitions are remembered for a moment.
``partitions`` divides a batch among tasks; before that it looks whether the logs still hold what
the stream has not read, and still end where it had read to.

Progress reports carry the ends of the partitions as ``latestOffset``, and under ``@lag`` how many
offsets lie between them and the batch that is being read.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from cotidal.client.cluster import Cluster
from cotidal.client.offsets import Position, earliest_offsets, epoch_ends
from cotidal.limits import SPARK_LATEST_AGE_MAX_S
from cotidal.spark.columns import arrow_schema
from cotidal.spark.failures import DataLost
from cotidal.spark.options import SourceOptions
from cotidal.spark.planning import (
    Partitions,
    find_partitions,
    latest_positions,
    plan_ranges,
    plan_tasks,
    reachable,
    starting_offsets,
)
from cotidal.spark.ranges import limited_ends
from cotidal.spark.reading import read_ranges
from cotidal.spark.stream_offsets import StreamOffset, from_json, to_json
from cotidal.values import Offset, TopicPartition

LAG: Final = "@lag"
ON_WITHOUT: Final = "set failOnDataLoss to false to go on without them"


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._ends: StreamOffset | None = None
        """As last asked for, at ``_ends_at``."""
        self._ends_at = 0.0
        self._target: StreamOffset | None = None
        """With availableNow: where the whole query ends."""
        self._planned: Mapping[TopicPartition, Position] = {}
        self._triggered_at = time.monotonic()

    def initialOffset(self) -> dict[str, Any]:
        with reachable(self._options) as cluster:
            partitions = find_partitions(cluster, self._options)
            begins = starting_offsets(cluster, self._options, partitions.all)
            ends = self._ask_ends(cluster, partitions)
        positions = {
            at: Position(begins[at], ends.positions[at].leader_epoch) for at in partitions.all
        }
        return to_json(StreamOffset(positions, partitions.topic_ids))

    def getDefaultReadLimit(self) -> ReadLimit:
        options = self._options
        if options.offsets_per_trigger_min is not None:
            return ReadMinRows(options.offsets_per_trigger_min)
        if options.offsets_per_trigger_max is not None:
            return ReadMaxRows(options.offsets_per_trigger_max)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._current_ends(age_max_s=0.0)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        stood = from_json(start)
        ends = self._target or self._current_ends(age_max_s=SPARK_LATEST_AGE_MAX_S)
        begins = self._begins(stood, ends)
        reached = {
            at: max(begins[at].offset, position.offset) for at, position in ends.positions.items()
        }
        if not isinstance(limit, ReadAllAvailable):
            if self._is_too_little(begins, reached):
                return start
            most = self._options.offsets_per_trigger_max
            if most is not None:
                offsets = {at: begin.offset for at, begin in begins.items()}
                reached = {
                    at: Offset(end) for at, end in limited_ends(offsets, reached, most=most).items()
                }
        if all(stood.offset(at) == end for at, end in reached.items()):
            return start  # the same text: otherwise Spark would run an empty batch
        self._triggered_at = time.monotonic()
        self._planned = {
            at: Position(end, ends.positions[at].leader_epoch)
            if end != begins[at].offset
            else begins[at]
            for at, end in reached.items()
        }
        return to_json(StreamOffset(self._planned, ends.topic_ids))

    def reportLatestOffset(self) -> dict[str, Any] | None:
        if self._ends is None:
            return None
        lags = [
            max(0, position.offset - self._planned[at].offset)
            for at, position in self._ends.positions.items()
            if at in self._planned
        ]
        return {**to_json(self._ends), LAG: {"total": sum(lags), "max": max(lags, default=0)}}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        stood, goes = from_json(start), from_json(end)
        with reachable(self._options) as cluster:
            begins = self._checked_begins(cluster, stood, goes)
        planned = plan_ranges(self._options, goes.topic_ids, begins, dict(goes.positions))
        return [InputPartition(task) for task in plan_tasks(self._options, planned)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_ranges(self._options, partition.value, arrow_schema(self._schema))

    # Where it begins and where it may end

    def _current_ends(self, *, age_max_s: float) -> StreamOffset:
        if self._ends is None or time.monotonic() - self._ends_at >= age_max_s:
            with reachable(self._options) as cluster:
                self._ask_ends(cluster, find_partitions(cluster, self._options))
        assert self._ends is not None
        return self._ends

    def _ask_ends(self, cluster: Cluster, partitions: Partitions) -> StreamOffset:
        positions = latest_positions(cluster, self._options, partitions)
        self._ends = StreamOffset(positions, partitions.topic_ids)
        self._ends_at = time.monotonic()
        return self._ends

    def _begins(self, stood: StreamOffset, ends: StreamOffset) -> dict[TopicPartition, Position]:
        """Where the stream stands; partitions that are new to it are read from their beginning."""
        begins = {at: each for at, each in stood.positions.items() if at in ends.positions}
        new = [at for at in ends.positions if at not in begins]
        if new:
            with reachable(self._options) as cluster:
                for at, first in earliest_offsets(cluster, new).items():
                    begins[at] = Position(first, ends.positions[at].leader_epoch)
        return begins

    def _is_too_little(
        self, begins: Mapping[TopicPartition, Position], reached: Mapping[TopicPartition, Offset]
    ) -> bool:
        least = self._options.offsets_per_trigger_min
        if least is None or self._target is not None:
            return False
        available = sum(end - begins[at].offset for at, end in reached.items())
        waited_s = time.monotonic() - self._triggered_at
        return available < least and waited_s < self._options.trigger_delay_s

    # What is no longer there

    def _checked_begins(
        self, cluster: Cluster, stood: StreamOffset, goes: StreamOffset
    ) -> dict[TopicPartition, Offset]:
        """Where each partition is read from. DataLost where that is not where it stood; with
        failOnDataLoss=false, where there is something to read again."""
        first = earliest_offsets(cluster, goes.positions)
        self._check_topics(cluster, stood, goes)
        known = {at: each for at, each in stood.positions.items() if at in goes.positions}
        told = epoch_ends(
            cluster,
            {at: each.leader_epoch for at, each in known.items() if each.leader_epoch >= 0},
        )
        begins: dict[TopicPartition, Offset] = {}
        for at, position in known.items():
            begin = position.offset
            if at in told and told[at].offset < begin:
                end = told[at].offset
                self._lost(
                    at, end, begin, f"the log was truncated to {end} after they were read, in an "
                    f"election that was not clean (epoch {position.leader_epoch})"
                )  # fmt: skip
                begin = Offset(max(end, 0))
            if first[at] > begin:
                self._lost(at, begin, first[at], f"the log begins at offset {first[at]} now")
                begin = first[at]
            begins[at] = begin
        for at in goes.positions:
            if at not in begins:
                if first[at] > 0:
                    self._lost(at, Offset(0), first[at], "the partition is new to this stream")
                begins[at] = first[at]
        return begins

    def _check_topics(self, cluster: Cluster, stood: StreamOffset, goes: StreamOffset) -> None:
        now = {topic.name: topic.topic_id for topic in cluster.metadata().topics}
        for topic, topic_id in {**goes.topic_ids, **stood.topic_ids}.items():
            if topic in now and now[topic] != topic_id:
                raise DataLost(
                    f"topic '{topic}' was deleted and made anew since this stream last read it; "
                    "begin again with a new checkpoint"
                )

    def _lost(self, at: TopicPartition, begin: Offset, end: Offset, why: str) -> None:
        told = f"offsets {begin} to {end - 1} of {at} are lost: {why}"
        if self._options.fail_on_data_loss:
            raise DataLost(f"{told}; {ON_WITHOUT}")
        logging.getLogger("cotidal.spark").warning(told)
