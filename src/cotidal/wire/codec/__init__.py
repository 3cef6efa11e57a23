"""Messages <-> bytes, by API key and version (requests, responses) or by class (records). Pure.

The generated modules below are imported when their API is first used. Whatever a reader stumbles
over comes out of here as MalformedFrame; a value that cannot be said in a version as ValueError.

Writing extends a list of buffers: record data is handed on as it is, never copied, unless it is
short (primitives.SPLICE_BYTES_MIN).
"""

from __future__ import annotations

import importlib
import struct
from typing import Any, Final

from cotidal.errors import MalformedFrame, UnsupportedRequest
from cotidal.limits import REQUEST_BYTES_MAX_WITHOUT_RECORDS
from cotidal.messages.rpc.apis import APIS, ApiKey
from cotidal.wire.codec.entry import Codec, Parts, Reader, Writer
from cotidal.wire.primitives import Buffer

_request_readers: Final[dict[int, Reader]] = {}
_request_writers: Final[dict[int, Writer]] = {}
_response_readers: Final[dict[int, Reader]] = {}
_response_writers: Final[dict[int, Writer]] = {}
_by_class: Final[dict[type[Any], Codec]] = {}


def decode_request(api_key: int, version: int, buffer: Buffer, position: int = 0) -> Any:
    """The request body from a position on.

    Bytes that follow it are left alone, as Apache Kafka does: librdkafka (2.16 and before) sends
    three too many with a Metadata request for all topics.
    """
    reader = _request_readers.get(api_key << 16 | version)
    if reader is None:
        _load_api(api_key, version)
        reader = _request_readers[api_key << 16 | version]
    if len(buffer) > REQUEST_BYTES_MAX_WITHOUT_RECORDS and api_key != ApiKey.PRODUCE:
        raise MalformedFrame(f"{APIS[api_key].name} in {len(buffer)} bytes is more than it needs")
    try:  # as _read does: one call less for every request
        message, _ = reader(buffer, position, version)
    except (IndexError, struct.error, UnicodeDecodeError) as wrong:
        raise _malformed(buffer, wrong) from None
    return message


def decode_response(api_key: int, version: int, buffer: Buffer, position: int = 0) -> Any:
    reader = _response_readers.get(api_key << 16 | version)
    if reader is None:
        _load_api(api_key, version)
        reader = _response_readers[api_key << 16 | version]
    return read_whole(reader, version, buffer, position)


def encode_request(
    api_key: int, version: int, request: Any, out: bytearray | None = None
) -> list[Buffer | bytearray]:
    """The request body, after what ``out`` already holds, as buffers to be sent one after another."""
    writer = _request_writers.get(api_key << 16 | version)
    if writer is None:
        _load_api(api_key, version)
        writer = _request_writers[api_key << 16 | version]
    return _write(writer, version, request, bytearray() if out is None else out)


def encode_response(
    api_key: int, version: int, response: Any, out: bytearray | None = None
) -> list[Buffer | bytearray]:
    """The response body, after what ``out`` already holds, as buffers to be sent one after another."""
    writer = _response_writers.get(api_key << 16 | version)
    if writer is None:
        _load_api(api_key, version)
        writer = _response_writers[api_key << 16 | version]
    return _write(writer, version, response, bytearray() if out is None else out)


def codec_of(message_class: type[Any]) -> Codec:
    """The codec of a message or record class: its versions, key and functions."""
    found = _by_class.get(message_class)
    if found is None:
        room, name = message_class.__module__.split(".")[-2:]
        for codec in module_codecs(room, name):
            _by_class[codec.message] = codec
        found = _by_class[message_class]
    return found


def module_codecs(room: str, name: str) -> tuple[Codec, ...]:
    """All codecs of one schema file: room is ``rpc`` or ``records``."""
    module = importlib.import_module(f"cotidal.wire.codec.{room}.{name}")
    codecs: tuple[Codec, ...] = module.CODECS
    return codecs


def decode_record(record_class: type[Any], version: int, buffer: Buffer, position: int = 0) -> Any:
    """A record, or any other message known by its class, that fills the rest of the buffer."""
    codec = codec_of(record_class)
    index = version - codec.first_version
    if not 0 <= index < len(codec.readers):
        raise MalformedFrame(f"{record_class.__name__} has no version {version}")
    return read_whole(codec.readers[index], version, buffer, position)


def encode_record(record: Any, version: int, out: bytearray | None = None) -> bytearray:
    """The record's bytes, appended to ``out`` if given."""
    codec = codec_of(type(record))
    index = version - codec.first_version
    if not 0 <= index < len(codec.writers):
        raise ValueError(f"{type(record).__name__} has no version {version}")
    parts = _write(codec.writers[index], version, record, bytearray() if out is None else out)
    if len(parts) == 1:
        return parts[0]  # type: ignore[return-value]  # nothing was spliced: it is `out`
    return bytearray().join(parts)


def read_whole(reader: Reader, version: int, buffer: Buffer, position: int) -> Any:
    """A message that fills the rest of the buffer, by its reader."""
    try:
        message, end = reader(buffer, position, version)
    except (IndexError, struct.error, UnicodeDecodeError) as wrong:
        raise _malformed(buffer, wrong) from None
    if end != len(buffer):
        raise MalformedFrame(f"{len(buffer) - end} bytes follow the end of the message")
    return message


def _malformed(buffer: Buffer, wrong: Exception) -> MalformedFrame:
    if isinstance(wrong, UnicodeDecodeError):
        return MalformedFrame(f"a string is not UTF-8: {wrong.reason}")
    return MalformedFrame(f"a frame of {len(buffer)} bytes ends within a field")


def _write(writer: Writer, version: int, message: Any, out: bytearray) -> Parts:
    parts: Parts = []
    try:
        parts.append(writer(out, parts, message, version))
    except struct.error as wrong:
        name = type(message).__name__
        raise ValueError(f"{name} version {version} cannot hold this value: {wrong}") from None
    return parts


def _load_api(api_key: int, version: int) -> None:
    """Import an API's codecs and enter all its versions; UnsupportedRequest if it has not this one."""
    api = APIS.get(api_key)
    if api is None:
        raise UnsupportedRequest(f"there is no API with key {api_key}")
    if not api.first_version <= version <= api.last_version:
        raise UnsupportedRequest(
            f"{api.name} has versions {api.first_version} to {api.last_version}, not {version}"
        )
    for codec in module_codecs("rpc", api.module):
        request = codec.kind == "request"
        readers = _request_readers if request else _response_readers
        writers = _request_writers if request else _response_writers
        for i in range(len(codec.readers)):
            readers[api_key << 16 | codec.first_version + i] = codec.readers[i]
            writers[api_key << 16 | codec.first_version + i] = codec.writers[i]
