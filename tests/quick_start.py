"""How tests start Spark drivers that live for a batch or two: most of the suite's work would be their starting."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pyspark

from eos.local.class_archive import spark_flags, submit_environment
from eos.local.jvm import QUICK_START
from statestore import JarMissing, jar_path

SPARK = Path(pyspark.__file__).parent


@cache
def quick_start(*, with_bk: bool = False) -> Mapping[str, str]:
    """The environment of a driver that shares its classes with those before it; `with_bk`: one that uses bk://.

    That one brings the jar of bk:// by its own settings. The others get it, too, and don't use it: so there is one
    class path, and one minute of reading classes, for all.
    """
    try:
        jar = [Path(jar_path())]
    except JarMissing:
        jar = []
    flags = spark_flags(SPARK, QUICK_START, jar, tell=print)
    return submit_environment(SPARK, flags, () if with_bk else jar)
