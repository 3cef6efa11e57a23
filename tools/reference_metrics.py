"""Every metric that a node exposes, from the collector itself."""

from __future__ import annotations

from cotidal.broker.counters import Counters
from cotidal.broker.metrics import Gauges, NodeCollector
from reference_table import code, table


def metrics(arguments: tuple[str, ...]) -> str:
    counters = Counters()
    counters.requests[0] = 1  # so that the family has a sample, which shows its labels
    gauges = Gauges(*[0] * len(Gauges._fields))
    collector = NodeCollector(counters, lambda: gauges, str)
    rows = []
    for family in collector.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = sorted({label for sample in family.samples for label in sample.labels} - {"le"})
        rows.append((code(name), family.type, ", ".join(map(code, labels)), family.documentation))
    return table(("Name", "Type", "Labels", "What it counts"), rows)
