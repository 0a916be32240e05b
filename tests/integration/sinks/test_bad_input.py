"""Wrong input of a caller: the right error, with the words that help, and nothing is tried twice.

No refusal waits: each time-out that one could sit out is far longer than its row of the table allows.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from eos.commit.retry import OwnerSettings
from tests.integration.sinks.bad_input import HOURS_S, TABLE, Bad, World


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.what)
def test_bad_input_is_refused(
    row: Bad, spark: SparkSession, pulsar: Any, make_topic: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eos.sinks.run.OwnerSettings", partial(OwnerSettings, patience_s=HOURS_S))
    world = World(spark, pulsar.service_url, pulsar.admin_url, make_topic("bad", partitions=2), tmp_path)
    began = time.monotonic()
    with pytest.raises(row.error) as caught:
        row.give(world)
    assert time.monotonic() - began < row.within_s, "it waited for what can't change"
    assert type(caught.value) is row.error
    missing = [word for word in row.words if word not in str(caught.value)]
    assert not missing, f"{missing} not in: {caught.value}"
    assert all(sink.metrics.attempts <= 1 for sink in world.sinks), "no second try can mend it"


def test_the_table_is_long_and_names_each_row_once() -> None:
    names = [row.what for row in TABLE]
    assert len(names) == len(set(names)) >= 60
