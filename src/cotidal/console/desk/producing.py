"""Writing one record by hand."""

from __future__ import annotations

from typing import Final

from cotidal.client.producer import Producer
from cotidal.client.rounds import ACKS_ALL
from cotidal.console.desk.arguments import INT32_MAX, topic_of
from cotidal.console.desk.plan import done
from cotidal.console.desk.question import Desk
from cotidal.console.world import Command, Json, Refused
from cotidal.limits import PAGE_COMMAND_BYTES_MAX

PATIENCE_S: Final = 5.0
"""For an election, or for replicas to come back: a person waits in front of the form."""
ACKS: Final = {"all": ACKS_ALL, "1": 1, "0": 0}


def produce(desk: Desk, asked: Command) -> Json:
    """``topic``, ``key``, ``value`` (absent: null), ``headers``, ``partition``, ``acks``."""
    topic = topic_of(asked)
    acks = asked.one_of("acks", tuple(ACKS), "all")
    partition = None
    if "partition" in asked:
        partition = asked.number("partition", least=0, most=INT32_MAX)
    writer = Producer(
        desk.cluster, topic, acks=ACKS[acks], partition=partition, timeout_s=PATIENCE_S
    )
    writer.add(_bytes(asked, "value"), key=_bytes(asked, "key"), headers=_headers(asked))
    (written,) = writer.flush()
    at = f"{topic}-{written.partition}"
    if acks == "0":
        return done(f"Sent to {at}; with acks=0 nobody says whether it was written.")
    return done(
        f"Written to {at} at offset {written.base_offset:,}"
        f" ({'all in-sync replicas have it' if acks == 'all' else 'its leader has it'}).",
        partition=written.partition,
        offset=written.base_offset,
    )


def _bytes(asked: Command, name: str) -> bytes | None:
    if name not in asked:
        return None
    return asked.text(name, longest=PAGE_COMMAND_BYTES_MAX).encode("utf-8", "surrogatepass")


def _headers(asked: Command) -> list[tuple[str, bytes | None]]:
    found: list[tuple[str, bytes | None]] = []
    for each in asked.list_of("headers"):
        match each:
            case [str() as name, str() as value]:
                found.append((name, value.encode("utf-8", "surrogatepass")))
            case [str() as name, None]:
                found.append((name, None))
            case _:
                raise Refused("'headers' is a list of pairs of a name and a value")
    return found
