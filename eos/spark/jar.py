"""The jar that comes with the wheel, and how a session that is about to be made gets it.

It holds what a JVM must host: the file system `bk://`, and the catalog of `eos.sql`.
"""

from __future__ import annotations

import argparse
import atexit
import os
import re
import shlex
import tempfile
from collections.abc import Mapping
from functools import cache, partial
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from eos.errors import InvalidInput

NAME = "eos-bk.jar"
_PACKAGE = "statestore"
"""Whose folder `jars` it lies in."""

FILE_SYSTEM = {
    "spark.hadoop.fs.bk.impl": "eos.bk.BookKeeperFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.bk.impl": "eos.bk.Bk",
}
"""The settings by which Hadoop finds `bk://` in the jar."""

# The separator of each setting's parts. spark.jars brings the jar to the executors of any cluster. The class
# paths make it one class for the whole JVM, however many class loaders Spark makes for sessions and artifacts.
_LISTS = {
    "spark.jars": ",",
    "spark.driver.extraClassPath": os.pathsep,
    "spark.executor.extraClassPath": os.pathsep,
}
_SEPARATOR = re.compile(r"\s*[=:]\s*|\s+")
_REDACTION = "spark.redaction.regex"
SECRETS = "(?i)secret|password|token|access[.]?key|credential"
"""Spark's default. Some versions have no "credential"."""


def shipped_jar() -> Path | None:
    """Return the jar, which comes with the wheel, or from `make jar` in a source tree; None where neither has happened.

    Where the modules are in a zip, as `spark-submit --py-files` has them, it is a copy that this process removes at
    its end.
    """
    path = _resource()
    if not path.is_file():
        return None
    return path if isinstance(path, Path) else _copied()


def how_to_get_it() -> str:
    """Say that the jar is missing, and what to do."""
    return (
        f"{NAME} is not in this installation of statestore. In a source tree, `make jar` builds it (a JDK 17 and "
        "Maven are needed). A wheel brings it along. Install one that was built with them."
    )


def _resource() -> Traversable:
    return resources.files(_PACKAGE) / "jars" / NAME


@cache
def _copied() -> Path:
    with tempfile.NamedTemporaryFile(suffix=NAME, delete=False) as copy:
        copy.write(_resource().read_bytes())
    path = Path(copy.name)
    remove = partial(path.unlink, missing_ok=True)
    atexit.register(remove)

    def leave_to_parent() -> None:
        atexit.unregister(remove)
        _copied.cache_clear()

    os.register_at_fork(after_in_child=leave_to_parent)
    return path


def settings_before(builder: Any, jvm_runs: bool) -> dict[str, str]:
    """Return the settings that a session gets without ours: the builder's, over those that the builder replaces.

    Args: a builder of sessions; whether the driver's JVM runs already. Then it has what the command line of
        spark-submit and `spark-defaults.conf` say. Raises InvalidInput for what is not a builder.
    """
    given = settings_of(builder)
    return (_jvm_settings() if jvm_runs else default_settings()) | given


def with_jar(before: Mapping[str, str], jar: str) -> dict[str, str]:
    """Return the settings by which a session gets the jar; what is listed before is kept.

    Args: what `settings_before` returned; the jar.
    """
    return {name: _appended(before.get(name, ""), jar, separator) for name, separator in _LISTS.items()}


def hiding(before: Mapping[str, str], *words: str) -> dict[str, str]:
    """Return the setting by which Spark's UI and event log hide settings whose names have one of these words, too.

    Args: what `settings_before` returned; the words.
    """
    now = before.get(_REDACTION, SECRETS)
    more = [word for word in words if word not in now]
    return {_REDACTION: "|".join([now, *more])} if more else {}


def settings_of(builder: Any) -> dict[str, str]:
    """Return what a builder of sessions was given so far. Raises InvalidInput for what is not a builder."""
    given = getattr(builder, "_options", None)
    if not isinstance(given, dict):
        kind = builder if isinstance(builder, type) else type(builder)
        raise InvalidInput(
            f"{kind.__name__} is not a builder of sessions, and nothing is configured. Give SparkSession.builder, "
            "before getOrCreate() is called."
        )
    return {name: str(value) for name, value in given.items()}


def _jvm_settings() -> dict[str, str]:
    from pyspark import SparkConf

    return dict(SparkConf().getAll())


def driver_has_jar() -> bool:
    """Whether the driver's JVM runs already, with the jar. Raises InvalidInput where it runs without."""
    from pyspark import SparkContext

    if SparkContext._gateway is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
        return False
    SparkContext._ensure_initialized()
    jvm: Any = SparkContext._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        jvm.java.lang.Class.forName(FILE_SYSTEM["spark.hadoop.fs.bk.impl"], False, loader)
    except Exception as error:
        raise InvalidInput(
            "The JVM of the Spark driver runs already, without the jar of bk://, and can't load it any more. Call "
            "configure_spark before the first session of this process is made; under spark-submit give it the jar: "
            'spark-submit --jars "$(statestore jar)" --driver-class-path "$(statestore jar)" …'
        ) from error
    return True


def refuse_overriding_arguments() -> None:
    """Raise InvalidInput where PYSPARK_SUBMIT_ARGS, which wins over the builder, would silently replace our lists."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--jars")
    parser.add_argument("--driver-class-path")
    parser.add_argument("--conf", "-c", action="append", default=[])
    found, _ = parser.parse_known_args(shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "")))
    named = {"spark.jars": found.jars, "spark.driver.extraClassPath": found.driver_class_path}
    named |= {text.partition("=")[0]: text for text in found.conf}
    for name in _LISTS:
        if named.get(name):
            raise InvalidInput(
                f"PYSPARK_SUBMIT_ARGS sets {name}, which would replace what configure_spark adds. Move it to the "
                f'builder: SparkSession.builder.config("{name}", …)'
            )


def default_settings() -> dict[str, str]:
    """Return what `spark-defaults.conf` says; a builder's setting replaces it, so lists there must be carried over."""
    from pyspark.find_spark_home import _find_spark_home

    folder = os.environ.get("SPARK_CONF_DIR") or str(Path(_find_spark_home(), "conf"))
    file = Path(folder, "spark-defaults.conf")
    return settings_in(file) if file.is_file() else {}


def settings_in(file: Path) -> dict[str, str]:
    """Read a file such as `spark-defaults.conf`. Raises OSError, UnicodeDecodeError."""
    found = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        name, *value = _SEPARATOR.split(line.strip(), maxsplit=1)
        if name and not name.startswith("#"):
            found[name] = "".join(value)
    return found


def _appended(parts: str, jar: str, separator: str) -> str:
    listed = [part for part in parts.split(separator) if part]
    paths = [part.removeprefix("file:").removeprefix("//") for part in listed]  # spark-submit makes URLs of them
    return separator.join(listed if jar in paths else [*listed, jar])
