"""A run's leftovers, searched for a secret: as it is, its signature alone, in hex, and in base64 of any alignment."""

from __future__ import annotations

import base64
import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import pytest
from pyspark.sql import SparkSession

PY4J = "py4j"
"""Its DEBUG log shows all that goes into Spark's JVM, the options of readers too: that is the user's own call."""


@dataclass
class Left:
    """The leftovers, by place."""

    places: dict[str, bytes] = field(default_factory=dict)

    def add(self, place: str, what: object) -> None:
        """Add a text, bytes, or an error with its traceback as it is printed."""
        if isinstance(what, BaseException):
            what = "".join(traceback.format_exception(what))
        self.places[place] = self.places.get(place, b"") + (what if isinstance(what, bytes) else str(what).encode())

    def add_folder(self, place: str, folder: Path) -> None:
        """Add names and contents of all its files."""
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            self.add(place, str(file.relative_to(folder)).encode() + b"\n" + file.read_bytes())

    def holding(self, word: str) -> set[str]:
        """Return the places that hold it."""
        return {place for place, held in self.places.items() if any(form in held for form in forms(word))}


def forms(word: str) -> Iterator[bytes]:
    """The forms of a word. Of a JSON web token the signature alone is as good."""
    yield word.encode()
    yield quote_plus(word).encode()
    yield word.encode().hex().encode()  # ZooKeeper's records are written so
    if word.count(".") == 2:
        yield word.rpartition(".")[2].encode()
    for before in range(3):  # base64 of a text that begins so many bytes before the word; its edges depend on others
        yield base64.b64encode(b"\0" * before + word.encode())[4:-4]


@contextmanager
def event_log(spark: SparkSession, folder: Path) -> Iterator[None]:
    """Write Spark's event log, as the history server reads it, while the block runs."""
    jvm: Any = spark._jvm
    context = spark.sparkContext._jsc.sc()
    conf = context.conf().clone().set("spark.eventLog.compress", "false")
    where = jvm.java.net.URI(folder.as_uri())
    listener = jvm.org.apache.spark.scheduler.EventLoggingListener("leaks", jvm.scala.Option.empty(), where, conf)
    listener.start()
    context.addSparkListener(listener)
    try:
        yield
    finally:
        context.listenerBus().waitUntilEmpty()
        context.removeSparkListener(listener)
        listener.stop()


@contextmanager
def debug_logs(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Take all loggers' DEBUG lines in the block, but py4j's."""
    with caplog.at_level(logging.INFO, PY4J), caplog.at_level(logging.DEBUG):  # the last one is the handler's, too
        yield
