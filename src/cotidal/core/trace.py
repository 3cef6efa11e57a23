"""What happened, in words: one line for a person, one JSON object for a program. Pure.

Scripts, the simulator, the live trace and the page share it, so that an event reads the same
wherever it is met. Names are those of the classes, in lower case: ``ProposeIsr`` is
``propose-isr``. Offsets of records are inclusive ranges with their epoch, ``8-11@7``; everything
called ``hw``, ``end`` or ``below`` is exclusive.

Covers one partition so far: its events, verdicts and effects.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias, assert_never

from cotidal.core.partition.effects import (
    AdvanceLogStart,
    AppendFetched,
    CompleteAcks,
    EndMoved,
    LeadershipLost,
    PartitionEffect,
    ProposeIsr,
    Readable,
    RememberEpochs,
    RememberProducers,
    StartOver,
    Truncate,
)
from cotidal.core.partition.follower import Answered, LeaderEnds, Question
from cotidal.core.partition.leader import Admitted, FollowerFetched, IsrAnswered
from cotidal.core.partition.reading import Diverged, Granted
from cotidal.core.partition.replica import Replica
from cotidal.errors import ErrorCode, Refusal
from cotidal.messages.batch import BatchHeader
from cotidal.values import EpochEntry

Json: TypeAlias = dict[str, object]
PartitionEvent: TypeAlias = Question | Answered | LeaderEnds | FollowerFetched | IsrAnswered
PartitionVerdict: TypeAlias = Granted | Diverged | Admitted | Refusal
Moment: TypeAlias = PartitionEvent | PartitionVerdict | PartitionEffect


class Told(NamedTuple):
    """One moment: its name, what a person reads after it, what a program reads."""

    name: str
    said: str
    fields: Json


def line(moment: Moment) -> str:
    told = tell(moment)
    return f"{told.name} {told.said}".rstrip()


def as_json(moment: Moment) -> Json:
    told = tell(moment)
    return {"what": told.name, **told.fields}


def tell(moment: Moment) -> Told:
    match moment:
        case Question() | Answered() | LeaderEnds() | FollowerFetched() | IsrAnswered():
            return _tell_event(moment)
        case Granted() | Diverged() | Admitted() | Refusal():
            return _tell_verdict(moment)
        case _:
            return _tell_effect(moment)


def state_line(replica: Replica) -> str:
    """Where a replica stands: log start if it has moved, high watermark, end, and its role."""
    state = state_json(replica)
    words = [] if not replica.start_offset else [f"start={replica.start_offset}"]
    words += [f"hw={replica.high_watermark}", f"end={replica.end_offset}"]
    if "isr" in state:
        words.append(f"isr={_ids(state['isr'])}")
        if state["proposed"] is not None:
            words.append(f"proposed={_ids(state['proposed'])}")
    elif "leader" in state:
        words.append(f"follows={state['leader']}")
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


def spans(headers: Iterable[BatchHeader]) -> str:
    """Batches as ranges of offsets, one for each run of an epoch: ``0-9@1 10-12@3``."""
    runs: list[tuple[int, int, int]] = []
    for header in headers:
        epoch, first = header.leader_epoch, int(header.base_offset)
        if runs and runs[-1][0] == epoch and runs[-1][2] + 1 == first:
            first = runs.pop()[1]
        runs.append((epoch, first, header.last_offset))
    return " ".join(f"{_range(first, last)}@{epoch}" for epoch, first, last in runs)


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
                return Told("isr-answered", _named(error), {"error": int(error)})
            fields = {"isr": list(isr), "epoch": epoch, "partition_epoch": partition_epoch}
            return Told("isr-answered", _ids(isr), fields)
        case _:
            assert_never(event)


def _tell_answer(answered: Answered) -> Told:
    if answered.error is not ErrorCode.NONE:
        return Told("answer", _named(answered.error), {"error": int(answered.error)})
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
            return Told(name, _range(base, after - 1), fields)
        case Refusal(error):
            fields = {"error": int(error), "text": verdict.text}
            return Told("refuse", f"{_named(error)} {verdict.text}", fields)
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
            return Told("remember-epochs", _epochs(entries), {"epochs": [list(e) for e in entries]})
        case RememberProducers(snapshot):
            fields = {"producers": len(snapshot.entries), "below": snapshot.offset}
            said = f"{len(snapshot.entries)} below={snapshot.offset}"
            return Told("remember-producers", said, fields)
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
            return Told("propose-isr", _ids(isr), fields)
        case _:
            assert_never(effect)


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _ids(ids: object) -> str:
    assert isinstance(ids, list | tuple)
    return f"({' '.join(map(str, ids))})"


def _epochs(entries: Iterable[EpochEntry]) -> str:
    return " ".join(f"{entry.epoch}@{entry.start_offset}" for entry in entries)


def _named(error: ErrorCode) -> str:
    return f"{error.name}({int(error)})"
