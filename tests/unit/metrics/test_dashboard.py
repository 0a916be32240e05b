"""The Grafana dashboard and the alerts in docs/ ask for what the Prometheus exporter gives, by labels that it has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from eos.metrics.figures import FIGURES
from eos.metrics.prometheus import PrometheusMetrics, name_of
from eos.metrics.source_figures import SOURCE_FIGURES
from tests.unit.metrics.batches import Live, failed, finished, read
from tools.command_pages import verbs

DOCS = Path(__file__).resolve().parents[3] / "docs" / "how-to"
PAGES = ("metrics.md", "monitor-the-source.md")
NAME = re.compile(r"\b(eos_(?:sink|source)_\w+)(?:\{([^}]*)\})?")
BY = re.compile(r"\bby \(([^)]*)\)")
SELECTED = re.compile(r"(\w+)(?:=~|!~|!=|=)\"")


def given() -> dict[str, set[str]]:
    """The names that a scrape can show, each with its labels."""
    registry = CollectorRegistry()
    metrics, sink = PrometheusMetrics(registry), Live("flights")
    metrics.watch(sink)
    for batch in (finished(), failed("NotCommitted")):
        metrics(batch)
    metrics.on_progress(read())
    return {
        sample.name: set(sample.labels)
        for family in registry.collect()
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def dashboard() -> Any:
    return json.loads(files("eos.metrics").joinpath("grafana.json").read_text(encoding="utf-8"))


def asked(board: Any) -> Iterator[str]:
    """Each expression of the dashboard."""
    for panel in board["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    yield from (one["query"] for one in board["templating"]["list"] if one["type"] == "query")


def alerts() -> list[str]:
    """What the pages advise to ask."""
    return [one for page in PAGES for one in re.findall(r"^\| `([^`\n]*eos_[^`\n]*)`", text(page), re.MULTILINE)]


def text(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("expression", [*asked(dashboard()), *alerts()])
def test_each_expression_asks_for_metrics_and_labels_that_are_there(expression: str) -> None:
    exporter, asked_for = given(), NAME.findall(expression)
    assert asked_for
    grouped = {label.strip() for listed in BY.findall(expression) for label in listed.split(",")}
    for name, selected in asked_for:
        assert grouped | set(SELECTED.findall(selected)) <= exporter.get(name, set()), f"{name} is not exported so"


def test_the_dashboard_shows_every_figure() -> None:
    shown = " ".join(asked(dashboard()))
    assert [name for name in map(name_of, (*FIGURES, *SOURCE_FIGURES)) if name not in shown] == []


def test_the_dashboard_is_one_that_grafana_can_place() -> None:
    """Panels have numbers of their own, lie within 24 columns, and none covers another."""
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (column, row)
        for at in (panel["gridPos"] for panel in panels)
        for column in range(at["x"], at["x"] + at["w"])
        for row in range(at["y"], at["y"] + at["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(column for column, _ in cells) < 24


def test_each_alert_names_a_command_that_there_is() -> None:
    commands = tuple(typed for typed, _ in verbs("eos"))
    rows = [row for page in PAGES for row in re.findall(r"^\| `[^|]*eos_.*\|$", text(page), re.MULTILINE)]
    assert len(rows) == len(alerts())
    for row in rows:
        named = re.findall(r"`(eos [^`]+)`", row.rpartition("|")[0].rpartition("|")[2])
        assert named, row
        assert all(one.startswith(commands) for one in named), row


def test_on_call_is_advised_what_to_ask() -> None:
    assert len(alerts()) >= 6
