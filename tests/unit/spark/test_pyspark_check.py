"""A PySpark that is missing or too old is refused with what to install."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from eos.spark.pyspark_check import require_pyspark

ROOT = Path(__file__).parents[3]
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
