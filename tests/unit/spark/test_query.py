"""Facts of a query that need no JVM."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from eos.errors import InvalidInput
from eos.spark.query import refuse_speculation


def session(**conf: str) -> Any:
    return SimpleNamespace(
        sparkContext=SimpleNamespace(getConf=lambda: {k.replace("_", "."): v for k, v in conf.items()})
    )


@pytest.mark.parametrize("text", ["true", "True", "TRUE"])
def test_speculation_is_refused_however_it_is_spelled(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"Set spark\.speculation=false"):
        refuse_speculation(session(spark_speculation=text))


def test_no_speculation_is_taken() -> None:
    refuse_speculation(session())
    refuse_speculation(session(spark_speculation="false"))
