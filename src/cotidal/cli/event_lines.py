"""A record of __cotidal_events as a line that a person reads.

A kind that is not known here (a newer broker's) is told with its fields as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

Event = Mapping[str, Any]

ENVELOPE: Final = ("v", "kind", "time", "teller", "incarnation", "sequence", "topic", "partition")


def event_line(event: Event) -> str:
    """``12:04:31.207  node 2  orders-0  leader_changed: 1 -> 3 in epoch 6, ISR 3,2``"""
    moment = datetime.fromtimestamp(event["time"] / 1000).astimezone()
    when = moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{event['time'] % 1000:03d}"
    about = f"{event['topic']}-{event['partition']}  " if "topic" in event else ""
    said = _SENTENCES.get(event["kind"], _fields)(event)
    return f"{when}  node {event['teller']}  {about}{event['kind']}: {said}"


def _ids(nodes: list[int]) -> str:
    return ",".join(map(str, nodes)) or "nobody"


def _node(node: int) -> str:
    return "nobody" if node < 0 else str(node)


def _fields(event: Event) -> str:
    return ", ".join(f"{name}={value}" for name, value in event.items() if name not in ENVELOPE)


def _isr(event: Event, word: str) -> str:
    moved = _ids(event["removed" if word == "without" else "added"])
    led = f"led by {_node(event['leader'])} in epoch {event['leader_epoch']}"
    return f"ISR {_ids(event['isr'])}, {word} {moved}, {led}"


def _broker(event: Event) -> str:
    return f"broker {event['node']} (epoch {event['node_epoch']})"


def _registered(event: Event) -> str:
    return _broker(event) + (f" in rack {event['rack']}" if event["rack"] else "")


def _truncated(event: Event) -> str:
    last = event["offset"] + event["records"] - 1
    lost = event["high_watermark"] - event["offset"]
    below = f", {lost} of them below the high watermark" if lost > 0 else ""
    return f"drops offsets {event['offset']} to {last}{below}"


def _health(event: Event) -> str:
    worst = max(
        (
            (follower["lag_records"], follower["lag_ms"], each, follower)
            for each in event["partitions"]
            for follower in each["followers"]
        ),
        key=lambda lag: lag[:2],
        default=None,
    )
    said = f"leads {event['leads']}, {event['under_replicated']} under-replicated"
    said += f", {event['under_min_isr']} under min ISR"
    if event["offline_replicas"]:
        said += f", {event['offline_replicas']} offline"
    if worst is not None and worst[0]:
        _, _, each, follower = worst
        said += f"; {each['topic']}-{each['partition']} is {follower['lag_records']} records"
        said += f" behind on {follower['node']}"
    return said


_SENTENCES: Final[dict[str, Callable[[Event], str]]] = {
    "isr_shrunk": lambda e: _isr(e, "without"),
    "isr_expanded": lambda e: _isr(e, "with"),
    "leader_changed": lambda e: (
        f"{_node(e['previous'])} -> {_node(e['leader'])} in epoch {e['leader_epoch']},"
        f" ISR {_ids(e['isr'])}"
    ),
    "leader_epoch_raised": lambda e: f"{_node(e['leader'])} leads on in epoch {e['leader_epoch']}",
    "unclean_election": lambda e: (
        f"{_node(e['leader'])} in epoch {e['leader_epoch']} may lack what "
        + ("it lost in a crash" if e["was_last_leader"] else "was acknowledged")
        + f"; the ISR was {_ids(e['previous_isr'])}"
    ),
    "reassignment_started": lambda e: (
        f"{_ids(e['replicas'])}, adding {_ids(e['adding'])}, removing {_ids(e['removing'])}"
    ),
    "reassignment_ended": lambda e: f"replicas {_ids(e['replicas'])}",
    "broker_registered": _registered,
    "broker_unregistered": lambda e: f"broker {e['node']}",
    "broker_fenced": _broker,
    "broker_unfenced": _broker,
    "controlled_shutdown": _broker,
    "controller_changed": lambda e: f"{e['controller']} in epoch {e['controller_epoch']}",
    "log_truncated": _truncated,
    "high_watermark_regressed": lambda e: f"{e['previous']} -> {e['high_watermark']}",
    "log_offline": lambda e: str(e["reason"]),
    "directory_offline": lambda e: str(e["reason"]),
    "health": _health,
}
