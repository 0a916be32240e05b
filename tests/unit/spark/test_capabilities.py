"""What each Spark can do stands in one table, and nothing else looks at its version."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from eos.by_name.session import register
from eos.spark import capabilities
from eos.spark.capabilities import (
    OLDEST,
    TABLE,
    Capability,
    SparkLacks,
    has,
    installed,
    minor,
    require,
    require_pyspark,
)
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
        read_state("bk://there/", spark=cast(SparkSession, None))


# ---- no PySpark, or one that is too old


TRY = """
import importlib.util, sys
find = importlib.util.find_spec
if len(sys.argv) > 1:
    sys.path.insert(0, sys.argv[1])
else:
    importlib.util.find_spec = lambda name, package=None: None if name == "pyspark" else find(name, package)
import eos
try:
    from eos import sink
except eos.InvalidInput as error:
    assert isinstance(error, ImportError)
    print(error)
"""


def said(*arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", TRY, *arguments], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_pyspark_that_is_here_is_taken() -> None:
    require_pyspark()


def test_a_missing_pyspark_is_named_with_what_to_install() -> None:
    text = said()
    assert "needs PySpark 3.5 or newer, and this Python has none" in text
    assert 'pip install "spark-pulsar-eos[spark]"' in text


@pytest.mark.parametrize("version", ["3.4.4", "2.4.0.dev1"])
@pytest.mark.parametrize("zipped", [False, True], ids=["in a folder", "in a zip, as under spark-submit"])
def test_a_pyspark_that_is_too_old_is_named_with_its_version(version: str, zipped: bool, tmp_path: Path) -> None:
    files = {
        "__init__.py": "raise SyntaxError('too old to be imported')",
        "version.py": f'# licence 2.0\n__version__: str = "{version}"\n',
    }
    place = tmp_path / "pyspark.zip" if zipped else tmp_path
    if zipped:
        with zipfile.ZipFile(place, "w") as written:
            for name, text in files.items():
                written.writestr(f"pyspark/{name}", text)
    else:
        (tmp_path / "pyspark").mkdir()
        for name, text in files.items():
            (tmp_path / "pyspark" / name).write_text(text)
    assert f"needs PySpark 3.5 or newer, and this Python has {version}" in said(str(place))
