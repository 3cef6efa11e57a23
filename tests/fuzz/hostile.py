"""Hostile inputs: bytes that a broken or malicious client may send. Pure; one seed, one sequence.

Half of them are wrong as bytes: noise, other protocols, and good frames that are damaged, cut,
stretched or glued. The other half are well-formed frames that make no sense: topics, ids, offsets,
epochs, sizes and sessions that nobody has, the same thing twice, numbers at the edge of their type.

Frames are made from the schema, so that every API and version that is served takes part, today's
and tomorrow's. The choices for a field come from its name; the first of them makes sense, and a
frame made of first choices alone is what a good client would send.

Every input is about one topic, the prey, or about one that is created and deleted all the time,
so that the prey lives on. Nothing here names another topic that exists.
"""

from __future__ import annotations

import importlib
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from cotidal.api.registry import APIS, OURS
from cotidal.messages.batch import Batches
from cotidal.messages.rpc.apis import ApiKey
from cotidal.values import ZERO_UUID, Uuid
from cotidal.wire.batch import CRC_START, crc32c
from cotidal.wire.frames import request_buffers
from cotidal.wire.records import Record, build_batch
from tools.message_schema import Field, Message, Module, Struct, read_modules

SCHEMA: Final = Path(__file__).resolve().parents[2] / "schema"

MEANINGLESS: Final = "meaningless"

ABSURD: Final = {
    "int8": (0, 1, -1, 7, -128, 127),
    "int16": (0, 1, -1, 7, -(2**15), 2**15 - 1),
    "int32": (0, 1, -1, 5, 1_000, 2**24, -(2**31), 2**31 - 1),
    "int64": (0, 1, -1, 17, -2, -3, 10**15, -(2**63), 2**63 - 1),
    "uint16": (0, 1, 9092, 2**16 - 1),
    "uint32": (0, 1, 2**32 - 1),
    "float64": (0.0, 1.5, -1.0, float("inf"), float("nan")),
    "bool": (False, True),
    "bytes": (b"", b"x", bytes(1_000)),
}

TEXTS: Final = (
    "", "a", "nobody", ".", "..", "a/b", "../../etc", "\0", "é漢😀", " ", "x" * 249, "x" * 250,
    "x" * 30_000, "__cluster_metadata", "__consumer_offsets", "%s%n", "a\nb",
)  # fmt: skip

MAYFLY: Final = "mayfly"
"""The topic that is created and deleted."""

TOPIC_FIELDS: Final = ("name", "topic", "topics", "topic_name", "topic_names")

NOBODYS_IDS: Final = (Uuid(b"0123456789abcdef"), ZERO_UUID, Uuid(b"\xff" * 16))

BY_NAME: Final[dict[str, tuple[Any, ...]]] = {
    "partition": (0, 1, 2, -1, 99, 2**31 - 1, -(2**31)),
    "partition_index": (0, 1, 2, -1, 99, 2**31 - 1, -(2**31)),
    "partitions": (0, 1, 2, -1, 99, 2**31 - 1, -(2**31)),
    "partition_indexes": (0, 1, 2, -1, 99, 2**31 - 1),
    "num_partitions": (1, -1, 0, 2, -5, 10_001, 200_000, 2**31 - 1),
    "count": (2, 0, -1, 1, 3, 10_001, 2**31 - 1, -(2**31)),
    "replication_factor": (1, -1, 0, 2, 3, 2**15 - 1, -(2**15)),
    "broker_ids": (1, 0, -1, 2, 2**31 - 1),
    "replica_id": (-1, -2, 0, 1, 2, 2**31 - 1),
    "acks": (-1, 1, 0, 7, -2, 2**15 - 1),
    "timeout_ms": (1_000, 0, -1, 2**31 - 1, -(2**31)),
    "max_wait_ms": (0, 1, 100, -1, 2**31 - 1, -(2**31)),
    "min_bytes": (1, 0, -1, 10_000, 2**31 - 1, -(2**31)),
    "max_bytes": (2**20, 0, 1, -1, 2**31 - 1, -(2**31)),
    "partition_max_bytes": (2**20, 0, 1, -1, 2**31 - 1, -(2**31)),
    "session_epoch": (-1, 0, 1, 2, 7, -2, 2**31 - 1, -(2**31)),
    "session_id": (0, 1, -1, 4_711, 2**31 - 1, -(2**31)),
    "fetch_offset": (0, 1, 5, -1, -2, 10**12, 2**63 - 1, -(2**63)),
    "offset": (-1, 0, 1, -2, 10**12, 2**63 - 1, -(2**63)),
    "timestamp": (-1, -2, -3, -4, -5, -6, 0, 1_700_000_000_000, 2**63 - 1, -(2**63)),
    "leader_epoch": (0, -1, 1, 2, 99, 2**31 - 1, -(2**31)),
    "current_leader_epoch": (-1, 0, 1, 2, 99, 2**31 - 1, -(2**31)),
    "last_fetched_epoch": (-1, 0, 1, 2, 99, 2**31 - 1, -(2**31)),
    "producer_id": (-1, 0, 1, 99, 2**63 - 1, -(2**63)),
    "producer_epoch": (-1, 0, 1, 2**15 - 1, -(2**15)),
    "resource_type": (2, 4, 0, 8, 16, 32, 3, 127, -128),
    "config_operation": (0, 1, 2, 3, 4, -1, 127),
    "key_type": (0, 1, 2, 7, -128),
    "validate_only": (True, True, True, False),
    "allow_auto_topic_creation": (False, True),
    "transactional_id": (None, "", "tx", "x" * 30_000),
    "response_partition_limit": (2_000, 0, 1, -1, 2**31 - 1),
}
"""For a field of this name; the first one makes sense."""

CONFIG_NAMES: Final = (
    "retention.ms", "no.such.setting", "", "max.message.bytes", "cleanup.policy", "segment.bytes",
    "min.insync.replicas", "x" * 1_000, "compression.type", "message.timestamp.type", "\0",
)  # fmt: skip
CONFIG_VALUES: Final = (
    "60000", None, "", "-1", "soon", "9" * 400, "compact,delete", "delete", "gzip", "é", "1e9",
    "LogAppendTime", "0x10", "١٢",
)  # fmt: skip

BATCH_FIELDS: Final = (
    # position, format, values: all under the crc, so that the checksum is right again afterwards
    (21, ">h", (0x08, 0x10, 0x20, 0x40, 5, 7, -1, 2**15 - 1)),  # attributes
    (23, ">i", (0, 1, 100, 2**31 - 1, -1)),  # last offset delta
    (27, ">q", (-1, 0, 2**63 - 1, -(2**63))),  # base timestamp
    (35, ">q", (-1, 0, 2**63 - 1, -(2**63), 4 * 10**12)),  # max timestamp
    (43, ">q", (-1, 0, 1, 2**63 - 1, -(2**63))),  # producer id
    (51, ">h", (-1, 0, 1, 2**15 - 1, -(2**15))),  # producer epoch
    (53, ">i", (-1, 0, 5, 2**31 - 1, -(2**31))),  # base sequence
    (57, ">i", (0, 1, 2, 1_000_000, 2**31 - 1, -1)),  # record count
)

HUGE: Final = (
    b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\x7f\xff", b"\xff\xff", b"\x00\xff\xff",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x80\x00\x00\x00", b"\x00", b"\x80",
)  # fmt: skip
"""Lengths and counts in the forms that the wire has for them."""

OTHER_PROTOCOLS: Final = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    bytes.fromhex("16030100c8010000c40303") + bytes(197),  # TLS
    b"SSH-2.0-OpenSSH_9.6\r\n",
    b"\x00\x00\x00\x00" * 100,
    b"\xff" * 64,
    b"\x7f\xff\xff\xff",
    struct.pack(">i", 100 * 2**20) + b"x" * 1_000,
)


class Prey(NamedTuple):
    """The topic that all inputs are about."""

    topic: str
    topic_id: Uuid


class Input(NamedTuple):
    kind: str
    data: bytes


Request = tuple[Module, Message, int]

SERVED = APIS | OURS
"""What clients may ask, our own included."""


@cache
def served_requests() -> tuple[Request, ...]:
    """Every version of every API that a node serves."""
    found: list[Request] = []
    for module in read_modules(SCHEMA):
        for message in module.messages:
            api = SERVED.get(-1 if message.key is None else message.key)
            if message.kind == "request" and api is not None:
                versions = range(api.oldest, api.newest + 1)
                found += [(module, message, version) for version in versions]
    return tuple(found)


class Hostility:
    """An endless sequence of inputs, the same for the same seed and prey."""

    def __init__(self, seed: int | str, prey: Prey) -> None:
        self._chance = Random(seed)
        self._prey = prey
        requests = served_requests()
        hot = [each for each in requests if each[1].key in (ApiKey.PRODUCE, ApiKey.FETCH)]
        self._requests = (*requests, *hot, *hot)
        good = Maker(Random(seed), prey, senses=(1.0,))
        self.good_frames = [good.frame(request) for request in requests]
        self._absurd = Maker(self._chance, prey, senses=(0.3, 0.7, 0.9, 0.95))
        self._damages: Sequence[tuple[str, Callable[[bytearray], bytes]]] = (
            ("flipped", self._flipped),
            ("flipped", self._flipped),
            ("overwritten", self._overwritten),
            ("overwritten", self._overwritten),
            ("cut", self._cut),
            ("unfinished", self._unfinished),
            ("stretched", self._stretched),
            ("glued", self._glued),
        )

    def __iter__(self) -> Iterator[Input]:
        while True:
            yield self.meaningless() if self._chance.random() < 0.5 else self.damaged()

    def meaningless(self) -> Input:
        """A well-formed frame that makes no sense."""
        return Input(MEANINGLESS, self._absurd.frame(self._chance.choice(self._requests)))

    def damaged(self) -> Input:
        """Something that is not a request, or not any more."""
        chance = self._chance
        what = chance.random()
        if what < 0.03:
            return Input("foreign", chance.choice(OTHER_PROTOCOLS))
        if what < 0.10:
            return Input("noise", chance.randbytes(chance.choice((1, 3, 4, 20, 300, 5_000))))
        if what < 0.15:
            body = chance.randbytes(chance.choice((0, 1, 9, 20, 300)))
            return Input("noise", struct.pack(">i", len(body)) + body)
        if what < 0.20:
            key = chance.choice(tuple(SERVED))
            head = struct.pack(">hhih", key, chance.randrange(14), 1, -1)
            return Input("noise", _framed(head + chance.randbytes(chance.randrange(60))))
        if what < 0.25:
            frame = self._absurd.frame(chance.choice(self._requests))
            version = chance.choice((-1, 5, 14, 99, -(2**15), 2**15 - 1))
            return Input("version", frame[:6] + struct.pack(">h", version) + frame[8:])
        name, damage = chance.choice(self._damages)
        return Input(name, damage(bytearray(chance.choice(self.good_frames))))

    def _flipped(self, frame: bytearray) -> bytes:
        for _ in range(self._chance.choice((1, 1, 2, 8))):
            frame[self._chance.randrange(4, len(frame))] = self._chance.randrange(256)
        return bytes(frame)

    def _overwritten(self, frame: bytearray) -> bytes:
        """With a count or a length, most likely: these are what a reader allocates by."""
        value = self._chance.choice(HUGE)
        at = self._chance.randrange(8, len(frame))
        frame[at : at + len(value)] = value
        return _framed(frame[4:])

    def _cut(self, frame: bytearray) -> bytes:
        return _framed(frame[4 : self._chance.randrange(4, len(frame))])

    def _unfinished(self, frame: bytearray) -> bytes:
        return bytes(frame[: self._chance.randrange(1, len(frame))])

    def _stretched(self, frame: bytearray) -> bytes:
        at = self._chance.randrange(8, len(frame))
        frame[at:at] = self._chance.randbytes(self._chance.choice((1, 2, 4, 30)))
        return _framed(frame[4:])

    def _glued(self, frame: bytearray) -> bytes:
        other = self._chance.choice(self.good_frames)
        return _framed(
            frame[4 : self._chance.randrange(5, len(frame))]
            + other[self._chance.randrange(4, len(other)) :]
        )


class Maker:
    """Makes well-formed frames.

    ``senses`` is how often a field gets the choice that makes sense; a frame takes one of them.
    With little sense a frame is refused at its first field, with much it gets further in.
    """

    def __init__(self, chance: Random, prey: Prey, *, senses: Sequence[float]) -> None:
        self._chance = chance
        self._senses = senses
        self._sense = senses[0]
        self._ids = (prey.topic_id, *NOBODYS_IDS)
        self._batch = build_batch([Record(b"key", b"value", timestamp=1_700_000_000_000)])
        self._by_name = BY_NAME | {
            **dict.fromkeys(TOPIC_FIELDS, (prey.topic, MAYFLY, *TEXTS)),
            "resource_name": (prey.topic, "1", "", "2", "-1", *TEXTS),
            "config_name": CONFIG_NAMES,
        }
        self._of_mayfly = self._by_name | dict.fromkeys(TOPIC_FIELDS, (MAYFLY, *TEXTS))
        self._choices = self._by_name

    def frame(self, request: Request) -> bytes:
        module, message, version = request
        classes = importlib.import_module(f"cotidal.messages.rpc.{module.name}")
        self._sense = self._chance.choice(self._senses)
        correlation = self._choose((7, 0, -1, 2**31 - 1, -(2**31)))
        client = self._choose(("hostile", None, "", "x" * 2_000, "é\0\n"))
        mayfly = message.key in (ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS)
        self._choices = self._of_mayfly if mayfly else self._by_name
        body = self._struct(message.body, version, classes)
        assert message.key is not None
        buffers = request_buffers(message.key, version, correlation, client, body)
        return b"".join(bytes(part) for part in buffers)

    def _choose(self, choices: Sequence[Any]) -> Any:
        if self._chance.random() < self._sense:
            return choices[0]
        return self._chance.choice(choices)

    def _struct(self, struct_: Struct, version: int, classes: Any) -> Any:
        # Names and values of settings are told apart from names of topics by where they stand.
        of_settings = "Config" in struct_.name and "Resource" not in struct_.name
        values = {
            field.name: self._field(field, version, classes, of_settings)
            for field in struct_.fields
            if version in field.versions
        }
        return getattr(classes, struct_.class_name)(**values)

    def _field(self, field: Field, version: int, classes: Any, of_settings: bool) -> Any:
        absurd = self._chance.random() >= self._sense
        if absurd and version in field.nullable and self._chance.random() < 0.2:
            return None
        if not field.array:
            return self._element(field, version, classes, of_settings)
        count = self._chance.choice((0, 1, 1, 2, 3, 20)) if absurd else 1
        if count == 20 and field.struct is not None:
            count = 2
        elements = [self._element(field, version, classes, of_settings) for _ in range(count)]
        if absurd and elements and self._chance.random() < 0.3:
            elements.append(elements[0])
        return tuple(elements)

    def _element(self, field: Field, version: int, classes: Any, of_settings: bool) -> Any:
        if field.struct is not None:
            return self._struct(field.struct, version, classes)
        if field.base == "uuid":
            return self._choose(self._ids if self._choices is self._by_name else NOBODYS_IDS)
        if field.base in ("batches", "records"):
            return Batches((), self._records())  # headers are for readers; bytes are what is sent
        choices: Sequence[Any] | None
        if of_settings and field.base == "string":
            choices = CONFIG_VALUES if "value" in field.name else CONFIG_NAMES
        else:
            choices = self._choices.get(field.name)
        if choices is None:
            choices = TEXTS if field.base == "string" else ABSURD[field.base]
        chosen = self._choose(choices)
        if chosen is None and version not in field.nullable:
            return choices[0] if choices[0] is not None else ""
        return chosen

    def _records(self) -> bytes:
        if self._chance.random() < min(self._sense, 0.5) or self._sense == 1.0:
            return self._batch
        what = self._chance.random()
        if what < 0.2:
            return self._chance.choice((b"", self._batch * 2, self._batch[:40], bytes(61)))
        batch = bytearray(self._batch)
        if what < 0.4:
            batch[self._chance.randrange(len(batch))] ^= 1 << self._chance.randrange(8)
            return bytes(batch)
        for _ in range(self._chance.choice((1, 1, 2, 4))):
            position, form, values = self._chance.choice(BATCH_FIELDS)
            struct.pack_into(form, batch, position, self._chance.choice(values))
        struct.pack_into(">I", batch, 17, crc32c(memoryview(batch)[CRC_START:]))
        return bytes(batch)


def _framed(body: bytes | bytearray) -> bytes:
    return struct.pack(">i", len(body)) + bytes(body)
