"""What each Spark can do stands in one table, and nothing else looks at its version."""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from eos.by_name.registration import register
from eos.spark import capabilities
from eos.spark.capabilities import OLDEST, TABLE, Capability, SparkLacks, has, installed, minor, require
from statestore.checkpoint.listing import read_state
from statestore.checkpoint.raw_state import reader_of

ROOT = Path(__file__).parents[3]
LOOKS = re.compile(r"pyspark\.__version__|version\(\"pyspark\"\)|\bspark\.version\b")


@pytest.fixture
def spark_is(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    version: str = request.param
    monkeypatch.setattr(capabilities, "installed", lambda: version)
    return version


def test_the_table_has_each_capability_and_no_spark_that_all_have() -> None:
    assert set(TABLE) == set(Capability)
    assert all(fact.since > OLDEST for fact in TABLE.values())


def test_the_spark_that_is_here_can_do_everything() -> None:
    found = installed()
    assert found is not None
    assert minor(found) >= (4, 3)
    assert all(map(has, Capability))


@pytest.mark.parametrize(
    ("spark_is", "compares", "repairs"),
    [
        ("3.5.9", False, False),
        ("4.0.5", False, False),
        ("4.1.4", False, True),
        ("4.2.1", True, True),
        ("10.0.0.dev1", True, True),
    ],
    indirect=["spark_is"],
)
def test_a_capability_comes_with_a_spark_and_stays(spark_is: str, compares: bool, repairs: bool) -> None:
    assert (has(Capability.COMPARES_SHUFFLES), has(Capability.REPAIRS_SNAPSHOTS)) == (compares, repairs)


@pytest.mark.parametrize("spark_is", ["4.1.4"], indirect=True)
def test_what_spark_lacks_is_refused_with_the_spark_that_has_it(spark_is: str) -> None:
    with pytest.raises(SparkLacks, match=r"x needs .*, and Spark 4\.1\.4 lacks it\. It came with 4\.2\. Do it"):
        require(Capability.COMPARES_SHUFFLES, "x", "Do it.")


def test_nothing_else_looks_at_the_version_of_spark() -> None:
    own = ROOT / "eos/spark/capabilities.py"
    files = [path for folder in ("eos", "statestore", "pyspark_pulsar") for path in (ROOT / folder).rglob("*.py")]
    looking = [str(path.relative_to(ROOT)) for path in files if path != own and LOOKS.search(path.read_text())]
    assert looking == []


@pytest.mark.parametrize("spark_is", ["3.5.9"], indirect=True)
def test_a_data_source_is_not_registered_where_spark_has_none_in_python(spark_is: str) -> None:
    with pytest.raises(SparkLacks, match=r"Spark 3\.5\.9 lacks it\. It came with 4\.0\. Nothing is registered"):
        register(cast(SparkSession, None))


@pytest.mark.parametrize("spark_is", ["3.5.9"], indirect=True)
def test_state_is_not_read_where_spark_can_not(spark_is: str) -> None:
    with pytest.raises(SparkLacks, match=r"Showing, comparing or rescaling state needs .* It came with 4\.0\."):
        reader_of(cast(SparkSession, None), 3, 0)
    with pytest.raises(SparkLacks, match=r"Run the command with a newer Spark"):
        read_state(cast(SparkSession, None), "bk://there/")
