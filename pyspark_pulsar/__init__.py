"""Found by Spark without registration: it looks for a `DefaultSource` in every top-level module `pyspark_*`."""

from __future__ import annotations

from eos.by_name.data_source import PulsarDataSource as DefaultSource

__all__ = ["DefaultSource"]
