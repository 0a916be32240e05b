"""The classes that a JVM makes of its jars, kept for those that start after it: class data sharing (JEP 350).

Nearly half of what a Spark driver does until its first micro-batch is over is to read and check classes: with an
archive it takes 9.6 s of processor time, and 17 without; a standalone Pulsar takes 8 s to be up, and 13 without (Java
17, a slow machine). An archive is good for one Java and one class path. Java looks at both, and goes on without where
they differ.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from eos.local import checks, jars, places
from eos.local.places import Tell, quiet

TRAINING = (sys.executable, "-m", "eos.local.first_query")
"""A command that runs a small streaming query in a Spark session of its own."""

_TRAINING_S = 300


def spark_flags(home: Path, flags: Sequence[str], class_path: Sequence[Path] = (), tell: Tell = quiet) -> list[str]:
    """Return `flags` and those that let a Spark driver share classes; the first call for these jars trains a minute.

    Args:
        home: Spark's, as drivers get it in SPARK_HOME: by another path it is another class path.
        flags: what the drivers' JVMs run with besides: an archive is good for one garbage collector.
        class_path: what drivers have before Spark's jars (`spark.driver.extraClassPath`).
        tell: called before the training, and when it failed. Then `flags` come back as they are.
    """
    archive = _archive([*class_path, *_jars(home / "jars")], flags)
    with places.locked("classes", tell):
        if not archive.exists():
            tell("Reading Spark's classes once for all drivers")
            _train(home, flags, class_path, archive, tell)
    return _with(flags, archive)


def pulsar_flags(flags: Sequence[str]) -> list[str]:
    """Return `flags`, and those that let a JVM of Pulsar's share classes, if `eos local fetch` has kept any."""
    return _with(flags, pulsar_archive(flags))


def pulsar_archive(flags: Sequence[str]) -> Path:
    """Where the archive for Pulsar's jars and these flags is, or would be."""
    return _archive(_jars(jars.folder()), flags)


@contextmanager
def kept(archive: Path) -> Iterator[Path]:
    """Give a name for a JVM to write its classes to (`-XX:ArchiveClassesAtExit`), and keep them when it has.

    Nothing is kept when the block ends with an error.
    """
    archive.parent.mkdir(parents=True, exist_ok=True)
    unfinished = archive.with_suffix(f".{os.getpid()}")
    try:
        yield unfinished
        if unfinished.exists():
            unfinished.replace(archive)
    finally:
        unfinished.unlink(missing_ok=True)


def submit_environment(home: Path, flags: Sequence[str], class_path: Sequence[Path] = ()) -> Mapping[str, str]:
    """The environment in which pyspark starts its JVM with these flags."""
    path = f"--driver-class-path '{os.pathsep.join(map(str, class_path))}' " if class_path else ""
    return {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(home),
        "PYSPARK_SUBMIT_ARGS": f"{path}--driver-java-options '{' '.join(flags)}' pyspark-shell",
    }


def _jars(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.jar"))


def _archive(files: Sequence[Path], flags: Sequence[str]) -> Path:
    return places.cache() / "classes" / f"{_key([checks.java(), *files], flags)}.jsa"


def _with(flags: Sequence[str], archive: Path) -> list[str]:
    return [*flags, f"-XX:SharedArchiveFile={archive}"] if archive.exists() else list(flags)


def _key(files: Sequence[Path], flags: Sequence[str]) -> str:
    """Tell jars apart as Java does: by path, size and time."""
    said = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return hashlib.sha256(repr((said, tuple(flags))).encode()).hexdigest()[:32]


def _train(home: Path, flags: Sequence[str], class_path: Sequence[Path], archive: Path, tell: Tell) -> None:
    try:
        with kept(archive) as unfinished:
            environment = submit_environment(home, [*flags, f"-XX:ArchiveClassesAtExit={unfinished}"], class_path)
            ran = subprocess.run(
                TRAINING,
                env={**os.environ, **environment},
                capture_output=True,
                text=True,
                timeout=_TRAINING_S,
                check=False,
            )
            if ran.returncode != 0:
                unfinished.unlink(missing_ok=True)
        if not archive.exists():
            tell(f"Spark's classes can't be shared, so drivers start more slowly ({ran.stderr.strip()[-300:]})")
    except subprocess.TimeoutExpired:
        tell(f"Spark's classes can't be shared, because reading them took more than {_TRAINING_S} s")
