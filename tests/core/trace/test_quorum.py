"""The quorum in lines and in JSON."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from cotidal.core.quorum import dialogue as say
from cotidal.core.quorum import effects as want
from cotidal.core.quorum import events as seen
from cotidal.core.quorum.log_view import EpochEnd, SnapshotId
from cotidal.core.trace import Moment, as_json, line, quorum_json, quorum_line
from cotidal.core.trace.quorum import QuorumMoment
from cotidal.errors import ErrorCode
from cotidal.messages.records.quorum import (
    KRaftVersionFeature,
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeMessageVoter,
    VotersRecord,
)
from cotidal.values import LeaderEpoch, NodeId, Offset
from quorum_bench import NONE, Bench, batch, hint, key, log, snapshot, stored
from quorum_world import voters

E5, O7, O12 = LeaderEpoch(5), Offset(7), Offset(12)
TWO, THREE = NodeId(2), NodeId(3)
REACH = SnapshotId(O7, LeaderEpoch(3))
BOTH = KRaftVersionFeature(0, 1)
VOTE = say.Vote(key(2), key(1), E5, LeaderEpoch(4), O12, False)
REPLY = say.FetchReply(NONE, hint(2, 5), O7, Offset(0))
CHANGE = LeaderChangeMessage(0, 2, (), (LeaderChangeMessageVoter(2), LeaderChangeMessageVoter(3)))
STATE = stored(5, leader=2, voted=2)

TOLD: list[tuple[Moment, str]] = [
    (seen.Started(None), "started on a new disk"),
    (
        seen.Started(STATE, log(1, 1, 5), (snapshot(7, 3),)),
        "started epoch=5 leader=2 voted=2 log=0..3 snapshot=7@3",
    ),
    (seen.Asked(seen.RequestToken(1), VOTE), "asked vote for 2 epoch=5 log=12@4"),
    (
        seen.Answered(TWO, seen.AskId(1), say.VoteReply(NONE, hint(-1, 5), True)),
        "answered by 2: vote-reply yes epoch=5 leader=none",
    ),
    (seen.ProposalMade(None, 3, 90, E5), "proposal-made 3 records epoch=5"),
    (seen.Persisted(seen.PersistToken(4)), "persisted 4"),
    (
        seen.Persisted(seen.PersistToken(4), snapshot(7, 3)),
        "persisted 4 with snapshot 7@3",
    ),
    (seen.SnapshotWritten(snapshot(7, 3)), "snapshot-written 7@3"),
    (seen.PeerConnected(TWO), "peer-connected 2"),
    (seen.PeerUnreachable(TWO, refused=False), "peer-unreachable 2"),
    (seen.PeerUnreachable(TWO, refused=True), "peer-unreachable 2 refuses"),
    (seen.Ticked(), "ticked"),
    (seen.ShutdownAsked(), "shutdown-asked"),
    (VOTE, "vote for 2 epoch=5 log=12@4"),
    (VOTE._replace(pre_vote=True), "pre-vote for 2 epoch=5 log=12@4"),
    (say.BeginEpoch(TWO, key(1), E5, ()), "begin-epoch epoch=5 leader=2"),
    (say.EndEpoch(TWO, E5, (key(3), key(1))), "end-epoch epoch=5 leader=2 successors=(3 1)"),
    (
        say.Fetch(key(3), E5, O12, LeaderEpoch(4), O7, 500),
        "fetch by 3 epoch=5 offset=12@4",
    ),
    (
        say.FetchChunk(key(3), E5, REACH, 40, 10),
        "fetch-chunk by 3 epoch=5 snapshot=7@3 at=40",
    ),
    (say.AddVoter(key(4), (), BOTH, 100), "add-voter 4"),
    (say.RemoveVoter(key(3), 100), "remove-voter 3"),
    (say.RaiseVersion(1, (), 100), "raise-version 1"),
    (say.UpdateVoter(E5, key(3), (), BOTH, 100), "update-voter 3 epoch=5"),
    (say.VoteReply(NONE, hint(2, 5), False), "vote-reply no epoch=5 leader=2"),
    (
        say.VoteReply(ErrorCode.FENCED_LEADER_EPOCH, hint(2, 5), False),
        "vote-reply FENCED_LEADER_EPOCH(74) epoch=5 leader=2",
    ),
    (say.EpochReply(NONE, hint(2, 5)), "epoch-reply ok epoch=5 leader=2"),
    (REPLY, "fetch-reply nothing hw=7"),
    (REPLY._replace(records=say.RecordRange(O7, O12)), "fetch-reply 7-11 hw=7"),
    (REPLY._replace(records=say.RecordRange(O7, O7)), "fetch-reply nothing hw=7"),
    (
        REPLY._replace(records=say.FetchedRecords((batch(7, 4, count=2), batch(9, 5)))),
        "fetch-reply 7-8@4 9@5 hw=7",
    ),
    (REPLY._replace(diverging=EpochEnd(E5, O7)), "fetch-reply diverging epoch=5 end=7"),
    (REPLY._replace(snapshot=REACH), "fetch-reply snapshot=7@3"),
    (
        REPLY._replace(error=ErrorCode.NOT_LEADER_OR_FOLLOWER),
        "fetch-reply NOT_LEADER_OR_FOLLOWER(6) epoch=5 leader=2",
    ),
    (
        say.ChunkReply(NONE, hint(2, 5), REACH, 90, 40, say.FetchedChunk(10)),
        "chunk-reply 7@3 at=40 of 90 bytes",
    ),
    (say.MemberReply(NONE, "", hint(2, 5)), "member-reply ok"),
    (
        say.MemberReply(ErrorCode.DUPLICATE_VOTER, "4 votes already", hint(2, 5)),
        "member-reply DUPLICATE_VOTER(126) 4 votes already",
    ),
    (want.WriteState(STATE), "write-state epoch=5 leader=2 voted=2"),
    (want.WriteState(stored(5)), "write-state epoch=5 leader=none voted=none"),
    (want.AppendOwn(O12, E5, None), "append-own at=12 epoch=5"),
    (
        want.AppendControl(O12, E5, (CHANGE,)),
        "append-control at=12 epoch=5: leader-change 2 votes=(2 3)",
    ),
    (want.AppendFetched(O7, O12, None), "append-fetched 7-11"),
    (want.TruncateTo(O7), "truncate-to 7"),
    (want.InstallSnapshot(REACH), "install-snapshot 7@3"),
    (want.CleanTo(O7), "clean-to 7"),
    (
        want.Persist(seen.PersistToken(4), (want.TruncateTo(O7), want.AppendOwn(O7, E5, None))),
        "persist truncate-to 7; append-own at=7 epoch=5",
    ),
    (want.Ask(TWO, (), seen.AskId(1), VOTE), "ask 2: vote for 2 epoch=5 log=12@4"),
    (want.Answer(seen.RequestToken(1), REPLY), "answer fetch-reply nothing hw=7"),
    (want.KeepConnected(((TWO, ()), (THREE, ()))), "keep-connected (2 3)"),
    (want.BecameLeader(E5, O12), "became-leader epoch=5 from=12"),
    (want.LostLeadership(E5), "lost-leadership epoch=5"),
    (want.LeaderKnown(TWO, E5, ()), "leader-known 2 epoch=5"),
    (want.LeaderUnknown(E5), "leader-unknown epoch=5"),
    (want.ProposalPlaced(None, O12, E5), "proposal-placed at=12 epoch=5"),
    (
        want.ProposalRefused(None, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        "proposal-refused NOT_LEADER_OR_FOLLOWER(6)",
    ),
    (want.Committed(O12), "committed below=12"),
    (want.VotersChanged(voters(1, 2, 3), 1), "voters-changed (1 2 3) kraft.version=1"),
    (want.TakeSnapshot(REACH), "take-snapshot 7@3"),
    (want.KeepChunk(REACH, 40, None), "keep-chunk 7@3 at=40"),
    (want.LoadSnapshot(REACH), "load-snapshot 7@3"),
    (want.ForgetSnapshot(REACH), "forget-snapshot 7@3"),
    (want.Stopped(), "stopped"),
    (want.Fatal("told to cut below 7"), "fatal told to cut below 7"),
    (CHANGE, "leader-change 2 votes=(2 3)"),
    (KRaftVersionRecord(0, 1), "kraft-version 1"),
    (VotersRecord(0, voters(1, 2).voters), "voters (1 2)"),
]


@pytest.mark.parametrize(("moment", "said"), TOLD, ids=[said for _, said in TOLD])
def test_each_moment_is_one_line_and_one_json_object(moment: Moment, said: str) -> None:
    assert line(moment) == said
    told = json.loads(json.dumps(as_json(moment)))
    assert told == as_json(moment)
    assert told["what"] == said.split(" ")[0]


def test_no_event_effect_message_or_record_is_forgotten() -> None:
    assert {type(moment) for moment, _ in TOLD} == set(get_args(QuorumMoment))


def test_programs_are_told_every_field() -> None:
    assert as_json(VOTE) == {
        "what": "vote",
        "candidate": {"node_id": 2, "directory_id": "AAAAAAAAAAAAAAAAAAAAAg"},
        "voter": {"node_id": 1, "directory_id": "AAAAAAAAAAAAAAAAAAAAAQ"},
        "epoch": 5,
        "last_epoch": 4,
        "end_offset": 12,
        "pre_vote": False,
    }


def test_where_a_node_stands_is_told_by_its_role() -> None:
    assert quorum_line(Bench().start().q) == "unattached epoch=0 hw=0 end=0"
    assert quorum_line(Bench().start().stand().q) == "candidate epoch=1 voted=1 hw=0 end=0"
    assert quorum_line(Bench().start().lead().q) == "leader epoch=1 hw=0 end=3"
    following = Bench().start(stored(4), log(4, start=7), snapshot(7, 3)).follow(epoch=5)
    assert quorum_line(following.q) == "follower epoch=5 follows=2 start=7 hw=7 end=8"


def test_programs_are_told_voters_and_epochs_too() -> None:
    state = quorum_json(Bench().start().lead().q)
    assert json.loads(json.dumps(state)) == {
        "role": "leader",
        "epoch": 1,
        "leader": 1,
        "voted": 1,
        "start_offset": 0,
        "high_watermark": 0,
        "end_offset": 3,
        "epochs": [[1, 0]],
        "voters": [1, 2, 3],
    }
