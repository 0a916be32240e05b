"""Files of a shuffle are lost while Spark reads them, and rows that lie elsewhere now are neither lost nor doubled."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from eos.spark.stages import COMPARES_SHUFFLES
from tests.child_process import ChildProcess, python
from tests.integration.sinks.lost_shuffle import FILES, ROWS
from tests.reading import values_of
from tests.spark_session import quick_start

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("small_batch_rows", [0, 1_000])
@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
def test_a_batch_is_written_again_whose_shuffle_was_computed_again(
    pulsar: Any, make_topic: Any, tmp_path: Path, guarantee: str, small_batch_rows: int
) -> None:
    """Where Spark compares no shuffles: of what the driver collects, too, each partition arrives once."""
    topic = make_topic("shuffle", partitions=2)
    given = {
        "service_url": pulsar.service_url,
        "topic": topic,
        "folder": str(tmp_path),
        "settings": {COMPARES_SHUFFLES: "false"},
        "options": {"guarantee": guarantee, "small_batch_rows": small_batch_rows},
    }
    driver = ChildProcess(python("tests.integration.sinks.lost_shuffle", given), tmp_path / "driver.log", quick_start())
    assert driver.wait() == 0, driver.logged
    assert (tmp_path / "died").exists()
    assert f"attempts {FILES + 1}" in driver.output
    found = Counter(map(int, values_of(pulsar.service_url, topic)))
    assert set(found) == set(range(FILES * ROWS)), "rows are lost"
    if guarantee == "exactly-once" or small_batch_rows:  # without a transaction the rows of tasks stay
        assert set(found.values()) == {1}, "rows are there twice"
