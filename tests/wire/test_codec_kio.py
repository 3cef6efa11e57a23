"""Every message and version that kio knows is written with the same bytes as kio writes."""

from __future__ import annotations

import dataclasses
import datetime
import importlib
import importlib.util
import io
import uuid
from pathlib import Path
from random import Random
from typing import Any

import kio_gaps
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotidal.wire.codec import encode_record
from message_samples import Sampler
from message_schema import Field, Message, Module, Struct, read_modules, snake_case

SCHEMA = Path(__file__).resolve().parents[2] / "schema"
FILES = {"request": "request", "response": "response", "data": "data"}


def kio_package(message: Message) -> str:
    name = message.name.removesuffix("Request").removesuffix("Response")
    return f"kio.schema.{snake_case(name)}"


def kio_has(message: Message, version: int) -> bool:
    package = kio_package(message)
    name = f"{package}.v{version}.{FILES[message.kind]}"
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def checked_messages() -> list[Any]:
    return [
        pytest.param(module, message, id=message.name)
        for module in read_modules(SCHEMA)
        for message in module.messages
        if message.kind not in kio_gaps.KINDS and message.name not in kio_gaps.MESSAGES
    ]


def kio_struct(source: Any, struct: Struct, value: Any, version: int) -> Any:
    """The same value as kio's class. Fields go by position: kio renames some, and drops none."""
    cls = getattr(source, struct.name)
    present = [field for field in struct.fields if version in field.versions]
    theirs = dataclasses.fields(cls)
    assert len(theirs) == len(present), f"{struct.name} has other fields in kio"
    return cls(
        **{
            their.name: kio_field(source, field, their, getattr(value, field.name), version)
            for their, field in zip(theirs, present, strict=True)
        }
    )


def kio_field(
    source: Any, field: Field, their: dataclasses.Field[Any], value: Any, version: int
) -> Any:
    if value is None:
        return None
    if field.array:
        return tuple(kio_element(source, field, their, each, version) for each in value)
    return kio_element(source, field, their, value, version)


def kio_element(
    source: Any, field: Field, their: dataclasses.Field[Any], value: Any, version: int
) -> Any:
    if field.struct is not None:
        return kio_struct(source, field.struct, value, version)
    match their.metadata["kafka_type"]:
        case "error_code":
            from kio.schema.errors import ErrorCode

            return ErrorCode(value)
        case "timedelta_i32" | "timedelta_i64":
            return datetime.timedelta(milliseconds=value)
        case "datetime_i64":
            return datetime.datetime.fromtimestamp(value / 1000, tz=datetime.UTC)
        case "uuid":
            return uuid.UUID(bytes=value) if any(value) else None
        case "records":
            return value if isinstance(value, bytes) else bytes(value.data)
        case _:
            return value


def kio_bytes(message: Message, version: int, value: Any) -> bytes:
    from kio.serial import entity_writer

    source = importlib.import_module(f"{kio_package(message)}.v{version}.{FILES[message.kind]}")
    entity = kio_struct(source, message.body, value, version)
    out = io.BytesIO()
    entity_writer(type(entity))(out, entity)
    return out.getvalue()


@pytest.mark.parametrize(("module", "message"), checked_messages())
def test_bytes_are_those_of_kio_in_every_version(module: Module, message: Message) -> None:
    versions = [v for v in message.versions if v not in kio_gaps.VERSIONS.get(message.name, ())]

    @settings(max_examples=12)
    @given(st.integers(0, 2**32))
    def agree(seed: int) -> None:
        for version in versions:
            value = Sampler(module, Random(seed), tame=True).message(message, version)
            ours = bytes(encode_record(value, version))
            assert ours == kio_bytes(message, version, value), f"version {version}"

    agree()


def test_the_table_of_gaps_is_exact() -> None:
    missing: dict[str, frozenset[int]] = {}
    whole = set()
    for module in read_modules(SCHEMA):
        for message in module.messages:
            if message.kind in kio_gaps.KINDS:
                continue
            lacking = frozenset(v for v in message.versions if not kio_has(message, v))
            if lacking == frozenset(message.versions):
                whole.add(message.name)
            elif lacking:
                missing[message.name] = lacking
    assert whole == kio_gaps.MESSAGES
    assert missing == kio_gaps.VERSIONS
