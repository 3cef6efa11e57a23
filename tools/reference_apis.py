"""What is served of Kafka's protocol: from the registry, and from the head of each API's module.

``families`` tells the APIs of one page in full; ``compatibility`` holds everything that Kafka 4.3
speaks against what is served here. NOT_SERVED must name exactly the APIs that are not.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Final

from cotidal.api.registry import APIS, OURS, Api, handler
from cotidal.messages.rpc.apis import APIS as KNOWN
from cotidal.messages.rpc.apis import Api as KafkaApi
from reference_table import code, table

KAFKA: Final = {key: api for key, api in KNOWN.items() if key not in OURS}

NOT_SERVED: Final[Mapping[str, str]] = {
    "no share groups": "ShareGroupHeartbeat ShareGroupDescribe ShareFetch ShareAcknowledge "
    "InitializeShareGroupState ReadShareGroupState WriteShareGroupState DeleteShareGroupState "
    "ReadShareGroupStateSummary DescribeShareGroupOffsets AlterShareGroupOffsets "
    "DeleteShareGroupOffsets",
    "no streams groups": "StreamsGroupHeartbeat StreamsGroupDescribe",
    "between controllers only": "Vote BeginQuorumEpoch EndQuorumEpoch FetchSnapshot "
    "UpdateRaftVoter",
    "spoken between nodes, on the controller's listener": "AlterPartition BrokerRegistration "
    "BrokerHeartbeat AllocateProducerIds ControllerRegistration AssignReplicasToDirs",
    "requests are passed on without it": "Envelope",
    "no telemetry from clients": "GetTelemetrySubscriptions PushTelemetry",
}
"""Why an API of Kafka's is not served."""

ANSWERED_BY: Final = {
    "connection": "the connection",
    "broker": "any broker, from committed metadata",
    "controller": "the controller, once committed",
    "quorum": "the leader of the quorum",
    "partition": "the partition's leader",
    "coordinator": "the coordinator, once committed",
}

OMISSION: Final = re.compile(
    r"\s*Not (?:there|served)(?: yet)?: (?P<text>.*?)(?:\.(?=\s|$)|$)", re.S
)


def families(arguments: tuple[str, ...]) -> str:
    """The named APIs: a table, then each one's own words."""
    by_name = {api.name: api for api in APIS.values()}
    unknown = [name for name in arguments if name not in by_name]
    if unknown:
        raise ValueError(f"not served: {', '.join(unknown)}")
    apis = [by_name[name] for name in arguments]
    head = ("API", "Key", "Versions", "Answered by", "On a controller's listener too")
    rows = (
        (
            f"[{api.name}](#{api.name.lower()})",
            str(int(api.key)),
            versions(api.oldest, api.newest),
            ANSWERED_BY[api.owner.value],
            "yes" if api.controller_listener else "",
        )
        for api in apis
    )
    return "\n\n".join([table(head, rows), *(_told(api) for api in apis)])


def _told(api: Api) -> str:
    served, omitted = words_of(inspect.getdoc(handler(int(api.key))) or "")
    file = code(f"src/cotidal/api/{KAFKA[int(api.key)].module}.py")
    parts = [f"### {api.name}"]
    if served:
        parts.append(served)
    if omitted:
        parts.append(f"**Not served:** {omitted}.")
    parts.append(f"Written in {file}.")
    return "\n\n".join(parts)


def words_of(doc: str) -> tuple[str, str]:
    """What a module says is served, and what it says is not; its title is left out.

    >>> words_of("Fetch (key 1), versions 4-18. KIP-227 sessions.\\n\\nNot there: snapshots.")
    ('KIP-227 sessions.', 'snapshots')
    """
    text = re.sub(r"^\w+ \(key \d+\), versions? \d+(-\d+)?[.,:]?\s*", "", doc)
    text = text.replace("``", "`")
    omitted = ""
    found = OMISSION.search(text)
    if found:
        omitted = " ".join(found["text"].split())
        text = text[: found.start()] + text[found.end() :]
    paragraphs = (" ".join(part.split()) for part in text.split("\n\n"))
    told = "\n\n".join(part[0].upper() + part[1:] for part in paragraphs if part)
    return told, "" if omitted == "nothing of the protocol" else omitted


def compatibility(arguments: tuple[str, ...]) -> str:
    reasons = {name: reason for reason, names in NOT_SERVED.items() for name in names.split()}
    served = {KAFKA[key].name for key in APIS}
    every = {api.name for api in KAFKA.values()}
    if reasons.keys() != every - served:
        wrong = sorted(reasons.keys() ^ (every - served))
        raise ValueError(f"NOT_SERVED and the registry disagree about {', '.join(wrong)}")
    head = ("Key", "API", "Kafka 4.3", "Here", "")
    rows = (
        (str(key), api.name, _kafka_versions(api), *_here(key, api, reasons))
        for key, api in sorted(KAFKA.items())
    )
    count = f"{len(served)} of {len(every)} APIs are served."
    return f"{count}\n\n{table(head, rows)}"


def _here(key: int, api: KafkaApi, reasons: Mapping[str, str]) -> tuple[str, str]:
    if key not in APIS:
        return "-", reasons[api.name]
    ours = APIS[key]
    note = ""
    if ours.advertised_from is not None:
        note = f"advertised from {ours.advertised_from}, as Kafka does"
    return versions(ours.oldest, ours.newest), note


def _kafka_versions(api: KafkaApi) -> str:
    if api.last_stable_version < api.first_version:
        return f"{versions(api.first_version, api.last_version)} (unfinished)"
    return versions(api.first_version, api.last_stable_version)


def versions(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"
