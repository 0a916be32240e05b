"""All columns of a topic, and the few that a query needs, read through Spark and away: what pruning saves.

A query on a table of the catalog declares the columns that it names to the source, and `count(*)` declares
`__partition`, which is not in a message (tests/integration/sql/test_catalog.py). Here they are declared by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from eos.source.columns import ALL
from tests.benchmarks import client_cpu
from tests.benchmarks.readers import Reading, fill
from tests.benchmarks.rounds import Timed, take_turns
from tests.benchmarks.source_plan import SourcePlan

NAME = "columns"
EVERY = "every_column"
FEW: Mapping[str, str] = {"key": "__key binary", "count": "__partition int"}
"""{name in the results: what is declared}."""


def compare(session: SparkSession, plan: SourcePlan, folder: Path) -> dict[str, Timed]:
    """Fill a topic, and read every column and the few in turn; return what each took, of CPU too.

    Args: with the classes of Java in `folder`. Raises RuntimeError when rows are missing.
    """
    case = replace(plan.large, name=NAME, rows=plan.typed_rows)
    read = {"service.url": plan.broker.service_url, "topic": fill(plan, folder, case)[NAME]}
    source = session.read.format("pulsar").options(**read)
    contenders = [Reading(EVERY, source.schema(ALL).load())]
    contenders += [Reading(name, source.schema(declared).load()) for name, declared in FEW.items()]
    return take_turns(contenders, plan, NAME, case.rows, cpu=client_cpu.of_session(session))
