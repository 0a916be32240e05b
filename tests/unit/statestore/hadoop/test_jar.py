from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib import resources
from pathlib import Path

import pytest

from statestore import JarMissing
from statestore.hadoop.jar import NAME, jar_path

# As a process that has the modules from a zip: what it prints is where the copy was, and what is in it.
_IN_A_ZIP = """
import sys, zipfile
from importlib import resources
from statestore.hadoop import jar
jar.resources.files = lambda package: zipfile.Path(sys.argv[1], package + "/")
assert jar.jar_path() == jar.jar_path()
print(jar.jar_path(), jar.jar_path().read_text())
"""


def test_the_jar_in_a_zip_of_modules_is_copied_for_as_long_as_the_process_lives(tmp_path: Path) -> None:
    modules = tmp_path / "eos.zip"
    with zipfile.ZipFile(modules, "w") as written:
        written.writestr(f"statestore/jars/{NAME}", "classes")
    done = subprocess.run(
        [sys.executable, "-c", _IN_A_ZIP, modules],
        capture_output=True,
        text=True,
        check=True,
        env={"TMPDIR": str(tmp_path)},
    )
    copy, content = done.stdout.split()
    assert content == "classes"
    assert copy.endswith(".jar")
    assert not Path(copy).exists()
    assert list(tmp_path.iterdir()) == [modules]


def test_a_zip_without_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = tmp_path / "eos.zip"
    with zipfile.ZipFile(modules, "w") as written:
        written.writestr("statestore/__init__.py", "")
    monkeypatch.setattr(resources, "files", lambda package: zipfile.Path(modules, f"{package}/"))
    with pytest.raises(JarMissing, match=r"eos-bk\.jar is not in this installation"):
        jar_path()
