"""How tests start Spark drivers that live for a batch or two: most of the suite's work would be their starting."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pyspark

from eos.local.class_archive import spark_flags, submit_environment
from eos.local.jvm import QUICK_START
from statestore import jar_path

SPARK = Path(pyspark.__file__).parent


@cache
def quick_start(*, with_bk: bool = False) -> Mapping[str, str]:
    """The environment of a driver that shares its classes with those before it; `with_bk`: one that uses bk://."""
    flags = spark_flags(SPARK, QUICK_START, [Path(jar_path())] if with_bk else (), tell=print)
    return submit_environment(SPARK, flags)
