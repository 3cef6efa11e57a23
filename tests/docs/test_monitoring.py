"""The dashboard and the alerts ask for metrics that there are, and have the form that Grafana and
Prometheus take; the events' schema is that of their classes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import events_schema
import grafana_dashboard
from cotidal.broker.metric_table import METRICS, Kind

yaml = pytest.importorskip("yaml")

DOCS = Path(__file__).resolve().parents[2] / "docs"
LABELS_OF_PROMETHEUS = {"instance", "job", "le"}


def exposed() -> dict[str, set[str]]:
    """Every name that may be asked for, with its labels."""
    found: dict[str, set[str]] = {}
    for metric in METRICS.values():
        suffixes = ("_bucket", "_sum", "_count") if metric.kind is Kind.HISTOGRAM else ("",)
        for suffix in suffixes:
            found[metric.name + suffix] = set(metric.labels)
    return found


def unknown_names(expr: str) -> set[str]:
    return set(re.findall(r"\bcotidal_\w+", expr)) - exposed().keys()


def labels_named(expr: str) -> set[str]:
    selectors = "".join(re.findall(r"\{([^}]*)\}", expr))
    grouped = ",".join(re.findall(r"\bby \(([^)]*)\)", expr))
    return set(re.findall(r"(\w+)\s*[=!]", selectors)) | set(re.findall(r"\w+", grouped))


def unknown_labels(expr: str) -> set[str]:
    allowed = set(LABELS_OF_PROMETHEUS)
    for name in re.findall(r"\bcotidal_\w+", expr):
        allowed |= exposed()[name]
    return labels_named(expr) - allowed


def is_balanced(expr: str) -> bool:
    return all(expr.count(a) == expr.count(b) for a, b in ("()", "[]", "{}"))


@pytest.fixture(scope="module")
def dashboard() -> dict[str, Any]:
    loaded = json.loads((DOCS / "grafana" / "cotidal.json").read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


@pytest.fixture(scope="module")
def rules() -> list[dict[str, Any]]:
    loaded = yaml.safe_load((DOCS / "alerts.yml").read_text(encoding="utf-8"))
    return [rule for group in loaded["groups"] for rule in group["rules"]]


def queries(dashboard: dict[str, Any]) -> Iterator[str]:
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"]


def test_the_schema_of_events_is_what_their_classes_say() -> None:
    assert events_schema.main(["--check"]) == 0


def test_the_dashboard_is_what_its_table_says() -> None:
    assert grafana_dashboard.main(["--check"]) == 0


def test_every_query_of_the_dashboard_names_metrics_and_labels_that_there_are(
    dashboard: dict[str, Any],
) -> None:
    asked = list(queries(dashboard))
    assert len(asked) > 20
    for expr in asked:
        assert "cotidal_" in expr
        assert not unknown_names(expr), expr
        assert not unknown_labels(expr), expr
        assert is_balanced(expr), expr


def test_the_dashboard_has_the_form_that_grafana_imports(dashboard: dict[str, Any]) -> None:
    assert {"title", "uid", "schemaVersion", "panels", "templating"} <= dashboard.keys()
    numbers = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(numbers)) == len(numbers)
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        assert panel["type"] in ("row", "stat", "timeseries")
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= grafana_dashboard.ACROSS
        cells = {
            (place["x"] + across, place["y"] + down)
            for across in range(place["w"])
            for down in range(place["h"])
        }
        assert not taken & cells, f"{panel['title']} lies over another panel"
        taken |= cells
        letters = [target["refId"] for target in panel.get("targets", ())]
        assert len(set(letters)) == len(letters)


def test_every_variable_that_a_query_uses_is_declared(dashboard: dict[str, Any]) -> None:
    declared = {variable["name"] for variable in dashboard["templating"]["list"]}
    used = {name for expr in queries(dashboard) for name in re.findall(r"\$(\w+)", expr)}
    assert used <= declared | {"__rate_interval"}


def test_every_alert_names_metrics_and_labels_that_there_are(rules: list[dict[str, Any]]) -> None:
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert not unknown_names(rule["expr"]), rule["alert"]
        assert not unknown_labels(rule["expr"]), rule["alert"]
        assert is_balanced(rule["expr"]), rule["alert"]


def test_every_alert_says_what_to_do(rules: list[dict[str, Any]]) -> None:
    for rule in rules:
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"]["summary"]
        assert len(rule["annotations"]["runbook"].split()) > 10, rule["alert"]
        assert re.fullmatch(r"\d+[smh]", rule.get("for", "1m")), rule["alert"]


def test_a_metric_that_is_not_there_is_found() -> None:
    assert unknown_names("rate(cotidal_nothing_total[5m]) + cotidal_topics") == {
        "cotidal_nothing_total"
    }
    assert unknown_labels('sum by (colour) (cotidal_topics{api="x"})') == {"colour", "api"}
