"""The package as a user ships it to a Spark cluster: a virtual environment as an archive, or its modules as a zip."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

from statestore.hadoop.jar import jar_path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("eos", "statestore", "pyspark_pulsar")
THIRD_PARTY = next(path for path in map(Path, sys.path) if path.name == "site-packages")
"""What the package depends on is here; as an entry of PYTHONPATH it doesn't bring the source tree along."""


@dataclass(frozen=True)
class Shipped:
    """What there is to ship.

    Attributes:
        environment: a virtual environment, for the driver.
        archive: the same, for `--archives`.
        modules: for `--py-files`.
        jar: for `--jars`.
    """

    environment: Path
    archive: Path
    modules: Path
    jar: Path


def made_quickly(folder: Path) -> Shipped:
    """Make it without a registry: the modules are copied, and what they depend on is taken from where it is."""
    environment = folder / "environment"
    venv.create(environment, with_pip=False, symlinks=True)
    site = next((environment / "lib").glob("python*/site-packages"))
    for package in PACKAGES:
        shutil.copytree(ROOT / package, site / package, ignore=shutil.ignore_patterns("java", "__pycache__"))
    (site / "third-party.pth").write_text(f"{THIRD_PARTY}\n")
    modules = folder / "eos.zip"
    with zipfile.ZipFile(modules, "w") as written:
        for package in PACKAGES:
            for path in sorted(path for path in (site / package).rglob("*") if path.is_file()):
                written.write(path, path.relative_to(site))
    return Shipped(environment, _packed(environment, folder / "environment.tar.gz"), modules, jar_path())


def made_as_documented(folder: Path) -> Shipped:
    """Make it as docs/deploy.md says: build the wheel, install it with what it depends on, pack the environment."""
    wheels, environment = folder / "wheels", folder / "environment"
    own = [sys.executable, "-m", "pip"]
    _run([*own, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", wheels, ROOT])
    (wheel,) = wheels.glob("*.whl")
    _run([sys.executable, "-m", "venv", environment])
    _run([environment / "bin" / "pip", "install", "--quiet", wheel])
    modules = folder / "eos.zip"
    shutil.copy(wheel, modules)
    (jar,) = environment.glob("lib/python*/site-packages/statestore/jars/eos-bk.jar")
    return Shipped(environment, _packed(environment, folder / "environment.tar.gz"), modules, jar)


def _packed(environment: Path, archive: Path) -> Path:
    _run(["tar", "-czf", archive, "-C", environment, "."])
    return archive


def _run(words: list[object]) -> None:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
