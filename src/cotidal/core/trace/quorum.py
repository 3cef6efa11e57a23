"""The quorum in words: what its nodes say, what happens to them, what they want. Pure.

A snapshot or a reach is ``7@3``: it ends at offset 7, its last record is of epoch 3.
"""

from __future__ import annotations

from typing import TypeAlias, assert_never

from cotidal.core.quorum import dialogue as say
from cotidal.core.quorum import effects as want
from cotidal.core.quorum import events as seen
from cotidal.core.quorum.states import Follower, Leader, Quorum
from cotidal.core.quorum.voters import ControlRecord
from cotidal.core.trace.told import Json, Told, fields_of, ids, named, node, span
from cotidal.errors import ErrorCode
from cotidal.messages.records.quorum import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    QuorumStateData,
    VotersRecord,
)
from cotidal.words import counted

QuorumMoment: TypeAlias = (
    seen.Event | want.Effect | want.Write | say.Question | say.Reply | ControlRecord
)


def tell_quorum(moment: QuorumMoment) -> Told:
    name, said = _words(moment)
    return Told(name, said, fields_of(moment))


def quorum_line(q: Quorum) -> str:
    """Where a node of the quorum stands."""
    role = q.role
    words = [type(role).__name__.lower(), f"epoch={q.epoch}"]
    if isinstance(role, Follower):
        words.append(f"follows={q.leader_id}")
    if q.voted is not None and not isinstance(role, Leader):
        words.append(f"voted={q.voted.node_id}")
    if q.log.start_offset:
        words.append(f"start={q.log.start_offset}")
    words += [f"hw={q.high_watermark}", f"end={q.log.end_offset}"]
    return " ".join(words)


def quorum_json(q: Quorum) -> Json:
    return {
        "role": type(q.role).__name__.lower(),
        "epoch": q.epoch,
        "leader": q.leader_id,
        "voted": None if q.voted is None else q.voted.node_id,
        "start_offset": q.log.start_offset,
        "high_watermark": q.high_watermark,
        "end_offset": q.log.end_offset,
        "epochs": [list(entry) for entry in q.log.line],
        "voters": list(q.voter_set.ids),
    }


def _words(moment: QuorumMoment) -> tuple[str, str]:
    match moment:
        case (
            seen.Started()
            | seen.Asked()
            | seen.Answered()
            | seen.ProposalMade()
            | seen.Persisted()
            | seen.SnapshotWritten()
            | seen.PeerConnected()
            | seen.PeerUnreachable()
            | seen.Ticked()
            | seen.ShutdownAsked()
        ):
            return _event(moment)
        case (
            say.Vote()
            | say.BeginEpoch()
            | say.EndEpoch()
            | say.Fetch()
            | say.FetchChunk()
            | say.AddVoter()
            | say.RemoveVoter()
            | say.UpdateVoter()
            | say.RaiseVersion()
        ):
            return _question(moment)
        case (
            say.VoteReply()
            | say.EpochReply()
            | say.FetchReply()
            | say.ChunkReply()
            | say.MemberReply()
        ):
            return _reply(moment)
        case (
            want.WriteState()
            | want.AppendOwn()
            | want.AppendControl()
            | want.AppendFetched()
            | want.TruncateTo()
            | want.InstallSnapshot()
            | want.CleanTo()
        ):
            return _write(moment)
        case LeaderChangeMessage() | KRaftVersionRecord() | VotersRecord():
            return _control(moment)
        case _:
            return _effect(moment)


def _line(moment: QuorumMoment) -> str:
    name, said = _words(moment)
    return f"{name} {said}".rstrip()


def _event(event: seen.Event) -> tuple[str, str]:
    match event:
        case seen.Started(stored, log, snapshots):
            if stored is None and not log.end_offset:
                return "started", "on a new disk"
            words = [] if stored is None else [_stored(stored)]
            words.append(f"log={log.start_offset}..{log.end_offset}")
            words += [f"snapshot={_reach(facts.id)}" for facts in snapshots[-1:]]
            return "started", " ".join(words)
        case seen.Asked(_, message):
            return "asked", _line(message)
        case seen.Answered(peer, _, message):
            return "answered", f"by {peer}: {_line(message)}"
        case seen.ProposalMade(_, records, _, epoch):
            return "proposal-made", f"{counted(records, 'record')} epoch={epoch}"
        case seen.Persisted(token, installed):
            told = "" if installed is None else f" with snapshot {_reach(installed.id)}"
            return "persisted", f"{token}{told}"
        case seen.SnapshotWritten(snapshot):
            return "snapshot-written", _reach(snapshot.id)
        case seen.PeerConnected(peer):
            return "peer-connected", str(peer)
        case seen.PeerUnreachable(peer, refused):
            return "peer-unreachable", f"{peer} refuses" if refused else str(peer)
        case seen.Ticked():
            return "ticked", ""
        case seen.ShutdownAsked():
            return "shutdown-asked", ""
        case _:
            assert_never(event)


def _question(question: say.Question) -> tuple[str, str]:
    match question:
        case say.Vote(candidate, _, epoch, last_epoch, end, pre_vote):
            name = "pre-vote" if pre_vote else "vote"
            return name, f"for {candidate.node_id} epoch={epoch} log={end}@{last_epoch}"
        case say.BeginEpoch(leader, _, epoch, _):
            return "begin-epoch", f"epoch={epoch} leader={leader}"
        case say.EndEpoch(leader, epoch, successors):
            after = ids(key.node_id for key in successors)
            return "end-epoch", f"epoch={epoch} leader={leader} successors={after}"
        case say.Fetch(replica, epoch, offset, last_epoch, _, _):
            return "fetch", f"by {replica.node_id} epoch={epoch} offset={offset}@{last_epoch}"
        case say.FetchChunk(replica, epoch, snapshot, position, _):
            said = f"by {replica.node_id} epoch={epoch} snapshot={_reach(snapshot)} at={position}"
            return "fetch-chunk", said
        case say.AddVoter(key):
            return "add-voter", str(key.node_id)
        case say.RemoveVoter(key):
            return "remove-voter", str(key.node_id)
        case say.UpdateVoter(epoch, key):
            return "update-voter", f"{key.node_id} epoch={epoch}"
        case say.RaiseVersion(kraft_version):
            return "raise-version", str(kraft_version)
        case _:
            assert_never(question)


def _reply(reply: say.Reply) -> tuple[str, str]:
    match reply:
        case say.VoteReply(error, hint, granted):
            return "vote-reply", f"{_outcome(error, 'yes' if granted else 'no')} {_hint(hint)}"
        case say.EpochReply(error, hint):
            return "epoch-reply", f"{_outcome(error, 'ok')} {_hint(hint)}"
        case say.FetchReply():
            return "fetch-reply", _fetched(reply)
        case say.ChunkReply(error, hint, snapshot, size, position, chunk):
            got = f"{_reach(snapshot)} at={position} of {size} bytes"
            return "chunk-reply", _outcome(error, got if chunk is not None else _hint(hint))
        case say.MemberReply(error, text, _):
            return "member-reply", f"{_outcome(error, 'ok')} {text}".rstrip()
        case _:
            assert_never(reply)


def _fetched(reply: say.FetchReply) -> str:
    if reply.error is not ErrorCode.NONE:
        return f"{named(reply.error)} {_hint(reply.hint)}"
    if reply.diverging is not None:
        return f"diverging epoch={reply.diverging.epoch} end={reply.diverging.end_offset}"
    if reply.snapshot is not None:
        return f"snapshot={_reach(reply.snapshot)}"
    match reply.records:
        case say.RecordRange(offset, below):
            records = span(offset, below - 1) if below > offset else "nothing"
        case say.FetchedRecords(batches):
            records = " ".join(
                f"{span(batch.base_offset, batch.next_offset - 1)}@{batch.epoch}"
                for batch in batches
            )
        case None:
            records = ""
    return f"{records or 'nothing'} hw={reply.high_watermark}"


def _write(write: want.Write) -> tuple[str, str]:
    match write:
        case want.WriteState(state):
            return "write-state", _stored(state)
        case want.AppendOwn(base, epoch, _):
            return "append-own", f"at={base} epoch={epoch}"
        case want.AppendControl(base, epoch, records):
            said = ", ".join(_line(record) for record in records)
            return "append-control", f"at={base} epoch={epoch}: {said}"
        case want.AppendFetched(base, after, _):
            return "append-fetched", span(base, after - 1)
        case want.TruncateTo(offset):
            return "truncate-to", str(offset)
        case want.InstallSnapshot(snapshot):
            return "install-snapshot", _reach(snapshot)
        case want.CleanTo(offset):
            return "clean-to", str(offset)
        case _:
            assert_never(write)


def _effect(effect: want.Effect) -> tuple[str, str]:
    match effect:
        case want.Persist(_, writes):
            return "persist", "; ".join(_line(write) for write in writes)
        case want.Ask(peer, _, _, message):
            return "ask", f"{peer}: {_line(message)}"
        case want.Answer(_, message):
            return "answer", _line(message)
        case want.KeepConnected(peers):
            return "keep-connected", ids(peer for peer, _ in peers)
        case want.BecameLeader(epoch, start):
            return "became-leader", f"epoch={epoch} from={start}"
        case want.LostLeadership(epoch):
            return "lost-leadership", f"epoch={epoch}"
        case want.LeaderKnown(leader, epoch, _):
            return "leader-known", f"{leader} epoch={epoch}"
        case want.LeaderUnknown(epoch):
            return "leader-unknown", f"epoch={epoch}"
        case want.Committed(high_watermark):
            return "committed", f"below={high_watermark}"
        case want.VotersChanged(voters, version):
            return "voters-changed", f"{ids(voters.ids)} kraft.version={version}"
        case want.Stopped():
            return "stopped", ""
        case want.Fatal(sentence):
            return "fatal", sentence
        case want.ProposalPlaced() | want.ProposalRefused():
            return _proposal(effect)
        case want.TakeSnapshot() | want.KeepChunk() | want.LoadSnapshot() | want.ForgetSnapshot():
            return _snapshot(effect)
        case _:
            assert_never(effect)


def _proposal(effect: want.ProposalPlaced | want.ProposalRefused) -> tuple[str, str]:
    match effect:
        case want.ProposalPlaced(_, base, epoch):
            return "proposal-placed", f"at={base} epoch={epoch}"
        case want.ProposalRefused(_, error):
            return "proposal-refused", named(error)
        case _:
            assert_never(effect)


def _snapshot(
    effect: want.TakeSnapshot | want.KeepChunk | want.LoadSnapshot | want.ForgetSnapshot,
) -> tuple[str, str]:
    match effect:
        case want.TakeSnapshot(snapshot):
            return "take-snapshot", _reach(snapshot)
        case want.KeepChunk(snapshot, position, _):
            return "keep-chunk", f"{_reach(snapshot)} at={position}"
        case want.LoadSnapshot(snapshot):
            return "load-snapshot", _reach(snapshot)
        case want.ForgetSnapshot(snapshot):
            return "forget-snapshot", _reach(snapshot)
        case _:
            assert_never(effect)


def _control(record: ControlRecord) -> tuple[str, str]:
    match record:
        case LeaderChangeMessage():
            granted = ids(voter.voter_id for voter in record.granting_voters)
            return "leader-change", f"{record.leader_id} votes={granted}"
        case KRaftVersionRecord():
            return "kraft-version", str(record.kraft_version)
        case VotersRecord():
            return "voters", ids(voter.voter_id for voter in record.voters)
        case _:
            assert_never(record)


def _stored(state: QuorumStateData) -> str:
    return f"epoch={state.leader_epoch} leader={node(state.leader_id)} voted={node(state.voted_id)}"


def _reach(snapshot: tuple[int, int]) -> str:
    return f"{snapshot[0]}@{snapshot[1]}"


def _hint(hint: say.Hint) -> str:
    return f"epoch={hint.epoch} leader={node(hint.leader_id)}"


def _outcome(error: ErrorCode, said: str) -> str:
    return said if error is ErrorCode.NONE else named(error)
