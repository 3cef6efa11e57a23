"""``cotidal log``: what is in a segment file, batch by batch, and where it is damaged.

Reads the file as it is: no index, no broker. A batch with a wrong checksum, or out of order with
its neighbours, is told and passed over; where the bytes are no batch at all, the reading ends.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

import click

from cotidal.cli.table import bytes_text, red
from cotidal.cli.verb import Failed, Verb, VerbGroup

if TYPE_CHECKING:
    from cotidal.messages.batch import BatchHeader
    from cotidal.wire.records import Record

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
COLUMNS: Final = (
    "  POSITION     FIRST OFFSET      LAST OFFSET  RECORDS  EPOCH        SIZE  CODEC   CRC"
)
METADATA_LOG: Final = "__cluster_metadata-0"
VALUE_CHARACTERS: Final = 120
SEGMENT: Final = "cotidal-data/node-1/orders-0/00000000000000000000.log"
"""In examples: a partition of a cluster of `cotidal up`."""


class Batch(NamedTuple):
    """One batch of a file, good or damaged."""

    position: int
    header: BatchHeader
    data: bytes
    fault: str | None
    records: tuple[tuple[Record, str | None], ...] = ()
    """When they were asked for and can be read; with what they mean, where we know."""


class Unreadable(NamedTuple):
    """From here on the bytes are no batches."""

    position: int
    fault: str


class Totals:
    """What a dump has seen."""

    __slots__ = ("batches", "end", "faults", "first", "records", "size_bytes")

    def __init__(self) -> None:
        self.batches = self.records = self.size_bytes = 0
        self.first: int | None = None
        self.end = 0
        self.faults: list[tuple[int, str]] = []


@click.group(
    cls=VerbGroup,
    examples=(("batches of a segment", f"cotidal log dump {SEGMENT}"),),
)
def command() -> None:
    """Look into log files on disk."""


@command.command(
    cls=Verb,
    examples=(
        ("batches", f"cotidal log dump {SEGMENT}"),
        ("records too", f"cotidal log dump --records {SEGMENT}"),
        ("one JSON object a batch", "cotidal log dump --json cotidal-data/node-1/orders-0/*.log"),
    ),
)
@click.argument("segments", nargs=-1, required=True, metavar="SEGMENT...", type=click.Path())
@click.option("--records", is_flag=True, help="Also the records inside each batch.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a batch, one a line.")
def dump(segments: tuple[str, ...], records: bool, as_json: bool) -> None:
    """Print the batches of segment files, with the verdict on each checksum.

    The exit status is 1 when a file is damaged.
    """
    damaged: list[str] = []
    for path in segments:
        if len(segments) > 1 and not as_json:
            click.echo(f"{path}:")
        totals = dump_segment(path, records=records, as_json=as_json)
        if totals.faults:
            position, fault = totals.faults[0]
            damaged.append(f"{path} is damaged at byte {position}: {fault}")
    if damaged:
        more = f" ({len(damaged) - 1} more files are damaged)" if len(damaged) > 1 else ""
        raise Failed(f"{damaged[0]}{more}; a broker that starts with it cuts the log there")


def dump_segment(path: str, *, records: bool, as_json: bool) -> Totals:
    check_name(path)
    totals = Totals()
    with open(path, "rb", buffering=1024 * 1024) as file:
        if not as_json:
            click.echo(COLUMNS)
        for found in batches_of(file, base_offset=base_offset_of(path)):
            if records and isinstance(found, Batch):
                found = with_records(found, metadata=is_metadata_log(path))
            if found.fault:
                totals.faults.append((found.position, found.fault))
            match found:
                case Unreadable():
                    print_unreadable(found, path, as_json=as_json)
                case Batch():
                    count(totals, found.header)
                    print_batch(found, path, as_json=as_json)
    if not as_json:
        span = f"offsets {totals.first} to {totals.end - 1}" if totals.batches else "empty"
        click.echo(
            f"{totals.batches} batches, {totals.records} records, {span}, "
            f"{bytes_text(totals.size_bytes)}, "
            + (red(f"{len(totals.faults)} damaged") if totals.faults else "no damage")
        )
    return totals


def check_name(path: str) -> None:
    if os.path.isdir(path):
        raise Failed(f"{path} is a directory; name a .log file in it")
    if path.endswith((".index", ".timeindex", ".txnindex", ".snapshot")):
        stem = os.path.splitext(path)[0]
        raise Failed(f"{path} is not a segment; dump {stem}.log, which it belongs to")


def base_offset_of(path: str) -> int:
    """A segment is named after its first offset; any other name promises nothing."""
    stem = os.path.splitext(os.path.basename(path))[0]
    return int(stem) if stem.isdecimal() and stem.isascii() else 0


def batches_of(file: BinaryIO, *, base_offset: int) -> Iterator[Batch | Unreadable]:
    from cotidal.log.scan import crc_fault, front_at, front_fault
    from cotidal.messages.batch import HEADER_BYTES
    from cotidal.wire.batch import MAGIC, read_header

    position, next_offset, epoch = 0, base_offset, -1
    left = os.fstat(file.fileno()).st_size
    while left:
        head = file.read(HEADER_BYTES)
        if len(head) < HEADER_BYTES:
            yield Unreadable(position, f"{len(head)} bytes are no whole batch header")
            return
        front = front_at(head, 0)
        fault = front_fault(front, next_offset=next_offset, epoch=epoch)
        if fault and (front.magic != MAGIC or front.size_bytes < HEADER_BYTES):
            yield Unreadable(position, fault)
            return
        if front.size_bytes > left:
            yield Unreadable(
                position, f"the batch has {front.size_bytes} bytes, but only {left} are left"
            )
            return
        data = head + file.read(front.size_bytes - HEADER_BYTES)
        fault = crc_fault(front, data, 0) or fault
        yield Batch(position, read_header(data), data, fault)
        position += front.size_bytes
        left -= front.size_bytes
        if fault is None:
            next_offset, epoch = front.last_offset + 1, front.leader_epoch


def with_records(batch: Batch, *, metadata: bool) -> Batch:
    """The batch with its records; where it is damaged there are none to be trusted."""
    from cotidal.errors import PeerError
    from cotidal.wire.records import read_records

    if batch.fault:
        return batch
    try:
        return batch._replace(
            records=tuple(
                (record, meaning_of(batch.header, record, metadata=metadata))
                for record in read_records(batch.data)
            )
        )
    except PeerError as wrong:
        return batch._replace(fault=f"its records cannot be read: {wrong}")


def count(totals: Totals, header: BatchHeader) -> None:
    totals.batches += 1
    totals.records += header.record_count
    totals.size_bytes += header.size_bytes
    if totals.first is None:
        totals.first = header.base_offset
    totals.end = header.next_offset


def codec_name(header: BatchHeader) -> str:
    return CODECS[header.compression] if header.compression < len(CODECS) else "?"


def print_unreadable(found: Unreadable, path: str, *, as_json: bool) -> None:
    if as_json:
        print_line({"segment": path, "position": found.position, "damage": found.fault})
    else:
        click.echo(red(f"{found.position:>10}  no batch: {found.fault}"))


def print_batch(batch: Batch, path: str, *, as_json: bool) -> None:
    if as_json:
        print_line(batch_json(batch, path))
        return
    header = batch.header
    notes = [
        *(["control"] if header.is_control else []),
        *(["transactional"] if header.is_transactional else []),
        *(["append time"] if header.has_log_append_time else []),
        *([f"producer {header.producer_id} epoch {header.producer_epoch} "
           f"sequence {header.base_sequence}"] if header.producer_id >= 0 else []),
    ]  # fmt: skip
    line = (
        f"{batch.position:>10} {header.base_offset:>16} {header.last_offset:>16}"
        f" {header.record_count:>8} {header.leader_epoch:>6} {bytes_text(header.size_bytes):>11}"
        f"  {codec_name(header):<6}  "
    )
    verdict = red(batch.fault) if batch.fault else "ok"
    click.echo(f"{line}{verdict}" + (f"  ({', '.join(notes)})" if notes else ""))
    for record, meaning in batch.records:
        click.echo(f"{'':>12}{record.offset}  {meaning or record_text(record)}")


def is_metadata_log(path: str) -> bool:
    return os.path.basename(os.path.dirname(os.path.abspath(path))) == METADATA_LOG


def meaning_of(header: BatchHeader, record: Record, *, metadata: bool) -> str | None:
    """What a control record, or a record of the metadata log, says; None for users' records."""
    from cotidal.wire.record_framing import decode_metadata
    from cotidal.wire.records import read_control_record

    if header.is_control:
        known = read_control_record(record)
        return f"{known[0].name} {value_text(known[1])}" if known else "a control record of later"
    if metadata and record.value is not None:
        return value_text(decode_metadata(record.value))
    return None


def value_text(value: NamedTuple) -> str:
    """``TopicRecord name=orders topic_id=...``: fields as Kafka's tools would print them."""
    from cotidal.values import Uuid, uuid_text

    def text(field: object) -> str:
        match field:
            case bytes() if len(field) == 16:
                return uuid_text(Uuid(field))
            case tuple() if hasattr(field, "_fields"):
                return "(" + " ".join(
                    f"{name}={text(each)}"
                    for name, each in zip(field._fields, field, strict=True)
                ) + ")"  # fmt: skip
            case tuple():
                return "[" + ", ".join(map(text, field)) + "]"
            case _:
                return str(field)

    fields = zip(value._fields, value, strict=True)
    return " ".join([type(value).__name__, *(f"{name}={text(each)}" for name, each in fields)])


def record_text(record: Record) -> str:
    headers = "".join(f" {name}={shown(value)}" for name, value in record.headers)
    return f"time {record.timestamp}  key {shown(record.key)}  value {shown(record.value)}{headers}"


def shown(value: bytes | None) -> str:
    """Bytes as a person can read them, cut where they get long."""
    if value is None:
        return "null"
    try:
        text = value.decode()
        printable = text.isprintable()
    except UnicodeDecodeError:
        printable = False
    if not printable:
        text = "0x" + value[:VALUE_CHARACTERS].hex()
    more = f"... ({len(value)} bytes)" if len(text) > VALUE_CHARACTERS else ""
    return text[:VALUE_CHARACTERS] + more


def batch_json(batch: Batch, path: str) -> dict[str, object]:
    header = batch.header
    fields: dict[str, object] = {
        "segment": path,
        "position": batch.position,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "record_count": header.record_count,
        "leader_epoch": header.leader_epoch,
        "size_bytes": header.size_bytes,
        "codec": codec_name(header),
        "base_timestamp": header.base_timestamp,
        "max_timestamp": header.max_timestamp,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "damage": batch.fault,
    }
    if batch.records:
        fields["records"] = [record_json(record, meaning) for record, meaning in batch.records]
    return fields


def record_json(record: Record, meaning: str | None) -> dict[str, object]:
    from cotidal.cli.record_format import bytes_field

    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        **bytes_field("key", record.key),
        **bytes_field("value", record.value),
        "headers": [
            {"name": name, **bytes_field("value", value)} for name, value in record.headers
        ],
        **({"meaning": meaning} if meaning else {}),
    }


def print_line(fields: dict[str, object]) -> None:
    import json

    click.echo(json.dumps(fields, ensure_ascii=False, separators=(",", ":")))
