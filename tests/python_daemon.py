"""PySpark's daemon, in which everything that its workers import is there already: they are forks of it.

Spark starts a worker for each question about a source, and several for each query. Each imports Arrow, pandas and this
project: most of a second, and a fifth of the work of all integration tests. The drivers that tests start in processes
of their own run by PySpark's own daemon, and so do the examples and the blocks of the docs.
"""

from __future__ import annotations

from contextlib import suppress

import pandas  # noqa: F401
import pyarrow.compute  # noqa: F401
from pyspark.daemon import manager

import eos.delivery.task

with suppress(ImportError):  # an older Spark has no sources and writers in Python
    import eos.by_name.data_source
    import eos.source.tasks
with suppress(ImportError):
    import eos.by_name.writers  # noqa: F401

if __name__ == "__main__":
    manager()
