"""A node in lines and in JSON."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from cotidal.core.quorum.log_view import SnapshotId
from cotidal.core.quorum.voters import ControlRecord
from cotidal.errors import ErrorCode
from cotidal.messages.batch import NO_BATCHES, Batches, Placed
from cotidal.messages.producers import AbortedTransaction, ProducerSnapshot
from cotidal.messages.records import metadata as md
from cotidal.messages.records.quorum import LeaderChangeMessage, QuorumStateData
from cotidal.messages.rpc.apis import ApiKey
from cotidal.messages.rpc.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from cotidal.messages.rpc.metadata import MetadataRequest
from cotidal.node import effects as want
from cotidal.node import events as seen
from cotidal.node.trace import NodeMoment, as_json, line
from cotidal.values import (
    ZERO_UUID,
    EpochEntry,
    LeaderEpoch,
    NodeId,
    Offset,
    ProducerId,
    TopicPartition,
    Uuid,
    WallMillis,
)
from headers import header

AT, TWO, WALL = TopicPartition("orders", 0), NodeId(2), WallMillis(0)
O8, O12, E5 = Offset(8), Offset(12), LeaderEpoch(5)
ORDERS = Uuid(bytes([7] * 16))
MEASURED = seen.MeasuredDirectory("/a", None, ((AT, 90),), 1000, 900)
LINK = seen.ConnectionId(3)
READ, CALL, PERSIST = want.ReadToken(4), want.CallToken(4), want.PersistToken(4)
EPOCHS = (EpochEntry(LeaderEpoch(1), Offset(0)), EpochEntry(E5, O8))
BATCHES = Batches((header(base_offset=8, records=2)._replace(leader_epoch=E5),), b"..")
BEAT = BrokerHeartbeatRequest(2, 40, 12)
RECORD = md.PartitionChangeRecord(partition_id=0, topic_id=ORDERS, leader=2, isr=(2, 3))
CHANGE: ControlRecord = LeaderChangeMessage(leader_id=2)
ENDPOINT = want.Endpoint("CONTROLLER", "host", 9093)
NAMES = {ORDERS: "orders"}


def request(message: object, api: ApiKey, version: int) -> seen.Request:
    return seen.Request(api, version, 1, "client", message)


def batch(*records: object, control: bool = False) -> want.MetadataBatch:
    return want.MetadataBatch(O8, E5, records, control, WALL)


SNAPSHOT = SnapshotId(O8, E5)

HEARTBEAT = request(BEAT, ApiKey.BROKER_HEARTBEAT, 2)

TOLD: list[tuple[NodeMoment, str]] = [
    (seen.ConnectionOpened(LINK, "PLAINTEXT", "peer"), "connection-opened #3 on PLAINTEXT"),
    (
        seen.Received(LINK, (HEARTBEAT,), WALL),
        "received #3 BrokerHeartbeat v2 broker 2 metadata=12",
    ),
    (
        seen.Received(LINK, (request(MetadataRequest(), ApiKey.METADATA, 13),) * 8, WALL),
        "received #3 " + "Metadata v13; " * 6 + "and 2 more",
    ),
    (seen.TimeSpent(LINK, 90), "time-spent #3 90 us"),
    (seen.ConnectionLost(LINK), "connection-lost #3"),
    (seen.Started(None, (), ZERO_UUID, WALL), "started on a new disk"),
    (
        seen.Started(None, (batch(RECORD, RECORD),), ZERO_UUID, WALL),
        "started after a crash, metadata=8..10",
    ),
    (
        seen.Started(None, (batch(RECORD),), ZERO_UUID, WALL, 40),
        "started after a clean end of epoch 40, metadata=8..9",
    ),
    (
        seen.Started(None, (), ZERO_UUID, WALL, 40, O8, (seen.MetadataSnapshot(SNAPSHOT, 900),)),
        "started after a clean end of epoch 40, metadata=8..8, snapshot below=8@5",
    ),
    (seen.Persisted(PERSIST), "persisted 4"),
    (
        seen.Persisted(PERSIST, seen.MetadataSnapshot(SNAPSHOT, 900)),
        "persisted 4: installed snapshot below=8@5",
    ),
    (seen.SnapshotWritten(SNAPSHOT, 900), "snapshot-written below=8@5, 900 bytes"),
    (
        seen.LogOpened(AT, ORDERS, Offset(0), O12, O8, EPOCHS, None, (), ORDERS),
        "log-opened orders-0 start=0 end=12 hw=8 epochs=(1@0 5@8)",
    ),
    (seen.LogFailed(AT, ORDERS, "no space"), "log-failed orders-0: no space"),
    (seen.DirectoryFailed(ORDERS, "/b: no space"), "directory-failed /b: no space"),
    (seen.Appended(AT, ORDERS, O12, WALL, rolled=False), "appended orders-0 end=12"),
    (
        seen.Appended(AT, ORDERS, O12, WALL, rolled=True),
        "appended orders-0 end=12 in a new segment",
    ),
    (seen.ReadDone(READ, (b"abc", "broken")), "read-done 4: 3 bytes; broken"),
    (seen.TimeFound(READ, None), "time-found 4: nothing"),
    (seen.TimeFound(READ, want.Found(O8, WALL, E5)), "time-found 4: offset=8"),
    (seen.StartMoved(AT, ORDERS, O8), "start-moved orders-0 start=8"),
    (seen.LogsMeasured(READ, (MEASURED,)), "logs-measured 4: 1 log, 90 bytes"),
    (
        seen.LogsMoved(READ, (ErrorCode.NONE, ErrorCode.LOG_DIR_NOT_FOUND)),
        "logs-moved 4: NONE, LOG_DIR_NOT_FOUND",
    ),
    (
        seen.LogHoused(AT, ORDERS, Uuid(bytes(15) + b"\1")),
        "log-housed orders-0 in AAAAAAAAAAAAAAAAAAAAAQ",
    ),
    (
        seen.Replied(CALL, BrokerHeartbeatResponse(is_fenced=False)),
        "replied 4: BrokerHeartbeat unfenced",
    ),
    (seen.CallFailed(CALL, True, "x"), "call-failed 4: refused"),
    (seen.CallFailed(CALL, False, "time ran out"), "call-failed 4: time ran out"),
    (seen.PeerConnected(TWO), "peer-connected 2"),
    (seen.PeerLost(TWO, refused=True), "peer-lost 2 refuses"),
    (seen.PeerLost(TWO, refused=False), "peer-lost 2"),
    (seen.Ticked(WALL), "ticked"),
    (seen.ShutdownRequested(), "shutdown-requested"),
    (
        want.Respond(
            3, ApiKey.BROKER_HEARTBEAT, 2, 1, BrokerHeartbeatResponse(error_code=ErrorCode(77))
        ),
        "respond #3 BrokerHeartbeat v2 STALE_BROKER_EPOCH(77)",
    ),
    (want.CloseConnection(3, "unreadable"), "close-connection #3 unreadable"),
    (want.PauseReading(3), "pause-reading #3"),
    (want.ResumeReading(3), "resume-reading #3"),
    (want.MeterTime(on=True), "meter-time on"),
    (want.Append(AT, (Placed(O12, E5, BATCHES),), False), "append orders-0 12-13@5"),
    (want.Append(AT, (Placed(None, E5, BATCHES),), False), "append orders-0 8-9@5"),
    (want.Read(READ, (want.Want(AT, O8, 100, O12),), 100), "read 4: orders-0 8..12"),
    (want.FindTime(READ, AT, None, O12), "find-time 4: orders-0 the latest below=12"),
    (
        want.FindTime(READ, AT, WallMillis(99), O12),
        "find-time 4: orders-0 99 below=12",
    ),
    (
        want.Persist(PERSIST, (batch(RECORD), batch(CHANGE, control=True))),
        "persist 4: metadata 8@5: partition orders-0: leader 2, ISR 2 3;"
        " metadata 8@5: leader-change 2 votes=()",
    ),
    (
        want.Persist(PERSIST, (want.FetchedMetadata(O8, BATCHES), want.CutMetadata(O8))),
        "persist 4: fetched metadata 8-9@5; cut metadata to=8",
    ),
    (
        want.Persist(PERSIST, (want.QuorumState(QuorumStateData(leader_epoch=5)),)),
        "persist 4: write-state epoch=5 leader=none voted=none",
    ),
    (
        want.Persist(PERSIST, (want.InstallSnapshot(SNAPSHOT), want.CleanMetadata(O8))),
        "persist 4: install snapshot below=8@5; clean metadata below=8",
    ),
    (
        want.WriteSnapshot(SNAPSHOT, (), (RECORD,), WALL, WALL),
        "write-snapshot below=8@5, 1 record",
    ),
    (
        want.ReadSnapshot(READ, SNAPSHOT, 100, 50),
        "read-snapshot 4: below=8@5 from=100 bytes=50",
    ),
    (want.KeepChunk(SNAPSHOT, 100, b"abc"), "keep-chunk below=8@5 at=100 bytes=3"),
    (want.DropSnapshot(SNAPSHOT), "drop-snapshot below=8@5"),
    (want.OpenLog(AT, ORDERS, {}, ORDERS), "open-log orders-0"),
    (want.ConfigureLog(AT, {}), "configure-log orders-0"),
    (want.DeleteLog(AT, ORDERS), "delete-log orders-0"),
    (want.TruncateTo(AT, O8), "truncate-to orders-0 offset=8"),
    (want.StartOver(AT, O8), "start-over orders-0 at=8"),
    (
        want.Call(CALL, TWO, ENDPOINT, "control", ApiKey.BROKER_HEARTBEAT, 2, BEAT, 500),
        "call 4 to 2: BrokerHeartbeat v2 broker 2 metadata=12",
    ),
    (want.KeepConnected(((TWO, ENDPOINT),)), "keep-connected (2)"),
    (want.AdvanceStart(AT, O8), "advance-start orders-0 to=8"),
    (want.Retain(AT, O12), "retain orders-0 below=12"),
    (
        want.Compact((want.Compactable(AT, O12, frozenset({7})),), 1000, 1e9),
        "compact orders-0<12",
    ),
    (want.SaveEpochs(AT, EPOCHS), "save-epochs orders-0 1@0 5@8"),
    (want.SaveProducers(AT, ProducerSnapshot(O8)), "save-producers orders-0"),
    (
        want.SaveAborted(AT, (AbortedTransaction(ProducerId(7), O8, O12, Offset(13)),)),
        "save-aborted orders-0 8-12",
    ),
    (want.SaveHighWatermarks(((AT, O8),)), "save-high-watermarks orders-0=8"),
    (want.MeasureLogs(READ), "measure-logs 4"),
    (want.MoveLogs(READ, (("/b", AT),)), "move-logs 4: orders-0 to /b"),
    (want.PaceMoves(1_000), "pace-moves 1000 bytes a second"),
    (want.PutStraysAside(), "put-strays-aside"),
    (want.Note("info", "hello"), "note info: hello"),
    (want.Fault(AT, "It holds", "here"), "fault orders-0 It holds"),
    (want.Serve(), "serve"),
    (want.Stop(40), "stop broker-epoch=40"),
    (want.Stop(40, opened_all=False), "stop broker-epoch=40 logs not opened"),
]


@pytest.mark.parametrize(("moment", "said"), TOLD, ids=[said for _, said in TOLD])
def test_each_moment_is_one_line_and_one_json_object(moment: NodeMoment, said: str) -> None:
    assert line(moment, NAMES) == said
    told = json.loads(json.dumps(as_json(moment, NAMES)))
    assert told == as_json(moment, NAMES)
    assert f"{told['what']} {told['said']}".rstrip() == said


def test_no_event_and_no_effect_is_forgotten() -> None:
    assert {type(moment) for moment, _ in TOLD} == set(get_args(NodeMoment))


def test_a_topic_is_named_in_the_batch_that_creates_it() -> None:
    born = batch(md.TopicRecord("orders", ORDERS), RECORD)
    told = line(want.Persist(PERSIST, (born,)))
    assert told == (
        "persist 4: metadata 8-9@5: topic orders created; partition orders-0: leader 2, ISR 2 3"
    )


def test_programs_are_told_numbers_and_names() -> None:
    assert as_json(want.TruncateTo(AT, O8)) == {
        "what": "truncate-to",
        "said": "orders-0 offset=8",
        "partition": "orders-0",
        "offset": 8,
    }


def test_bytes_and_messages_are_told_in_words_only() -> None:
    told = as_json(want.Append(AT, (Placed(O12, E5, NO_BATCHES._replace(data=b"secret")),), False))
    assert "secret" not in json.dumps(told)
