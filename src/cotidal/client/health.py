"""Whether a cluster is well: the worst that is known of it in one sentence, the rest below. Pure.

In the order in which they hurt: partitions that nobody leads, partitions under their minimum of
in-sync replicas, brokers that do not serve, replicas that are not in sync. Each is one sentence
that names the first of its kind, says how many more there are, and what must come back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final, NamedTuple

from cotidal.client.standing import PartitionStanding
from cotidal.client.status import Status
from cotidal.values import NodeId
from cotidal.words import counted

NAMED_MAX: Final = 8
"""Brokers named in one sentence: it is to be read at a glance."""


class Severity(Enum):
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"


class Trouble(NamedTuple):
    severity: Severity
    sentence: str
    partitions: int
    """How many have it; 0 where it is no partition's."""


class Health(NamedTuple):
    severity: Severity
    sentence: str
    troubles: tuple[Trouble, ...]


def health_of(status: Status) -> Health:
    found = [
        trouble
        for trouble in (
            _leaderless(status.partitions),
            _under_min_isr(status.partitions),
            _away(status),
            _lagging(status.partitions),
        )
        if trouble is not None
    ]
    if found:
        worst = max(found, key=lambda trouble: trouble.severity is Severity.BAD)
        return Health(worst.severity, worst.sentence, tuple(found))
    brokers, partitions = len(status.brokers), len(status.partitions)
    text = f"All well: {counted(brokers, 'broker')}, {counted(partitions, 'partition')}"
    return Health(Severity.GOOD, f"{text}{', all in sync' if partitions else ''}.", ())


def _leaderless(partitions: Iterable[PartitionStanding]) -> Trouble | None:
    found = [each for each in partitions if not each.partition.has_leader]
    if not found:
        return None
    first = found[0]
    safe = first.partition.isr or first.eligible.elr
    if safe:
        until = f"until {_any_of(safe, 1)} back"
    else:
        until = "and no replica is known to hold every record: see what an election would drop"
    what = "has no leader: nobody can read or write it"
    return Trouble(Severity.BAD, f"{_first(found)} {what} {until}{_more(found)}.", len(found))


def _under_min_isr(partitions: Iterable[PartitionStanding]) -> Trouble | None:
    found = [
        each
        for each in partitions
        if each.partition.has_leader and each.min_isr is not None and _missing(each) > 0
    ]
    if not found:
        return None
    first = found[0]
    out = [node for node in first.partition.replicas if node not in first.partition.isr]
    what = "is under min ISR: writes with acks=all are refused"
    until = (
        f"until {_any_of(out, _missing(first))} back in sync"
        if len(out) >= _missing(first)
        else f"because it has fewer replicas than its min ISR of {first.min_isr}"
    )
    return Trouble(Severity.BAD, f"{_first(found)} {what} {until}{_more(found)}.", len(found))


def _missing(each: PartitionStanding) -> int:
    return (each.min_isr or 0) - len(each.partition.isr)


def _away(status: Status) -> Trouble | None:
    scene = status.scene
    away = sorted(scene.fenced | set(scene.silent))
    if not away:
        return None
    first = away[0]
    why = scene.fenced_text(first) if first in scene.fenced else "it does not answer"
    if len(away) == 1:
        return Trouble(Severity.WARN, f"Broker {first} does not serve: {why}.", 0)
    return Trouble(Severity.WARN, f"Brokers {_listed(away, 'and')} do not serve.", 0)


def _lagging(partitions: Iterable[PartitionStanding]) -> Trouble | None:
    found = [each for each in partitions if each.partition.is_under_replicated]
    if not found:
        return None
    first = found[0]
    out = [each for each in first.replicas if each.node_id not in first.partition.isr]
    why = f": {out[0].why}" if len(out) == 1 and out[0].why else ""
    who = _listed([each.node_id for each in out], "and")
    text = f"{_first(found)} lacks broker {who} in sync{why}{_more(found)}."
    return Trouble(Severity.WARN, text, len(found))


def _first(found: Sequence[PartitionStanding]) -> str:
    return str(found[0].at)


def _more(found: Sequence[PartitionStanding]) -> str:
    others = len(found) - 1
    return f" (and {counted(others, 'more partition')})" if others else ""


def _any_of(nodes: Sequence[NodeId], needed: int) -> str:
    """``broker 2 or 3 is``, ``brokers 2 and 3 are``, ``two of brokers 2, 3 and 4 are``."""
    if len(nodes) == 1 or needed == 1:
        return f"broker {_listed(nodes, 'or')} is"
    if needed == len(nodes):
        return f"brokers {_listed(nodes, 'and')} are"
    return f"{needed} of brokers {_listed(nodes, 'and')} are"


def _listed(nodes: Sequence[NodeId], joint: str) -> str:
    texts = [str(node) for node in nodes[:NAMED_MAX]]
    if len(nodes) > NAMED_MAX:
        texts.append(f"{len(nodes) - NAMED_MAX} more")
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} {joint} {texts[-1]}"
