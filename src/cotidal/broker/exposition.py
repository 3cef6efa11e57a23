"""Metrics -> Prometheus's text format (0.0.4). Pure.

Written here and not by the prometheus_client package, which takes some eight times as long for a
line: a scrape runs on the event loop, and a node with a thousand partitions has eight thousand. The
tests read what is written here with that package's parser.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from cotidal.broker.counters import LATENCY_BOUNDS_S, Histogram
from cotidal.broker.metric_table import Kind, Metric

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[object, ...]
"""Values, in the order of the metric's labels."""

Samples = Sequence[tuple[Labels, float | Histogram]]

_BOUNDS: Final = (*(f"{bound:g}" for bound in LATENCY_BOUNDS_S), "+Inf")


def render(metrics: Iterable[Metric], values: Mapping[str, Samples]) -> bytes:
    """``values``: by the metric's stem; KeyError for one that has none."""
    lines: list[str] = []
    for metric in metrics:
        name = metric.name
        lines.append(f"# HELP {name} {metric.text}")
        lines.append(f"# TYPE {name} {metric.kind.value}")
        named = ",".join(f'{label}="%s"' for label in metric.labels)
        for labels, value in values[metric.stem]:
            told = named % labels
            if told.count('"') != 2 * len(labels) or "\\" in told or "\n" in told:
                told = named % tuple(_escaped(str(label)) for label in labels)
            if isinstance(value, Histogram):
                assert metric.kind is Kind.HISTOGRAM
                lines += _histogram(name, told, value)
            elif told:
                lines.append(f"{name}{{{told}}} {_number(value)}")
            else:
                lines.append(f"{name} {_number(value)}")
    lines.append("")
    return "\n".join(lines).encode()


def _histogram(name: str, labels: str, histogram: Histogram) -> list[str]:
    lines = []
    running = 0
    before = f"{labels}," if labels else ""
    for bound, count in zip(_BOUNDS, histogram.buckets, strict=True):
        running += count
        lines.append(f'{name}_bucket{{{before}le="{bound}"}} {running}')
    braced = f"{{{labels}}}" if labels else ""
    lines.append(f"{name}_sum{braced} {_number(histogram.total)}")
    lines.append(f"{name}_count{braced} {running}")
    return lines


def _number(value: float) -> str:
    if isinstance(value, int):
        return str(int(value))
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(value)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
