"""A node in words: what happens to it, and what it wants done. Pure.

The same form as ``core.trace``, in which the machines inside a node are told. Nothing is formatted
before somebody asks for a line: whoever traces keeps the values.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias, assert_never, cast, get_args

from cotidal.core.cluster.image import MetadataRecord
from cotidal.core.quorum.effects import WriteState
from cotidal.core.quorum.log_view import SnapshotId
from cotidal.core.trace import Json, Told, tell_record
from cotidal.core.trace import line as core_line
from cotidal.core.trace.cluster import NO_NAMES, Names
from cotidal.core.trace.told import epochs, ids, plain, span, spans
from cotidal.messages.batch import Placed, Stretch
from cotidal.messages.records.metadata import TopicRecord
from cotidal.messages.records.quorum import QuorumStateData
from cotidal.messages.rpc.apis import APIS
from cotidal.node import effects as want
from cotidal.node import events as seen
from cotidal.node.gist import gist
from cotidal.values import TopicPartition, uuid_text
from cotidal.words import counted

NodeMoment: TypeAlias = seen.Event | want.Effect

SHOWN: Final = 6
"""Parts of one moment (requests, wants, records) that are told; the rest is counted."""


def tell(moment: NodeMoment, names: Names = NO_NAMES) -> Told:
    """``names``: topics by their ids, as far as the reader knows them."""
    name, said = _words(moment, names)
    return Told(name, said, _fields(moment, said))


def line(moment: NodeMoment, names: Names = NO_NAMES) -> str:
    name, said = _words(moment, names)
    return f"{name} {said}".rstrip()


def as_json(moment: NodeMoment, names: Names = NO_NAMES) -> Json:
    return tell(moment, names).json


def _fields(moment: NodeMoment, said: str) -> Json:
    """Numbers and names for a program; what is large (messages, records, bytes) only in words."""
    fields: Json = {"said": said}
    for name, value in zip(moment._fields, moment, strict=True):
        if isinstance(value, TopicPartition):
            fields[name] = str(value)
        elif value is None or isinstance(value, str | int | bool | bytes):
            fields[name] = plain(value)
    return fields


_Words: TypeAlias = tuple[str, str]
_EVENTS: Final = get_args(seen.Event)


def _words(moment: NodeMoment, names: Names) -> _Words:
    if isinstance(moment, _EVENTS):
        return _event(cast("seen.Event", moment), names)
    return _effect(cast("want.Effect", moment), names)


def _event(event: seen.Event, names: Names) -> _Words:
    match event:
        case seen.ConnectionOpened(connection=connection, listener=listener):
            return "connection-opened", f"#{connection} on {listener}"
        case seen.Received():
            return "received", _received(event, names)
        case seen.TimeSpent(connection=connection, micros=micros):
            return "time-spent", f"#{connection} {micros} us"
        case seen.ConnectionLost(connection=connection):
            return "connection-lost", f"#{connection}"
        case seen.Started():
            return "started", _started(event)
        case seen.Persisted(token=token, installed=None):
            return "persisted", str(token)
        case seen.Persisted(token=token, installed=snapshot):
            assert snapshot is not None
            return "persisted", f"{token}: installed snapshot {_snapshot(snapshot.id)}"
        case seen.SnapshotWritten(id=id_, size_bytes=size):
            return "snapshot-written", f"{_snapshot(id_)}, {size} bytes"
        case seen.LogOpened():
            return "log-opened", _log_opened(event)
        case seen.LogFailed(partition=partition, reason=reason):
            return "log-failed", f"{partition}: {reason}"
        case seen.DirectoryFailed(reason=reason):
            return "directory-failed", reason
        case seen.Appended(partition=partition, end_offset=end, rolled=rolled):
            return "appended", f"{partition} end={end}{' in a new segment' if rolled else ''}"
        case seen.ReadDone(token=token, results=results):
            return "read-done", f"{token}: {_results(results)}"
        case seen.TimeFound(token=token, found=found):
            where = "nothing" if found is None else f"offset={found.offset}"
            return "time-found", f"{token}: {where}"
        case seen.StartMoved(partition=partition, start_offset=start):
            return "start-moved", f"{partition} start={start}"
        case seen.LogsMeasured(token=token, directories=directories):
            sizes = [size for directory in directories for _, size in directory.sizes]
            return "logs-measured", f"{token}: {counted(len(sizes), 'log')}, {sum(sizes)} bytes"
        case seen.LogsMoved(token=token, errors=errors):
            return "logs-moved", f"{token}: {', '.join(error.name for error in errors)}"
        case seen.LogHoused(partition=partition, directory=directory):
            return "log-housed", f"{partition} in {uuid_text(directory)}"
        case seen.Replied(token=token, message=message):
            kind = type(message).__name__.removesuffix("Response")
            return "replied", f"{token}: {kind} {gist(message, names)}"
        case seen.CallFailed(token=token, refused=refused, reason=reason):
            return "call-failed", f"{token}: {'refused' if refused else reason}"
        case seen.PeerConnected(peer=peer):
            return "peer-connected", str(peer)
        case seen.PeerLost(peer=peer, refused=refused):
            return "peer-lost", f"{peer} refuses" if refused else str(peer)
        case seen.Ticked():
            return "ticked", ""
        case seen.ShutdownRequested():
            return "shutdown-requested", ""
        case _:
            assert_never(event)


def _effect(effect: want.Effect, names: Names) -> _Words:
    match effect:
        case want.Respond(connection=connection, api_key=key, api_version=version, message=message):
            return "respond", f"#{connection} {_spoken(key, version, message, names)}"
        case want.Call(token=token, peer=peer, api_key=key, api_version=version, message=message):
            return "call", f"{token} to {peer}: {_spoken(key, version, message, names)}"
        case want.CloseConnection(connection=connection, reason=reason):
            return "close-connection", f"#{connection} {reason}"
        case want.PauseReading(connection=connection):
            return "pause-reading", f"#{connection}"
        case want.ResumeReading(connection=connection):
            return "resume-reading", f"#{connection}"
        case want.MeterTime(on=on):
            return "meter-time", "on" if on else "off"
        case want.Persist(token=token, writes=writes):
            return "persist", f"{token}: {_first([_write(write, names) for write in writes])}"
        case want.WriteSnapshot(id=id_, records=records):
            return "write-snapshot", f"{_snapshot(id_)}, {counted(len(records), 'record')}"
        case want.ReadSnapshot(token=token, id=id_, position=position, max_bytes=size):
            return "read-snapshot", f"{token}: {_snapshot(id_)} from={position} bytes={size}"
        case want.KeepChunk(id=id_, position=position, data=data):
            return "keep-chunk", f"{_snapshot(id_)} at={position} bytes={len(data)}"
        case want.DropSnapshot(id=id_):
            return "drop-snapshot", _snapshot(id_)
        case want.KeepConnected(peers=peers):
            return "keep-connected", ids(peer for peer, _ in peers)
        case want.MeasureLogs(token=token):
            return "measure-logs", str(token)
        case want.MoveLogs(token=token, moves=moves):
            told = ", ".join(f"{partition} to {path}" for path, partition in moves)
            return "move-logs", f"{token}: {told}"
        case want.PaceMoves(bytes_per_second=speed):
            return "pace-moves", f"{speed} bytes a second"
        case want.PutStraysAside():
            return "put-strays-aside", ""
        case want.Note(level=level, text=text):
            return "note", f"{level}: {text}"
        case want.Fault(partition=partition, promise=promise):
            return "fault", f"{partition} {promise}"
        case want.Serve():
            return "serve", ""
        case want.Stop(epoch, opened_all):
            return "stop", f"broker-epoch={epoch}" + ("" if opened_all else " logs not opened")
        case _:
            return _log_effect(effect)


_LogEffect: TypeAlias = (
    want.Append
    | want.Read
    | want.FindTime
    | want.OpenLog
    | want.ConfigureLog
    | want.DeleteLog
    | want.TruncateTo
    | want.StartOver
    | want.AdvanceStart
    | want.Retain
    | want.Compact
    | want.SaveEpochs
    | want.SaveProducers
    | want.SaveAborted
    | want.SaveHighWatermarks
)


def _log_effect(effect: _LogEffect) -> _Words:
    match effect:
        case want.Append(partition=partition, entries=entries):
            return "append", f"{partition} {_first([_placed(entry) for entry in entries])}"
        case want.Read(token=token, wants=wants):
            parts = [f"{each.partition} {each.offset}..{each.below}" for each in wants]
            return "read", f"{token}: {_first(parts)}"
        case want.FindTime(token=token, partition=partition, timestamp=timestamp, below=below):
            time = "the latest" if timestamp is None else str(timestamp)
            return "find-time", f"{token}: {partition} {time} below={below}"
        case want.OpenLog(partition=partition):
            return "open-log", str(partition)
        case want.ConfigureLog(partition=partition):
            return "configure-log", str(partition)
        case want.DeleteLog(partition=partition):
            return "delete-log", str(partition)
        case want.TruncateTo(partition=partition, offset=offset):
            return "truncate-to", f"{partition} offset={offset}"
        case want.StartOver(partition=partition, offset=offset):
            return "start-over", f"{partition} at={offset}"
        case want.AdvanceStart(partition=partition, offset=offset):
            return "advance-start", f"{partition} to={offset}"
        case want.Retain(partition=partition, below=below):
            return "retain", f"{partition} below={below}"
        case want.Compact(logs=logs):
            return "compact", " ".join(f"{each.partition}<{each.below}" for each in logs)
        case want.SaveEpochs(partition=partition, epochs=entries_):
            return "save-epochs", f"{partition} {epochs(entries_)}"
        case want.SaveProducers(partition=partition):
            return "save-producers", str(partition)
        case want.SaveAborted(partition=partition, transactions=transactions):
            parts = [f"{each.first_offset}-{each.last_offset}" for each in transactions]
            return "save-aborted", f"{partition} {_first(parts)}"
        case want.SaveHighWatermarks(watermarks=watermarks):
            parts = [f"{partition}={offset}" for partition, offset in watermarks]
            return "save-high-watermarks", _first(parts)
        case _:
            assert_never(effect)


# --- parts --------------------------------------------------------------------------------------


def _received(event: seen.Received, names: Names) -> str:
    said = [_spoken(each.api_key, each.api_version, each.message, names) for each in event.requests]
    return f"#{event.connection} {_first(said)}"


def _started(event: seen.Started) -> str:
    batches = event.log
    if not batches and not event.log_start:
        return "on a new disk"
    end = batches[-1].base_offset + len(batches[-1].records) if batches else event.log_start
    start = batches[0].base_offset if batches else event.log_start
    previous = event.previous_broker_epoch
    how = "after a crash" if previous < 0 else f"after a clean end of epoch {previous}"
    return f"{how}, metadata={start}..{end}{_from(event)}"


def _from(event: seen.Started) -> str:
    newest = event.snapshots[-1].id if event.snapshots else None
    return "" if newest is None else f", snapshot {_snapshot(newest)}"


def _log_opened(event: seen.LogOpened) -> str:
    said = f"{event.partition} start={event.start_offset} end={event.end_offset}"
    return f"{said} hw={event.high_watermark} epochs=({epochs(event.epochs)})"


def _results(results: tuple[bytes | memoryview | Stretch | str, ...]) -> str:
    failed = [result for result in results if isinstance(result, str)]
    size = sum(len(result) for result in results if not isinstance(result, str))
    return _first([counted(size, "byte"), *failed])


def _first(items: list[str]) -> str:
    shown = "; ".join(items[:SHOWN])
    return shown if len(items) <= SHOWN else f"{shown}; and {len(items) - SHOWN} more"


def _api(key: int, version: int) -> str:
    known = APIS.get(key)
    return f"{known.name if known else key} v{version}"


def _spoken(key: int, version: int, message: object, names: Names) -> str:
    return f"{_api(key, version)} {gist(message, names)}".rstrip()


def _placed(entry: Placed) -> str:
    if entry.base_offset is None:
        return spans(entry.batches.headers)
    records = sum(header.last_offset_delta + 1 for header in entry.batches.headers)
    return f"{span(entry.base_offset, entry.base_offset + records - 1)}@{entry.leader_epoch}"


def _write(write: want.Write, names: Names) -> str:
    match write:
        case want.MetadataBatch(
            base_offset=base, leader_epoch=epoch, records=records, control=control
        ):
            where = f"{span(base, base + len(records) - 1)}@{epoch}"
            born = {r.topic_id: r.name for r in records if isinstance(r, TopicRecord)}
            names = {**names, **born} if born else names
            told = [_record(record, names, control=control) for record in records]
            return f"metadata {where}: {_first(told)}"
        case want.FetchedMetadata(batches=batches):
            return f"fetched metadata {spans(batches.headers)}"
        case want.CutMetadata(offset=offset):
            return f"cut metadata to={offset}"
        case want.QuorumState(state=state):
            return core_line(WriteState(cast("QuorumStateData", state)))
        case want.InstallSnapshot(id=id_):
            return f"install snapshot {_snapshot(id_)}"
        case want.CleanMetadata(offset=offset):
            return f"clean metadata below={offset}"


def _snapshot(id_: SnapshotId) -> str:
    return f"below={id_.end_offset}@{id_.epoch}"


def _record(record: object, names: Names, *, control: bool) -> str:
    if control:
        return core_line(cast("Any", record))
    return tell_record(cast("MetadataRecord", record), names=names).line
