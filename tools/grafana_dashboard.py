"""Writes docs/grafana/cotidal.json, a dashboard over the metrics of broker/metric_table.py.

python tools/grafana_dashboard.py            write it
python tools/grafana_dashboard.py --check    fail if it is not what would be written

Grafana's own editor writes a thousand lines for what is a page here: rows of panels, each a title,
a unit and its queries. ``$node`` chooses nodes by the label ``instance`` of Prometheus.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

FILE: Final = Path(__file__).resolve().parent.parent / "docs" / "grafana" / "cotidal.json"
SOURCE: Final = {"type": "prometheus", "uid": "${source}"}
ACROSS: Final = 24
"""Columns of a Grafana page."""


class Query(NamedTuple):
    expr: str
    legend: str = "{{instance}}"


class Panel(NamedTuple):
    title: str
    unit: str
    queries: tuple[Query, ...]
    kind: str = "timeseries"
    width: int = 8
    bad_from: float | None = None
    """From here on a number is red."""


def _one(title: str, expr: str, unit: str = "short", **more: Any) -> Panel:
    return Panel(title, unit, (Query(expr),), **more)


def _number(title: str, expr: str, *, bad_from: float | None = None) -> Panel:
    return Panel(title, "short", (Query(expr, ""),), "stat", 4, bad_from)


def _quantiles(metric: str, by: str, legend: str, where: str = "") -> tuple[Query, ...]:
    buckets = f'sum by ({by}) (rate({metric}_bucket{{instance=~"$node"{where}}}[$__rate_interval]))'
    return (Query(f"histogram_quantile(0.99, {buckets})", legend),)


def _rate(metric: str, *, by: str = "instance") -> str:
    return f'sum by ({by}) (rate({metric}{{instance=~"$node"}}[$__rate_interval]))'


ROWS: Final[tuple[tuple[str, tuple[Panel, ...]], ...]] = (
    (
        "Is it well?",
        (
            _number("Offline partitions", "sum(cotidal_offline_partitions)", bad_from=1),
            _number("Under min ISR", "sum(cotidal_under_min_isr_partitions)", bad_from=1),
            _number("Under-replicated", "sum(cotidal_under_replicated_partitions)", bad_from=1),
            _number("Active controllers", "sum(cotidal_active_controller)", bad_from=2),
            _number("Fenced brokers", "sum(cotidal_brokers_fenced)", bad_from=1),
            _number("Offline logs", "sum(cotidal_offline_logs)", bad_from=1),
        ),
    ),
    (
        "Replication",
        (
            _one("Records behind, worst follower", "cotidal_replica_lag_records_max", width=12),
            _one("Time behind, worst follower", "cotidal_replica_lag_seconds_max", "s", width=12),
            Panel(
                "ISR changes",
                "cps",
                (
                    Query(_rate("cotidal_isr_shrinks_total"), "shrinks {{instance}}"),
                    Query(_rate("cotidal_isr_expands_total"), "expands {{instance}}"),
                ),
            ),
            Panel(
                "Elections",
                "cps",
                (
                    Query("sum(rate(cotidal_leader_elections_total[$__rate_interval]))", "all"),
                    Query(
                        "sum(rate(cotidal_unclean_leader_elections_total[$__rate_interval]))",
                        "unclean",
                    ),
                ),
            ),
            Panel(
                "Cut and moved back",
                "cps",
                (
                    Query(_rate("cotidal_truncated_records_total"), "records cut {{instance}}"),
                    Query(_rate("cotidal_high_watermark_regressions_total"), "HW {{instance}}"),
                ),
            ),
            Panel(
                "Ten partitions furthest behind",
                "short",
                (
                    Query(
                        "topk(10, cotidal_replica_lag_records > 0)",
                        "{{topic}}-{{partition}} replica {{replica}}",
                    ),
                ),
                width=12,
            ),
            _one("Partitions led", "cotidal_leader_partitions", width=12),
        ),
    ),
    (
        "Traffic",
        (
            _one("Produced", _rate("cotidal_produced_bytes_total"), "Bps"),
            Panel(
                "Consumed",
                "Bps",
                (
                    Query(
                        _rate("cotidal_fetched_bytes_total", by="instance, role"),
                        "{{instance}} as {{role}}",
                    ),
                ),
            ),
            Panel(
                "Replicated",
                "Bps",
                (
                    Query(_rate("cotidal_replicated_in_bytes_total"), "in {{instance}}"),
                    Query(_rate("cotidal_replicated_out_bytes_total"), "out {{instance}}"),
                ),
            ),
            Panel(
                "Requests",
                "reqps",
                (Query(_rate("cotidal_requests_total", by="api"), "{{api}}"),),
            ),
            Panel(
                "Time of requests, p99 (Fetch waits for records)",
                "s",
                _quantiles("cotidal_request_seconds", "le, api", "{{api}}"),
            ),
            _one("Connections", 'cotidal_connections{instance=~"$node"}'),
        ),
    ),
    (
        "The node",
        (
            Panel(
                "Loop lag, p99",
                "s",
                _quantiles("cotidal_loop_lag_seconds", "le, instance", "{{instance}}"),
            ),
            Panel(
                "Bounds, fullest",
                "percentunit",
                (
                    Query(
                        'topk(8, cotidal_bound_fill_ratio{instance=~"$node"})',
                        "{{bound}} {{instance}}",
                    ),
                ),
            ),
            Panel(
                "Parked",
                "short",
                (Query('cotidal_parked{instance=~"$node"}', "{{kind}} {{instance}}"),),
            ),
            _one("Size of logs", 'cotidal_log_bytes{instance=~"$node"}', "bytes"),
            _one("Waiting for the disk", 'cotidal_disk_jobs{instance=~"$node"}'),
            Panel(
                "Events written and dropped",
                "cps",
                (
                    Query(_rate("cotidal_events_written_total"), "written {{instance}}"),
                    Query(_rate("cotidal_events_dropped_total"), "dropped {{instance}}"),
                ),
            ),
        ),
    ),
    (
        "The quorum",
        (
            _one("Epoch", 'cotidal_quorum_epoch{instance=~"$node"}'),
            _one("Leader", 'cotidal_quorum_leader{instance=~"$node"}'),
            Panel(
                "Behind the leader",
                "short",
                (Query("cotidal_quorum_replica_lag_records", "node {{replica}}"),),
            ),
        ),
    ),
)


def dashboard() -> dict[str, Any]:
    panels: list[dict[str, Any]] = []
    top = 0
    for title, row in ROWS:
        panels.append(_row(len(panels) + 1, title, top))
        top += 1
        left = 0
        height = 4 if row[0].kind == "stat" else 8
        for panel in row:
            if left + panel.width > ACROSS:
                left, top = 0, top + height
            place = {"h": height, "w": panel.width, "x": left, "y": top}
            panels.append(_panel(len(panels) + 1, panel, place))
            left += panel.width
        top += height
    return {
        "title": "cotidal",
        "uid": "cotidal",
        "description": "A cotidal cluster: replication, traffic, nodes and their quorum.",
        "tags": ["cotidal", "kafka"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "15s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_source_variable(), _node_variable()]},
        "panels": panels,
    }


def _row(number: int, title: str, top: int) -> dict[str, Any]:
    place = {"h": 1, "w": ACROSS, "x": 0, "y": top}
    return {"id": number, "type": "row", "title": title, "gridPos": place, "panels": []}


def _panel(number: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if panel.bad_from is not None:
        steps.append({"color": "red", "value": panel.bad_from})
    thresholds = {"mode": "absolute", "steps": steps}
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "gridPos": place,
        "datasource": SOURCE,
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "min": 0, "thresholds": thresholds},
            "overrides": [],
        },
        "options": {},
        "targets": [
            {
                "refId": chr(ord("A") + place_of),
                "datasource": SOURCE,
                "expr": query.expr,
                "legendFormat": query.legend,
            }
            for place_of, query in enumerate(panel.queries)
        ],
    }


def _source_variable() -> dict[str, Any]:
    return {"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"}


def _node_variable() -> dict[str, Any]:
    return {
        "name": "node",
        "type": "query",
        "label": "Node",
        "datasource": SOURCE,
        "query": "label_values(cotidal_info, instance)",
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def main(arguments: list[str]) -> int:
    text = json.dumps(dashboard(), indent=1) + "\n"
    if "--check" in arguments:
        if FILE.read_text(encoding="utf-8") != text:
            print(f"{FILE.name} is out of date; run python tools/grafana_dashboard.py")
            return 1
        return 0
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
