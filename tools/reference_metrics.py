"""Every metric that a node exposes, section by section, and what Kafka calls the like."""

from __future__ import annotations

from cotidal.broker.metric_table import METRICS, SECTIONS
from reference_table import code, table


def metrics(arguments: tuple[str, ...]) -> str:
    parts: list[str] = []
    for section, held in SECTIONS.items():
        rows = [
            (code(each.name), each.kind.value, ", ".join(map(code, each.labels)), each.text)
            for each in held
        ]
        parts.append(f"### {section}\n\n{table(('Name', 'Type', 'Labels', 'What it is'), rows)}")
    return "\n\n".join(parts)


def of_kafka(arguments: tuple[str, ...]) -> str:
    rows = sorted((each.kafka, each.name) for each in METRICS.values() if each.kafka)
    return table(("In Kafka", "Here"), [(code(theirs), code(ours)) for theirs, ours in rows])
