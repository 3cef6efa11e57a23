"""One partition in words: its events, verdicts and effects, and where a replica stands. Pure.

Offsets of records are inclusive ranges with their epoch, ``8-11@7``; everything called ``hw``,
``end`` or ``below`` is exclusive.
"""

from __future__ import annotations

from typing import TypeAlias, assert_never

from cotidal.core.partition.effects import (
    AdvanceLogStart,
    AppendFetched,
    CompleteAcks,
    EndMoved,
    LeadershipLost,
    PartitionEffect,
    ProposeIsr,
    Readable,
    RememberAborted,
    RememberEpochs,
    RememberProducers,
    StartOver,
    Truncate,
)
from cotidal.core.partition.follower import Answered, LeaderEnds, Question
from cotidal.core.partition.leader import Admitted, FollowerFetched, IsrAnswered
from cotidal.core.partition.reading import Diverged, Granted
from cotidal.core.partition.replica import Replica
from cotidal.core.trace.told import Json, Told, epochs, ids, named, span, spans
from cotidal.errors import ErrorCode, Refusal

PartitionEvent: TypeAlias = Question | Answered | LeaderEnds | FollowerFetched | IsrAnswered
PartitionVerdict: TypeAlias = Granted | Diverged | Admitted | Refusal
PartitionMoment: TypeAlias = PartitionEvent | PartitionVerdict | PartitionEffect


def tell_partition(moment: PartitionMoment) -> Told:
    match moment:
        case Question() | Answered() | LeaderEnds() | FollowerFetched() | IsrAnswered():
            return _tell_event(moment)
        case Granted() | Diverged() | Admitted() | Refusal():
            return _tell_verdict(moment)
        case _:
            return _tell_effect(moment)


def state_line(replica: Replica) -> str:
    """Where a replica stands: log start if it has moved, high watermark, end, and its role."""
    words = [] if not replica.start_offset else [f"start={replica.start_offset}"]
    words += [f"hw={replica.high_watermark}", f"end={replica.end_offset}"]
    if replica.leadership is not None:
        words.append(f"isr={ids(replica.leadership.isr)}")
        if replica.leadership.proposed is not None:
            words.append(f"proposed={ids(replica.leadership.proposed)}")
    elif replica.following is not None:
        words.append(f"follows={replica.following.leader}")
    else:
        words.append("offline" if replica.offline_reason is not None else "idle")
    return " ".join(words)


def state_json(replica: Replica) -> Json:
    state: Json = {
        "partition": str(replica.partition),
        "start_offset": replica.start_offset,
        "high_watermark": replica.high_watermark,
        "end_offset": replica.end_offset,
        "epoch": replica.leader_epoch,
        "epochs": [list(entry) for entry in replica.epochs.entries],
    }
    if replica.leadership is not None:
        proposed = replica.leadership.proposed
        state["isr"] = list(replica.leadership.isr)
        state["proposed"] = None if proposed is None else list(proposed)
    elif replica.following is not None:
        state["leader"] = replica.following.leader
    return state


def _tell_event(event: PartitionEvent) -> Told:
    match event:
        case Question(epoch, offset, last_epoch, start):
            said = f"epoch={epoch} offset={offset} last-epoch={last_epoch}"
            fields: Json = {"epoch": epoch, "offset": offset, "last_epoch": last_epoch}
            return Told("ask", said, {**fields, "start_offset": start})
        case Answered():
            return _tell_answer(event)
        case LeaderEnds(_, start, end):
            return Told(
                "ends", f"start={start} end={end}", {"start_offset": start, "end_offset": end}
            )
        case FollowerFetched(node_id, offset, start, broker_epoch):
            fields = {"replica": node_id, "offset": offset, "start_offset": start}
            said = f"replica={node_id} offset={offset}"
            return Told("fetched", said, {**fields, "broker_epoch": broker_epoch})
        case IsrAnswered(_, error, epoch, partition_epoch, isr):
            if error is not ErrorCode.NONE:
                return Told("isr-answered", named(error), {"error": int(error)})
            fields = {"isr": list(isr), "epoch": epoch, "partition_epoch": partition_epoch}
            return Told("isr-answered", ids(isr), fields)
        case _:
            assert_never(event)


def _tell_answer(answered: Answered) -> Told:
    if answered.error is not ErrorCode.NONE:
        return Told("answer", named(answered.error), {"error": int(answered.error)})
    if answered.diverging is not None:
        epoch, end = answered.diverging
        return Told("answer", f"diverging epoch={epoch} end={end}", {"diverging": [epoch, end]})
    records = spans(answered.batches.headers)
    said = f"{records or 'nothing'} hw={answered.high_watermark}"
    if answered.start_offset:
        said += f" start={answered.start_offset}"
    return Told(
        "answer",
        said,
        {
            "records": records,
            "high_watermark": answered.high_watermark,
            "start_offset": answered.start_offset,
        },
    )


def _tell_verdict(verdict: PartitionVerdict) -> Told:
    match verdict:
        case Granted(below):
            return Told("grant", f"below={below}", {"below": below})
        case Diverged((epoch, end)):
            return Told("diverging", f"epoch={epoch} end={end}", {"epoch": epoch, "end": end})
        case Admitted(base, after, write):
            name = "write" if write else "duplicate-of"
            fields: Json = {"base_offset": base, "next_offset": after}
            return Told(name, span(base, after - 1), fields)
        case Refusal(error):
            fields = {"error": int(error), "text": verdict.text}
            return Told("refuse", f"{named(error)} {verdict.text}", fields)
        case _:
            assert_never(verdict)


def _tell_effect(effect: PartitionEffect) -> Told:
    match effect:
        case EndMoved(end):
            return Told("end-moved", str(end), {"end_offset": end})
        case Readable(high_watermark, last_stable):
            fields: Json = {"high_watermark": high_watermark, "last_stable_offset": last_stable}
            return Told("readable", f"hw={high_watermark} lso={last_stable}", fields)
        case CompleteAcks(below):
            return Told("complete-acks", f"below={below}", {"below": below})
        case LeadershipLost(reason):
            return Told("leadership-lost", reason, {"reason": reason})
        case RememberEpochs(entries):
            return Told("remember-epochs", epochs(entries), {"epochs": [list(e) for e in entries]})
        case RememberProducers(snapshot):
            fields = {"producers": len(snapshot.entries), "below": snapshot.offset}
            said = f"{len(snapshot.entries)} below={snapshot.offset}"
            return Told("remember-producers", said, fields)
        case RememberAborted(transactions):
            said = " ".join(f"{each.first_offset}-{each.last_offset}" for each in transactions)
            fields = {"aborted": [list(each) for each in transactions]}
            return Told("remember-aborted", said, fields)
        case AppendFetched(batches):
            records = spans(batches.headers)
            return Told("append", records, {"records": records})
        case Truncate(offset):
            return Told("truncate", f"to={offset}", {"offset": offset})
        case StartOver(offset):
            return Told("start-over", f"at={offset}", {"offset": offset})
        case AdvanceLogStart(offset):
            return Told("advance-log-start", f"to={offset}", {"offset": offset})
        case ProposeIsr(members, epoch, partition_epoch):
            isr = [member.node_id for member in members]
            fields = {"isr": isr, "epoch": epoch, "partition_epoch": partition_epoch}
            fields["broker_epochs"] = [member.broker_epoch for member in members]
            return Told("propose-isr", ids(isr), fields)
        case _:
            assert_never(effect)
