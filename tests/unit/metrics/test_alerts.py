"""The alerts that ship with the package, tried by Prometheus' own promtool on figures of good and bad hours."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import pytest

from tests.unit.metrics.test_dashboard import alerts as documented

RULES = files("eos.metrics").joinpath("alerts.yml").read_text(encoding="utf-8")
SUMMARIES = dict(re.findall(r"alert: (\w+)\n.*?summary: ([^\n]*)", RULES, re.DOTALL))
MINUTES = 60
promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not on the PATH; on Debian: apt-get install prometheus"
)

Series = Mapping[str, str]
"""What Prometheus has scraped each minute, in promtool's notation, by the series."""

SINK: Series = {
    "batches_total{outcome='committed'}": f"0+2x{MINUTES}",
    "batches_total{outcome='replayed'}": f"0 1x{MINUTES}",
    "batches_total{outcome='unknown'}": f"0x{MINUTES}",
    "failures_total{error='NotCommitted'}": f"0x{MINUTES}",
    "failures_total{error='Stopped'}": f"0 1x{MINUTES}",
    "transactions_total": f"0+2x{MINUTES}",
    "batch_duration_seconds_bucket{le='30'}": f"0+2x{MINUTES}",
    "batch_duration_seconds_bucket{le='+Inf'}": f"0+2x{MINUTES}",
    "last_commit_timestamp_seconds": f"0+60x{MINUTES}",
    "start_timestamp_seconds": f"7 60x{MINUTES}",
    "open_transaction_age_seconds": f"5x{MINUTES}",
}
SOURCE: Series = {
    "lag_entries{topic='a'}": f"0 7 9 0x{MINUTES}",
    "lag_entries{topic='b'}": f"0x{MINUTES}",
    "oldest_unread_age_seconds": f"2x{MINUTES}",
    "last_batch_timestamp_seconds": f"0+60x{MINUTES}",
    "losses_total": f"0x{MINUTES}",
    "damaged_rows_total": f"0x{MINUTES}",
}
GOOD: Series = {
    **{f"eos_sink_{name}": values for name, values in SINK.items()},
    **{f"eos_source_{name}": values for name, values in SOURCE.items()},
}
"""An hour with two batches a minute, after one restart."""

DEAD: Series = {series: values.rsplit("x", 1)[0] + "x30 stale" for series, values in GOOD.items()}
"""The same hour with a driver that dies in its middle: the target is down, and its series end."""

BAD: dict[str, tuple[Series, dict[str, str]]] = {
    "EosReadersWait": ({"eos_sink_open_transaction_age_seconds": "0+3x60"}, {}),
    "EosDriverGone": (DEAD, {}),
    "EosCommitUnknown": ({"eos_sink_batches_total{outcome='unknown'}": "0x54 1x5"}, {}),
    "EosQueryFailed": ({"eos_sink_failures_total{error='NotCommitted'}": "0x54 1x5"}, {"error": "NotCommitted"}),
    "EosBatchesRepeated": ({"eos_sink_transactions_total": "0+3x60"}, {}),
    "EosBatchesSlow": (
        {
            "eos_sink_batch_duration_seconds_bucket{le='30'}": "0+1x60",
            "eos_sink_batch_duration_seconds_bucket{le='300'}": "0+1x60",
            "eos_sink_batch_duration_seconds_bucket{le='600'}": "0+2x60",
        },
        {},
    ),
    "EosNothingCommitted": ({"eos_sink_last_commit_timestamp_seconds": "0+60x40 2400x19"}, {}),
    "EosQueryRestarts": ({"eos_sink_start_timestamp_seconds": "7x30 1800x7 2300x7 2800x7 3300x8"}, {}),
    "EosSourceBehind": ({"eos_source_lag_entries{topic='a'}": "0x40 7x19"}, {}),
    "EosSourceLate": ({"eos_source_oldest_unread_age_seconds": "0+15x60"}, {}),
    "EosSourceSilent": ({"eos_source_last_batch_timestamp_seconds": "0+60x40 2400x19"}, {}),
    # The first value that Prometheus sees may have the loss in it already.
    "EosSourceLoss": ({"eos_source_losses_total": "_x58 1x1"}, {}),
    "EosSourceDamaged": ({"eos_source_damaged_rows_total": "_x58 3x1"}, {}),
}
"""What is different from the good hour, and what labels the alert has beside the sink or the query."""

OTHERS: dict[str, tuple[Series, str | None]] = {
    "a sink that never commits, since the driver began": (
        {
            "eos_sink_last_commit_timestamp_seconds": f"_x{MINUTES}",
            "eos_sink_batches_total{outcome='committed'}": f"0x{MINUTES}",
            "eos_sink_transactions_total": f"0x{MINUTES}",
        },
        "EosNothingCommitted",
    ),
    "drivers that end one after the other, each at an address of its own": (
        {
            f"eos_sink_start_timestamp_seconds{{instance='{one}'}}": f"_x{9 + 10 * one} {600 + 600 * one}x7 stale"
            for one in range(4)
        },
        "EosQueryRestarts",
    ),
    "four drivers whose sinks have the same name, as in test and production": (
        {f"eos_sink_start_timestamp_seconds{{instance='{one}'}}": f"-{9000 + one}x{MINUTES}" for one in range(4)},
        None,
    ),
    "a driver that has begun with messages to catch up on": (
        {f"eos_source_lag_entries{{topic='{one}'}}": f"_x{MINUTES - 6} 7x5" for one in "ab"},
        None,
    ),
}
"""Hours that look alike, in a part, to a good or a bad one: what is different from the good hour, and what fires."""


def fires(folder: Path, series: Series, expected: Mapping[str, Mapping[str, str]]) -> None:
    """See that of all alerts these fire at the end of the hour, with these labels beside the sink or the query."""
    (folder / "alerts.yml").write_text(RULES)
    fed = [{"series": _labelled(name), "values": values} for name, values in series.items()]
    asked = [
        {
            "eval_time": f"{MINUTES}m",
            "alertname": alert,
            "exp_alerts": [_alert(summary, expected[alert])] if alert in expected else [],
        }
        for alert, summary in SUMMARIES.items()
    ]
    test = {"rule_files": ["alerts.yml"], "tests": [{"interval": "1m", "input_series": fed, "alert_rule_test": asked}]}
    (folder / "test.yml").write_text(json.dumps(test))
    done = subprocess.run(["promtool", "test", "rules", "test.yml"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def _labelled(series: str) -> str:
    name, _, labels = series.partition("{")
    own = "query='counts'" if name.startswith("eos_source_") else "sink='flights'"
    return f"{name}{{{own}{', ' + labels if labels else '}'}"


def _alert(summary: str, labels: Mapping[str, str]) -> dict[str, object]:
    own = {"query": "counts"} if "$labels.query" in summary else {"sink": "flights"}
    told = summary
    for label, value in own.items():
        told = told.replace(f"{{{{ $labels.{label} }}}}", value)
    return {"exp_labels": {**own, **labels}, "exp_annotations": {"summary": told}}


def test_the_alerts_are_those_of_the_page() -> None:
    assert re.findall(r"expr: (.*)", RULES) == documented()
    assert list(SUMMARIES) == list(BAD)


@promtool
def test_no_alert_fires_in_a_good_hour(tmp_path: Path) -> None:
    fires(tmp_path, GOOD, {})


@promtool
@pytest.mark.parametrize("alert", BAD)
def test_a_bad_hour_fires_its_alert_and_no_other(alert: str, tmp_path: Path) -> None:
    changed, labels = BAD[alert]
    fires(tmp_path, {**GOOD, **changed}, {alert: labels})


@promtool
@pytest.mark.parametrize("hour", OTHERS)
def test_an_hour_that_looks_like_another_fires_what_it_should(hour: str, tmp_path: Path) -> None:
    changed, alert = OTHERS[hour]
    fires(tmp_path, {**GOOD, **changed}, {} if alert is None else {alert: {}})
