"""The kinds of record in __cotidal_events, from the classes that they are made of."""

from __future__ import annotations

from typing import get_type_hints

from cotidal.node import happenings
from events_schema import sentence
from reference_table import code, table


def events(arguments: tuple[str, ...]) -> str:
    return table(
        ("Kind", "What happened", "Fields of its own"),
        (
            (code(kind), sentence(each), ", ".join(code(name) for name in get_type_hints(each)))
            for each, kind in happenings.KINDS.items()
        ),
    )


def health(arguments: tuple[str, ...]) -> str:
    return table(
        ("Part", "Fields"),
        (
            (code(name), ", ".join(code(field) for field in get_type_hints(each)))
            for name, each in (
                ("partitions[]", happenings.PartitionHealth),
                ("partitions[].followers[]", happenings.FollowerHealth),
            )
        ),
    )
