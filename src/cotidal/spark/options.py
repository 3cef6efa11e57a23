"""What a job may ask for, with the names and the meaning of Spark's own ``kafka`` format. Pure.

Spark hands options over in lower case. An unknown one is refused, with the name nearest to it: a
misspelt option that is ignored is how jobs read from the wrong place.

``kafka.*``: those of KAFKA_USED are obeyed; those that would have to be obeyed and cannot be
(security, deserializers, committed groups) are refused; the others tune a client that we are not,
and are passed over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from cotidal.client.addresses import parse_bootstrap
from cotidal.client.failures import nearest
from cotidal.limits import (
    SPARK_BATCH_BYTES,
    SPARK_BATCH_ROWS,
    SPARK_FETCH_BYTES,
    SPARK_TASK_RECORDS_MIN,
    SPARK_WRITE_BYTES,
)
from cotidal.spark.failures import WrongOption
from cotidal.wire.compression import Compression

SOURCE_OPTIONS: Final = (
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "endingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "maxRecordsPerPartition",
    "minRecordsPerPartition",
    "minPartitions",
    "failOnDataLoss",
    "includeHeaders",
    "groupIdPrefix",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "kafkaConsumer.pollTimeoutMs",
    "arrowBatchRows",
    "arrowBatchBytes",
)
KAFKA_USED: Final = (
    "kafka.bootstrap.servers",
    "kafka.client.rack",
    "kafka.isolation.level",
    "kafka.max.partition.fetch.bytes",
    "kafka.request.timeout.ms",
)
KAFKA_REFUSED: Final = {
    "kafka.auto.offset.reset": "write startingOffsets instead",
    "kafka.key.deserializer": "keys come as bytes: read them with DataFrame functions",
    "kafka.value.deserializer": "values come as bytes: read them with DataFrame functions",
    "kafka.enable.auto.commit": "offsets are kept in the query's checkpoint",
    "kafka.interceptor.classes": "there are no Java classes to be loaded",
}
SPARKS_OWN: Final = ("path", "checkpointlocation", "queryname", "paths")
"""What Spark itself puts among the options."""

EARLIEST: Final = -2
LATEST: Final = -1
"""As in the JSON of startingOffsets."""

DEFAULT_TIMEOUT_S: Final = 60.0
DEFAULT_TRIGGER_DELAY_S: Final = 15 * 60.0


class Subscribe(NamedTuple):
    topics: tuple[str, ...]


class SubscribePattern(NamedTuple):
    pattern: str


class Assign(NamedTuple):
    partitions: tuple[tuple[str, int], ...]


Selection: TypeAlias = Subscribe | SubscribePattern | Assign


class Everywhere(NamedTuple):
    """One end of every partition: EARLIEST or LATEST."""

    offset: int


class AtOffsets(NamedTuple):
    """An offset of every partition; EARLIEST and LATEST among them."""

    offsets: Mapping[tuple[str, int], int]


class AtTimestamps(NamedTuple):
    """The first record at or after a time: of each partition, or (None) of all."""

    timestamps: Mapping[tuple[str, int], int] | None
    of_all: int = 0


Bound: TypeAlias = Everywhere | AtOffsets | AtTimestamps


class SourceOptions(NamedTuple):
    bootstrap: str
    selection: Selection
    starting: Bound
    ending: Bound
    latest_if_no_later: bool
    """startingOffsetsByTimestampStrategy: what a time after the last record means."""
    offsets_per_trigger_max: int | None
    offsets_per_trigger_min: int | None
    trigger_delay_s: float
    records_per_partition_max: int | None
    records_per_partition_min: int
    partitions_min: int | None
    fail_on_data_loss: bool
    include_headers: bool
    read_committed: bool
    rack: str
    timeout_s: float
    fetch_bytes: int
    batch_rows: int
    batch_bytes: int


class _Given:
    """Options with their names in any case; remembers which were looked at."""

    def __init__(self, options: Mapping[str, str], known: tuple[str, ...]) -> None:
        self._options = {name.lower(): value for name, value in options.items()}
        self._check(known)

    def _check(self, known: tuple[str, ...]) -> None:
        allowed = {name.lower(): name for name in (*known, *KAFKA_USED)}
        for name in self._options:
            if name in KAFKA_REFUSED:
                raise WrongOption(f"the option {name} has no place here: {KAFKA_REFUSED[name]}")
            if name.startswith(("kafka.sasl.", "kafka.ssl.")):
                raise WrongOption(f"{name}: this client speaks no TLS and no SASL; leave it out")
            if name in allowed or name in SPARKS_OWN or name.startswith("kafka."):
                continue
            near = nearest(name, allowed)
            hint = f"; did you mean {allowed[near]}?" if near else ""
            raise WrongOption(f"there is no option {name} for format('cotidal'){hint}")
        if self.text("kafka.security.protocol", "PLAINTEXT").upper() != "PLAINTEXT":
            raise WrongOption("kafka.security.protocol: this client speaks PLAINTEXT only")

    def get(self, name: str) -> str | None:
        value = self._options.get(name.lower())
        return None if value is None else value.strip()

    def text(self, name: str, default: str) -> str:
        return self.get(name) or default

    def number(self, name: str, default: int | None = None, *, least: int = 1) -> int | None:
        text = self.get(name)
        if text is None:
            return default
        if not text.lstrip("-").isdecimal() or int(text) < least:
            raise WrongOption(f"{name} is '{text}'; write a whole number from {least} on")
        return int(text)

    def flag(self, name: str, *, default: bool) -> bool:
        text = self.text(name, str(default)).lower()
        if text not in ("true", "false"):
            raise WrongOption(f"{name} is '{text}'; write true or false")
        return text == "true"

    def only_one(self, names: tuple[str, ...]) -> str | None:
        given = [name for name in names if self.get(name) is not None]
        if len(given) > 1:
            raise WrongOption(f"{' and '.join(given)} exclude each other; keep one of them")
        return given[0] if given else None


def parse_source(options: Mapping[str, str], *, streaming: bool) -> SourceOptions:
    """WrongOption, with one sentence, for what cannot be meant."""
    given = _Given(options, SOURCE_OPTIONS)
    ending = _bound(given, "ending", Everywhere(LATEST))
    starting = _bound(given, "starting", Everywhere(LATEST if streaming else EARLIEST))
    if not streaming:
        _check_batch(starting, ending)
    elif any(given.get(f"ending{kind}") for kind in ("Offsets", "Timestamp", "OffsetsByTimestamp")):
        raise WrongOption("a stream has no end: leave out endingOffsets and its kin")
    strategy = given.text("startingOffsetsByTimestampStrategy", "error").lower()
    if strategy not in ("error", "latest"):
        raise WrongOption(
            f"startingOffsetsByTimestampStrategy is '{strategy}'; write error or latest"
        )
    isolation = given.text("kafka.isolation.level", "read_uncommitted").lower()
    if isolation not in ("read_uncommitted", "read_committed"):
        raise WrongOption(
            f"kafka.isolation.level is '{isolation}'; write read_committed or read_uncommitted"
        )
    return SourceOptions(
        bootstrap=_bootstrap(given),
        selection=_selection(given),
        starting=starting,
        ending=ending,
        latest_if_no_later=strategy == "latest",
        offsets_per_trigger_max=given.number("maxOffsetsPerTrigger"),
        offsets_per_trigger_min=given.number("minOffsetsPerTrigger"),
        trigger_delay_s=parse_seconds(
            "maxTriggerDelay", given.get("maxTriggerDelay"), DEFAULT_TRIGGER_DELAY_S
        ),
        records_per_partition_max=given.number("maxRecordsPerPartition"),
        records_per_partition_min=given.number("minRecordsPerPartition") or SPARK_TASK_RECORDS_MIN,
        partitions_min=given.number("minPartitions"),
        fail_on_data_loss=given.flag("failOnDataLoss", default=True),
        include_headers=given.flag("includeHeaders", default=False),
        read_committed=isolation == "read_committed",
        rack=given.text("kafka.client.rack", ""),
        timeout_s=_timeout_s(given),
        fetch_bytes=given.number("kafka.max.partition.fetch.bytes") or SPARK_FETCH_BYTES,
        batch_rows=given.number("arrowBatchRows") or SPARK_BATCH_ROWS,
        batch_bytes=given.number("arrowBatchBytes") or SPARK_BATCH_BYTES,
    )


def wants_headers(options: Mapping[str, str]) -> bool:
    """Asked for before anything else is looked at: which columns there are."""
    return _Given(options, SOURCE_OPTIONS).flag("includeHeaders", default=False)


def _timeout_s(given: _Given) -> float:
    milliseconds = given.number("kafka.request.timeout.ms")
    return DEFAULT_TIMEOUT_S if milliseconds is None else milliseconds / 1000


def _bootstrap(given: _Given) -> str:
    bootstrap = given.get("kafka.bootstrap.servers")
    if bootstrap is None:
        raise WrongOption("the option kafka.bootstrap.servers lacks; write host:port,host:port")
    try:
        parse_bootstrap(bootstrap)
    except ValueError as wrong:
        raise WrongOption(f"kafka.bootstrap.servers: {wrong}") from None
    return bootstrap


def _selection(given: _Given) -> Selection:
    names = ("subscribe", "subscribePattern", "assign")
    name = given.only_one(names)
    text = given.get(name) if name else None
    if not text:
        raise WrongOption("nothing is subscribed to; give subscribe, subscribePattern or assign")
    match name:
        case "subscribe":
            return Subscribe(tuple(part.strip() for part in text.split(",") if part.strip()))
        case "subscribePattern":
            try:
                re.compile(text)
            except re.error as wrong:
                raise WrongOption(f"subscribePattern is no regular expression: {wrong}") from None
            return SubscribePattern(text)
        case _:
            found = _json("assign", text, "{'orders': [0, 1]}")
            if not all(
                isinstance(of, list) and all(isinstance(each, int) for each in of)
                for of in found.values()
            ):
                raise WrongOption("""assign: write it as {"orders": [0, 1]}""")
            return Assign(tuple((topic, each) for topic, of in found.items() for each in of))


def _bound(given: _Given, which: str, default: Bound) -> Bound:
    """``which``: starting or ending. The order of precedence is the stock format's."""
    if given.get(f"{which}Timestamp") is not None:
        return AtTimestamps(None, given.number(f"{which}Timestamp", least=0) or 0)
    by_time = given.get(f"{which}OffsetsByTimestamp")
    if by_time is not None:
        return AtTimestamps(_per_partition(f"{which}OffsetsByTimestamp", by_time, least=0))
    text = given.get(f"{which}Offsets")
    match text.lower() if text else None:
        case None:
            return default
        case "earliest":
            return Everywhere(EARLIEST)
        case "latest":
            return Everywhere(LATEST)
        case _:
            assert text is not None
            return AtOffsets(_per_partition(f"{which}Offsets", text, least=EARLIEST))


def _check_batch(starting: Bound, ending: Bound) -> None:
    """A batch that begins at the end, or ends at the beginning, was not meant."""
    starts = starting.offsets.values() if isinstance(starting, AtOffsets) else ()
    if starting == Everywhere(LATEST) or LATEST in starts:
        raise WrongOption("startingOffsets of a batch query cannot be latest")
    ends = ending.offsets.values() if isinstance(ending, AtOffsets) else ()
    if ending == Everywhere(EARLIEST) or EARLIEST in ends:
        raise WrongOption("endingOffsets cannot be earliest")


def _per_partition(name: str, text: str, *, least: int) -> dict[tuple[str, int], int]:
    example = """{"orders": {"0": 23}}"""
    found = _json(name, text, example)
    wanted: dict[tuple[str, int], int] = {}
    for topic, partitions in found.items():
        if not isinstance(partitions, dict):
            raise WrongOption(f"{name}: write it as {example}")
        for partition, number in partitions.items():
            if not partition.isdecimal() or not isinstance(number, int) or number < least:
                raise WrongOption(f"{name}: partition {partition} of {topic} cannot be {number}")
            wanted[topic, int(partition)] = number
    return wanted


def _json(name: str, text: str, example: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise WrongOption(f"{name} is '{text}'; write it as {example}")
    return found


_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def parse_seconds(name: str, text: str | None, default: float) -> float:
    """``90s``, ``15m``, ``500ms``, ``1h``; a bare number is milliseconds, as Spark has it."""
    if text is None:
        return default
    found = re.fullmatch(r"(\d+)\s*([a-z]*)", text.lower())
    unit = found and _UNITS.get(found[2] or "ms")
    if not found or not unit:
        raise WrongOption(f"{name} is '{text}'; write a time such as 500ms, 90s or 15m")
    return int(found[1]) * unit


# The sink

SINK_OPTIONS: Final = ("topic", "delivery", "includeTimestamps", "txnAppId", "txnVersion")
SINK_KAFKA: Final = (
    "kafka.batch.size",
    "kafka.compression.type",
    "kafka.transaction.timeout.ms",
)
EXACTLY_ONCE: Final = "exactly-once"
AT_LEAST_ONCE: Final = "at-least-once"
DEFAULT_TRANSACTION_TIMEOUT_MS: Final = 300_000
"""A job that died and is not started again holds up those who read what is committed for so long:
as little as a long micro-batch allows. Brokers accept up to 15 minutes."""


class SinkOptions(NamedTuple):
    bootstrap: str
    topic: str | None
    exactly_once: bool
    include_timestamps: bool
    compression: str
    batch_bytes: int
    transaction_timeout_ms: int
    timeout_s: float
    job: str | None
    """txnAppId: who writes, over many jobs; with it ``batch``, which grows from job to job."""
    batch: int


def parse_sink(options: Mapping[str, str]) -> SinkOptions:
    given = _Given(options, (*SINK_OPTIONS, *SINK_KAFKA))
    delivery = given.text("delivery", EXACTLY_ONCE).lower()
    if delivery not in (EXACTLY_ONCE, AT_LEAST_ONCE):
        raise WrongOption(f"delivery is '{delivery}'; write {EXACTLY_ONCE} or {AT_LEAST_ONCE}")
    if given.text("kafka.acks", "all") not in ("all", "-1"):
        raise WrongOption("kafka.acks: rows are written with acks=all; leave it out")
    compression = given.text("kafka.compression.type", "none").upper()
    if compression not in Compression.__members__:
        known = ", ".join(each.name.lower() for each in Compression)
        raise WrongOption(
            f"kafka.compression.type is '{compression.lower()}'; write one of {known}"
        )
    timeout_ms = given.number("kafka.transaction.timeout.ms", DEFAULT_TRANSACTION_TIMEOUT_MS)
    assert timeout_ms is not None
    job, batch = given.get("txnAppId"), given.number("txnVersion", least=0)
    if (job is None) != (batch is None):
        raise WrongOption("txnAppId and txnVersion go together; give both, or none")
    return SinkOptions(
        bootstrap=_bootstrap(given),
        topic=given.get("topic"),
        exactly_once=delivery == EXACTLY_ONCE,
        include_timestamps=given.flag("includeTimestamps", default=False),
        compression=compression,
        batch_bytes=given.number("kafka.batch.size") or SPARK_WRITE_BYTES,
        transaction_timeout_ms=timeout_ms,
        timeout_s=_timeout_s(given),
        job=job,
        batch=batch or 0,
    )
