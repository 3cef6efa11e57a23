"""The tables of settings_table.py, and which of their rows change nothing yet.

They name what is understood; some of it belongs to parts that are still to come. PENDING
says which and why, so that nobody tunes a knob without a wire. ``contradictions`` holds it against
the code: a setting that no code names must be pending, one that code names must not be.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from cotidal import settings
from cotidal.settings import Dynamic, OneOf, Range, ReplicaPairs, Setting
from reference_table import code, table

_NOT_YET: Final = "not read yet: a fixed value holds"
_NEWEST_TWO: Final = "the newest two snapshots are kept, and the log from the older one on"
_NO_LEVELS: Final = "each compression has one level here"
_FIXED: Final = "the bound is fixed; see limits"

PENDING: Final[Mapping[str, str]] = {
    "inter.broker.listener.name": _NOT_YET,
    "security.inter.broker.protocol": _NOT_YET,
    "controller.quorum.append.*": _FIXED,
    "controller.quorum.election.*": _FIXED,
    "controller.quorum.fetch.*": _FIXED,
    "controller.quorum.request.*": _FIXED,
    "controller.quorum.retry.*": _FIXED,
    "controller.socket.timeout.ms": _NOT_YET,
    "initial.broker.registration.timeout.ms": _NOT_YET,
    "request.timeout.ms": _NOT_YET,
    "replica.fetch.backoff.ms": "pauses begin short and grow to a second",
    "replica.socket.*": _NOT_YET,
    "controlled.shutdown.enable": _NOT_YET,
    "max.connection.creation.rate": "connections are bounded in number, not in their rate",
    "offsets.topic.compression.codec": "records of groups are small, and written as they are",
    "group.coordinator.append.*": "records are written with the step that decides them",
    "transaction.state.log.load.buffer.size": "offsets.load.buffer.size holds for both kinds",
    "transaction.remove.*": "looked at together with transactions that take too long",
    "transaction.two.phase.*": "a transaction cannot be prepared by its client",
    "compression.*.level": _NO_LEVELS,
    "metadata.max.retention.*": _NEWEST_TWO,
    "metadata.max.idle.interval.ms": "no no-op records are written",
    "server.max.startup.time.ms": "a start takes as long as it takes",
    "socket.listen.backlog.size": _FIXED,
    "max.incremental.fetch.session.cache.slots": _FIXED,
    "log.flush.start.offset.checkpoint.interval.ms": "log starts are written with recovery points",
    "log.initial.task.delay.ms": "the first check comes after log.retention.check.interval.ms",
    "log.dir.failure.timeout.ms": "a failed directory is named in every heartbeat",
    "producer.id.expiration.check.interval.ms": "it is looked at together with retention",
    "*preallocate": "segments grow as they are written",
}
"""Names (as patterns) that are checked and kept but change nothing yet, and why."""

NAMED_WITHOUT_EFFECT: Final = (
    "broker/local.py",  # gives a cluster of several brokers its settings
    "core/cluster/decide/topics.py",  # gives the coordinators' topics their settings
    "core/cluster/decide/configs.py",  # checks values against each other
)
"""Modules that may name a pending setting."""

READ_IN_SETTINGS: Final = ("internal.segment.bytes",)
"""Honoured by settings.py itself."""


def settings_of(arguments: tuple[str, ...]) -> str:
    (which,) = arguments
    match which:
        case "topic":
            return _topic_table()
        case "broker":
            rows = _in_effect(settings.BROKER)
            return table(
                ("Name", "Type", "Default", "Allowed", "Can be changed", "Meaning"),
                (
                    (code(row.name), kind(row), default(row), allowed(row), dynamic(row), row.doc)
                    for row in rows
                ),
            )
        case "pending":
            return table(
                ("Name", "Of", "Default", "Meaning", "No effect yet, because"), _pending_rows()
            )
        case "ignored":
            rows = (row for row in settings.BROKER.values() if row.ignored)
            return table(
                ("Name", "Accepted, but"), ((code(row.name), row.ignored or "") for row in rows)
            )
        case "refused":
            return table(
                ("Name", "What is answered"),
                ((code(name), sentence) for name, sentence in settings.REFUSED.items()),
            )
        case _:
            raise ValueError(f"there is no table of settings '{which}'")


def _topic_table() -> str:
    return table(
        ("Name", "Type", "Default", "Allowed", "Default for all topics", "Meaning"),
        (
            (
                code(row.name),
                kind(row),
                default(row),
                allowed(row),
                ", ".join(code(synonym.name) for synonym in row.synonyms),
                row.doc,
            )
            for row in _in_effect(settings.TOPIC)
        ),
    )


def _in_effect(rows: Mapping[str, Setting]) -> Iterator[Setting]:
    for name in sorted(rows):
        if not rows[name].ignored and pending(name) is None:
            yield rows[name]


def _pending_rows() -> Iterator[tuple[str, ...]]:
    tables = (
        ("topic", settings.TOPIC),
        ("broker", settings.BROKER),
        ("group", settings.GROUP),
    )
    for scope, rows in tables:
        for name in sorted(rows):
            reason = pending(name)
            if reason is not None and not rows[name].ignored:
                yield code(name), scope, default(rows[name]), rows[name].doc, reason


def pending(name: str) -> str | None:
    """Why a setting changes nothing yet; None if it does."""
    for pattern, reason in PENDING.items():
        if fnmatchcase(name, pattern):
            return reason
    return None


def kind(row: Setting) -> str:
    return row.kind.name.lower()


def default(row: Setting) -> str:
    if row.default is None:
        return "none"
    if row.default == str(2**63 - 1):
        return "no bound"
    return code(row.default) if row.default else "empty"


def allowed(row: Setting) -> str:
    match row.rule:
        case OneOf(choices):
            return ", ".join(map(code, choices))
        case ReplicaPairs():
            return f"{code('partition:broker')}, ..., or {code('*')}"
        case Range(None, None):
            return ""
        case Range(low, None):
            return f"from {low}"
        case Range(None, high):
            return f"to {high}"
        case Range(low, high):
            return f"{low} to {high}"


def dynamic(row: Setting) -> str:
    match row.dynamic:
        case Dynamic.READ_ONLY:
            return "at start"
        case Dynamic.PER_BROKER:
            return "while running, for one broker or all"
        case Dynamic.CLUSTER_WIDE:
            return "while running, for all brokers"


# Held against the code -----------------------------------------------------------------------


def contradictions(source: Path) -> list[str]:
    """Where PENDING and the code below ``source`` (src/cotidal) disagree, a sentence each."""
    every = {**settings.GROUP, **settings.BROKER, **settings.TOPIC}
    named = _names_in_code(source, every)
    synonyms: dict[str, list[str]] = {}
    for row in (*settings.TOPIC.values(), *settings.GROUP.values()):
        for synonym in row.synonyms:
            synonyms.setdefault(synonym.name, []).append(row.name)
    found = [
        f"no setting is like {pattern}"
        for pattern in PENDING
        if not any(fnmatchcase(name, pattern) for name in every)
    ]
    for name, row in every.items():
        readers = [each for each in named.get(name, ()) if each not in NAMED_WITHOUT_EFFECT]
        through = [topic for topic in synonyms.get(name, ()) if named.get(topic)]
        if pending(name) is not None and readers:
            found.append(f"{name} is said to have no effect, but {readers[0]} names it")
        elif pending(name) is None and not (
            readers or through or named.get(name) or row.ignored or name in READ_IN_SETTINGS
        ):
            found.append(f"{name} is said to have an effect, but no code names it")
    return found


def _names_in_code(source: Path, names: Iterable[str]) -> dict[str, list[str]]:
    """Where each name stands as a string of its own."""
    wanted = frozenset(names)
    found: dict[str, list[str]] = {}
    for path in sorted(source.rglob("*.py")):
        room = path.relative_to(source).parts[0]
        if room in ("cli", "client") or room.startswith("settings") or "codec" in path.parts:
            continue
        for each in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(each, ast.Constant) and each.value in wanted:
                found.setdefault(str(each.value), []).append(str(path.relative_to(source)))
    return found
