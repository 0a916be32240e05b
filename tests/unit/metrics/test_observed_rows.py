"""What a query observes of the rows of a source. That Spark counts it is seen by tests/integration/test_docs.py."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import Row

from eos.errors import InvalidInput
from eos.metrics.observed_rows import ObservedRows, observe, observed_in


def rows(*columns: tuple[str, str]) -> Any:
    return SimpleNamespace(dtypes=list(columns))


def progress(**observed: Row) -> Any:
    return SimpleNamespace(observedMetrics={name.replace("_", "."): row for name, row in observed.items()})


def test_rows_without_a_column_to_count_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"needs the column __damage, .* rows have value, __key\. Observe"):
        observe(rows(("value", "struct<a:int>"), ("__key", "string")))


@pytest.mark.parametrize("name", ["damage", "eos.sources", "eos"])
def test_a_name_that_no_exporter_would_find_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="the name must be"):
        observe(rows(("value", "binary")), name)


def test_what_all_sources_of_a_query_have_observed_is_added() -> None:
    seen = progress(eos_source=Row(damaged=2, value_bytes=70), eos_source_b=Row(value_bytes=5), mine=Row(damaged=9))
    assert observed_in(seen) == ObservedRows(damaged=2, value_bytes=75)
    assert observed_in(progress(mine=Row(damaged=9))) is None
