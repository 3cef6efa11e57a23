"""A picture of many partitions, made small: one of them whole, a row for each other. Pure.

Up to ``PAGE_PARTITIONS_WHOLE`` partitions a picture stays as it is. Beyond that

    partitions  has the chosen one only
    clients     say where they are in the chosen one only
    outline     of           how many partitions there are
                rows         name -> [leader, leader epoch, replicas, isr, elr, end, high watermark,
                             min ISR (0: nobody tells), replicas that are offline]
                brokers      id -> how many partitions it leads, follows in sync, follows behind,
                             and has offline

Beyond ``PAGE_PARTITIONS_LISTED`` the rows are those of the partitions that are worst off; the
counts are of all. A row is replaced whole: a patch has the rows that changed and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from cotidal.console.world import Json
from cotidal.limits import PAGE_PARTITIONS_LISTED, PAGE_PARTITIONS_WHOLE

AWAY: Final = ("down", "silent")
NO_LEADER, BELOW_MIN_ISR, BEHIND, NOT_PREFERRED, HEALTHY = range(5)


def outlined(picture: Json, chosen: str) -> Json:
    """``chosen``: the first partition stands in for one that is not there."""
    partitions = picture.get("partitions", {})
    if len(partitions) <= PAGE_PARTITIONS_WHOLE:
        return picture
    down = {int(id_) for id_, told in picture["brokers"].items() if told["state"] in AWAY}
    shown = chosen if chosen in partitions else next(iter(partitions))
    rows = {name: _row(partition, down) for name, partition in partitions.items()}
    return picture | {
        "partitions": {shown: partitions[shown]},
        "clients": {
            name: _at(client, shown) for name, client in picture.get("clients", {}).items()
        },
        "outline": {
            "of": len(rows),
            "rows": _listed(rows),
            "brokers": _counted(picture["brokers"], rows.values()),
        },
    }


def severity(row: list[Any]) -> int:
    """The lower, the worse."""
    leader, _, replicas, isr, *_ = row
    if leader < 0:
        return NO_LEADER
    if len(isr) < row[7]:
        return BELOW_MIN_ISR
    if len(isr) < len(replicas):
        return BEHIND
    return HEALTHY if leader == replicas[0] else NOT_PREFERRED


def _row(partition: Json, down: set[int]) -> list[Any]:
    logs = partition["logs"]
    leader = logs.get(str(partition["leader"]), {})
    offline = [
        node
        for node in partition["replicas"]
        if node in down or logs.get(str(node), {}).get("role") == "offline"
    ]
    return [
        partition["leader"],
        partition["leader_epoch"],
        partition["replicas"],
        partition["isr"],
        partition["elr"],
        leader.get("end", -1),
        leader.get("high_watermark", -1),
        partition.get("min_isr", 0),
        offline,
    ]


def _at(client: Json, partition: str) -> Json:
    """A client, with one partition of all that it reads."""
    return client | {
        name: {partition: client[name][partition]}
        for name in ("positions", "reads_from")
        if partition in client.get(name, ())
    }


def _listed(rows: dict[str, list[Any]]) -> dict[str, list[Any]]:
    if len(rows) <= PAGE_PARTITIONS_LISTED:
        return rows
    worst = sorted(rows, key=lambda name: severity(rows[name]))[:PAGE_PARTITIONS_LISTED]
    return {name: rows[name] for name in worst}


def _counted(brokers: Json, rows: Iterable[list[Any]]) -> Json:
    counts = {id_: {"leads": 0, "in_sync": 0, "behind": 0, "offline": 0} for id_ in brokers}
    for leader, _, replicas, isr, _, _, _, _, offline in rows:
        for node in replicas:
            count = counts.get(str(node))
            if count is None:
                continue
            if node in offline:
                count["offline"] += 1
            elif node == leader:
                count["leads"] += 1
            else:
                count["in_sync" if node in isr else "behind"] += 1
    return counts
