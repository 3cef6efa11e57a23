"""Settings: what a text means, and which of several values holds. Pure.

A topic's value is the first of: the topic's own, the broker's dynamic one, the cluster-wide dynamic
one, the one in server.properties, the default. The last four stand under a *synonym*: the broker's
name for the same thing, in a unit of its own (``retention.ms`` is ``log.retention.ms``, else
``log.retention.minutes``, else ``log.retention.hours``).

Values are kept as text, as Kafka's records and files keep them; ``parse`` gives them their type.
The names are in settings_table.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from cotidal.settings_table import (
    BROKER,
    GROUP,
    REFUSED,
    REFUSED_PREFIXES,
    TOPIC,
    Dynamic,
    Kind,
    OneOf,
    Range,
    ReplicaPairs,
    Setting,
    Source,
    Synonym,
)

__all__ = [
    "BROKER",
    "GROUP",
    "REFUSED",
    "TOPIC",
    "Dynamic",
    "Effective",
    "Kind",
    "OneOf",
    "Origin",
    "Range",
    "ReplicaPairs",
    "Setting",
    "Source",
    "Synonym",
    "Value",
    "Wrong",
    "effective",
    "effective_group",
    "judge",
    "nearest",
    "parse",
    "refusal_of_name",
    "topic_settings",
]

Value: TypeAlias = "bool | int | float | str | tuple[str, ...] | None"


class Wrong(NamedTuple):
    """Why a name or value is not accepted, in one sentence."""

    sentence: str
    unknown: bool = False
    """The name is unknown: a server.properties may start with a warning."""


class Origin(NamedTuple):
    """One place in which a value stands: an entry of DescribeConfigs' synonyms."""

    name: str
    text: str | None
    source: Source


class Effective(NamedTuple):
    """What holds, where it comes from, and everything it won against (itself first)."""

    value: Value
    source: Source
    synonyms: tuple[Origin, ...]
    text: str | None


_NOTHING: Final[Mapping[str, str]] = {}
_WIDTH: Final = {Kind.INT: 2**31 - 1, Kind.SHORT: 2**15 - 1, Kind.LONG: 2**63 - 1}


# Reading -------------------------------------------------------------------------------------


def parse(setting: Setting, text: str) -> Value | Wrong:
    """The typed value of a text, or why it is not one.

    >>> parse(TOPIC["retention.ms"], "1000")
    1000
    >>> parse(TOPIC["min.insync.replicas"], "0").sentence
    "min.insync.replicas is '0', but must be at least 1"
    """
    trimmed = text.strip()
    match setting.kind:
        case Kind.BOOLEAN:
            if trimmed.lower() not in ("true", "false"):
                return _wrong(setting, text, "must be true or false")
            return trimmed.lower() == "true"
        case Kind.INT | Kind.SHORT | Kind.LONG:
            return _parse_whole(setting, text)
        case Kind.DOUBLE:
            try:
                number = float(trimmed)
            except ValueError:
                return _wrong(setting, text, "must be a number")
            if number != number:
                return _wrong(setting, text, "must be a number")
            return _in_range(setting, text, number)
        case Kind.LIST:
            elements = tuple(part.strip() for part in trimmed.split(",")) if trimmed else ()
            return _checked_list(setting, text, elements)
        case Kind.STRING | Kind.CLASS | Kind.PASSWORD:
            if isinstance(setting.rule, OneOf) and trimmed not in setting.rule.choices:
                return _wrong(setting, text, f"must be one of {', '.join(setting.rule.choices)}")
            return trimmed


def judge(table: Mapping[str, Setting], name: str, text: str) -> Value | Wrong:
    """``parse`` by name; says what is wrong with the name too."""
    setting = table.get(name)
    if setting is None:
        return Wrong(refusal_of_name(table, name), unknown=_refused(name) is None)
    return parse(setting, text)


def refusal_of_name(table: Mapping[str, Setting], name: str) -> str:
    """Why a name that is not in the table is not accepted, with the nearest one that is."""
    refused = _refused(name)
    if refused is not None:
        return refused
    near = nearest(name, table)
    hint = f"; did you mean {near}?" if near else ""
    return f"{name} is not a setting that is known here{hint}"


def _refused(name: str) -> str | None:
    if name in REFUSED:
        return REFUSED[name]
    for prefix, reason in REFUSED_PREFIXES:
        if name.startswith(prefix):
            return f"{name} is not accepted: {reason}"
    return None


def nearest(name: str, table: Mapping[str, Setting] | None = None) -> str | None:
    """The known name most like this one, if any is like it."""
    from difflib import get_close_matches  # 3 ms that only a mistake has to pay

    known = table if table is not None else {**BROKER, **TOPIC, **GROUP}
    found = get_close_matches(name, known, n=1, cutoff=0.6)
    return found[0] if found else None


def _parse_whole(setting: Setting, text: str) -> Value | Wrong:
    trimmed = text.strip()
    digits = trimmed[1:] if trimmed[:1] in ("-", "+") else trimmed
    # isascii: int() also takes Arabic digits; 20 digits: it would take minutes for a megabyte.
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):
        return _wrong(setting, text, "must be a whole number")
    number = int(trimmed)
    most = _WIDTH[setting.kind]
    if not -most - 1 <= number <= most:
        return _wrong(setting, text, f"must fit into {most.bit_length() + 1} bits")
    return _in_range(setting, text, number)


def _in_range(setting: Setting, text: str, number: int | float) -> Value | Wrong:
    if isinstance(setting.rule, Range):
        low, high = setting.rule
        if low is not None and number < low:
            return _wrong(setting, text, f"must be at least {low}")
        if high is not None and number > high:
            return _wrong(setting, text, f"must be at most {high}")
    return number


def _checked_list(setting: Setting, text: str, elements: tuple[str, ...]) -> Value | Wrong:
    if any(not element for element in elements):
        return _wrong(setting, text, "must not have empty elements")
    if isinstance(setting.rule, OneOf):
        for element in elements:
            if element not in setting.rule.choices:
                choices = ", ".join(setting.rule.choices)
                return _wrong(setting, text, f"may hold only {choices}")
        if len(set(elements)) != len(elements):
            return _wrong(setting, text, "must not name anything twice")
    if isinstance(setting.rule, ReplicaPairs) and elements != ("*",):
        for element in elements:
            partition, _, broker = element.partition(":")
            if not (f"{partition}{broker}".isascii() and partition.isdigit() and broker.isdigit()):
                return _wrong(setting, text, "must be partition:broker pairs like 0:1,1:2, or *")
    return elements


def _wrong(setting: Setting, text: str, demand: str) -> Wrong:
    shown = "[hidden]" if setting.sensitive else f"'{text[:100]}'"
    return Wrong(f"{setting.name} is {shown}, but {demand}")


# What holds ----------------------------------------------------------------------------------


def effective(
    name: str,
    *,
    topic: Mapping[str, str] | None = None,
    broker: Mapping[str, str] = _NOTHING,
    cluster: Mapping[str, str] = _NOTHING,
    static: Mapping[str, str] = _NOTHING,
) -> Effective:
    """What holds for a topic's setting (``topic`` given: its own values) or a broker's."""
    if topic is not None:
        return _first_of(TOPIC[name], Source.TOPIC, topic, broker, cluster, static)
    return _first_of(BROKER[name], None, _NOTHING, broker, cluster, static)


def effective_group(
    name: str,
    *,
    group: Mapping[str, str],
    broker: Mapping[str, str] = _NOTHING,
    cluster: Mapping[str, str] = _NOTHING,
    static: Mapping[str, str] = _NOTHING,
) -> Effective:
    return _first_of(GROUP[name], Source.GROUP, group, broker, cluster, static)


def topic_settings(
    topic: Mapping[str, str],
    *,
    broker: Mapping[str, str] = _NOTHING,
    cluster: Mapping[str, str] = _NOTHING,
    static: Mapping[str, str] = _NOTHING,
) -> dict[str, str]:
    """Everything that holds for a topic, as text by topic names: what a log is opened with.

    The text is that of the value, not the one that somebody wrote (" +5" is "5"), so that whoever
    reads it need not know what may stand around a number. ``segment.bytes`` already is
    ``internal.segment.bytes`` where that is set.
    """
    return dict(
        _topic_settings(
            tuple(topic.items()),
            tuple(broker.items()),
            tuple(cluster.items()),
            tuple(static.items()),
        )
    )


Items: TypeAlias = tuple[tuple[str, str], ...]


@lru_cache(maxsize=128)
def _topic_settings(topic: Items, broker: Items, cluster: Items, static: Items) -> dict[str, str]:
    """Remembered: a node asks again for every partition, and most topics have no settings of
    their own."""
    values = (dict(topic), dict(broker), dict(cluster), dict(static))
    held: dict[str, str] = {}
    for setting in TOPIC.values():
        value = _first_of(setting, Source.TOPIC, *values).value
        if value is not None:
            held[setting.name] = _text_of(value)
    if "internal.segment.bytes" in held:
        held["segment.bytes"] = held.pop("internal.segment.bytes")
    return held


def _text_of(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _first_of(
    setting: Setting,
    own: Source | None,
    own_values: Mapping[str, str],
    broker: Mapping[str, str],
    cluster: Mapping[str, str],
    static: Mapping[str, str],
) -> Effective:
    origins: list[Origin] = []
    winner: tuple[Value, str, Source] | None = None
    if own is not None and setting.name in own_values:
        text = own_values[setting.name]
        value = parse(setting, text)
        if not isinstance(value, Wrong):
            winner = (value, text, own)
            origins.append(Origin(setting.name, text, own))
    names = setting.synonyms or ((Synonym(setting.name),) if own is None else ())
    for synonym in names:
        row = BROKER[synonym.name]
        places = (
            (Source.BROKER, broker.get(row.name)),
            (Source.CLUSTER, cluster.get(row.name)),
            (Source.STATIC, static.get(row.name)),
            (Source.DEFAULT, row.default),
        )
        for source, found in places:
            if found is None:
                continue
            scaled = _scaled(setting, row, synonym, found)
            if scaled is None:
                continue
            origins.append(Origin(row.name, found, source))
            if winner is None:
                winner = (*scaled, source)
    if not names and setting.default is not None:
        origins.append(Origin(setting.name, setting.default, Source.DEFAULT))
        if winner is None:
            default = parse(setting, setting.default)
            assert not isinstance(default, Wrong)
            winner = (default, setting.default, Source.DEFAULT)
    if winner is None:
        return Effective(None, Source.DEFAULT, tuple(origins), None)
    return Effective(winner[0], winner[2], tuple(origins), winner[1])


def _scaled(
    setting: Setting, row: Setting, synonym: Synonym, text: str
) -> tuple[Value, str] | None:
    """The value in the setting's own unit; None for a text that does not parse (never stored)."""
    value = parse(row, text)
    if isinstance(value, Wrong):
        return None
    if synonym.scale != 1:
        assert isinstance(value, int), setting.name
        value = value * synonym.scale if value >= 0 else -1
        text = str(value)
    return value, text
