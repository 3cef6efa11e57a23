"""What happens to a live cluster, in sentences: told by its brokers, or seen between two pictures.

Pure. A cluster that writes __cotidal_events tells itself what happened, with its moment; of any
other one the difference between two looks is told, which misses what came and went in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from cotidal.console.teller import ids
from cotidal.console.world import Json
from cotidal.words import counted

Event = Mapping[str, Any]


class Told(NamedTuple):
    kind: str
    """As the page colours it."""
    text: str
    big: bool = True
    """What a person would tell another."""


# What brokers tell


def told_of(event: Event) -> Told | None:
    """None for what is no happening, or is not known here, or lacks what its kind has."""
    tell = _EVENTS.get(event["kind"])
    try:
        return None if tell is None else tell(event)
    except (KeyError, TypeError, ValueError):  # anybody may write into a topic
        return None


def _at(event: Event) -> str:
    return f"{event['topic']}-{event['partition']}"


def _leader(node: int) -> str:
    return "nobody" if node < 0 else f"broker {node}"


def _shrunk(event: Event) -> Told:
    gone = ids(event["removed"])
    return Told("isr", f"The ISR of {_at(event)} shrinks to {ids(event['isr'])}, without {gone}.")


def _expanded(event: Event) -> Told:
    return Told(
        "isr",
        f"Broker {ids(event['added'])} has caught up with {_at(event)}: the ISR grows to"
        f" {ids(event['isr'])}.",
    )


def _changed(event: Event) -> Told:
    at, epoch = _at(event), event["leader_epoch"]
    if event["leader"] < 0:
        return Told("elect", f"Nobody leads {at} any more, in epoch {epoch}.")
    was = _leader(event["previous"])
    return Told(
        "elect",
        f"Broker {event['leader']} leads {at} in epoch {epoch}, after {was}; the ISR is"
        f" {ids(event['isr'])}.",
    )


def _unclean(event: Event) -> Told:
    lacks = "it lost in a crash" if event["was_last_leader"] else "was acknowledged"
    return Told(
        "lost",
        f"Broker {event['leader']} leads {_at(event)} UNCLEANLY in epoch"
        f" {event['leader_epoch']}: it may lack what {lacks}.",
    )


def _truncated(event: Event) -> Told:
    first, records = event["offset"], event["records"]
    text = (
        f"Broker {event['teller']}'s log of {_at(event)} parted from its leader's at {first}: it"
        f" cuts {counted(records, 'record')}."
    )
    return Told("cut", text)


def _regressed(event: Event) -> Told:
    return Told(
        "cut",
        f"Broker {event['teller']} hears of a lower high watermark of {_at(event)}:"
        f" {event['high_watermark']} after {event['previous']}.",
    )


def _moving(event: Event) -> Told:
    return Told(
        "config",
        f"{_at(event)} is to move: broker {ids(event['adding'])} comes, {ids(event['removing'])}"
        " goes.",
    )


_EVENTS: Final[Mapping[str, Callable[[Event], Told]]] = {
    "isr_shrunk": _shrunk,
    "isr_expanded": _expanded,
    "leader_changed": _changed,
    "leader_epoch_raised": lambda event: Told(
        "elect",
        f"{_leader(event['leader']).capitalize()} leads {_at(event)} on, in epoch"
        f" {event['leader_epoch']}.",
        big=False,
    ),
    "unclean_election": _unclean,
    "reassignment_started": _moving,
    "reassignment_ended": lambda event: Told(
        "config", f"The replicas of {_at(event)} are {ids(event['replicas'])}: no more moves."
    ),
    "broker_registered": lambda event: Told(
        "register", f"Broker {event['node']} registers with the controller.", big=False
    ),
    "broker_unregistered": lambda event: Told(
        "register", f"Broker {event['node']} is unregistered."
    ),
    "broker_fenced": lambda event: Told(
        "fence", f"The controller fences broker {event['node']}: it leads nothing."
    ),
    "broker_unfenced": lambda event: Told(
        "start", f"Broker {event['node']} has caught up with the metadata: it takes part again."
    ),
    "controlled_shutdown": lambda event: Told(
        "register", f"Broker {event['node']} is leaving: what it leads goes to others first."
    ),
    "controller_changed": lambda event: Told(
        "quorum",
        f"Node {event['controller']} is the active controller, of term"
        f" {event['controller_epoch']}.",
    ),
    "log_truncated": _truncated,
    "high_watermark_regressed": _regressed,
    "log_offline": lambda event: Told(
        "broken",
        f"Broker {event['teller']}'s log of {_at(event)} is offline: {event['reason']}.",
    ),
    "directory_offline": lambda event: Told(
        "broken", f"A log directory of broker {event['teller']} has failed: {event['reason']}."
    ),
}


# What is seen


def told_between(before: Json, after: Json) -> Iterator[Told]:
    """Two pictures of one cluster."""
    yield from _brokers(before["brokers"], after["brokers"])
    known = before["partitions"]
    for name, partition in after["partitions"].items():
        if name in known:
            yield from _partition(name, known[name], partition)


def _brokers(before: Json, after: Json) -> Iterator[Told]:
    for node, broker in after.items():
        was = before.get(node)
        if was is None:
            yield Told("register", f"Broker {node} is there.")
        elif was["state"] != broker["state"]:
            kind = "start" if broker["state"] == "up" else "fence"
            yield Told(kind, f"Broker {node} is {broker['state']}; it was {was['state']}.")
        led = was is not None and was.get("quorum", {}).get("role") == "leader"
        if was is not None and broker.get("quorum", {}).get("role") == "leader" and not led:
            epoch = broker["quorum"]["epoch"]
            yield Told("quorum", f"Node {node} is the active controller, of term {epoch}.")
    for node in before:
        if node not in after:
            yield Told("fence", f"Broker {node} is registered no longer.")


def _partition(name: str, before: Json, after: Json) -> Iterator[Told]:
    if after["leader_epoch"] != before["leader_epoch"] or after["leader"] != before["leader"]:
        epoch, isr = after["leader_epoch"], ids(after["isr"])
        if after["leader"] < 0:
            yield Told("elect", f"Nobody leads {name} any more.")
        else:
            was = _leader(before["leader"])
            yield Told(
                "elect",
                f"Broker {after['leader']} leads {name} in epoch {epoch}, after {was}; the ISR is"
                f" {isr}.",
            )
    elif sorted(after["isr"]) != sorted(before["isr"]):
        verb = "grows" if len(after["isr"]) > len(before["isr"]) else "shrinks"
        yield Told("isr", f"The ISR of {name} {verb} to {ids(after['isr'])}.")
    if after["replicas"] != before["replicas"]:
        yield Told("config", f"The replicas of {name} are {ids(after['replicas'])} now.")
