"""The official Java client, all rows in one transaction; without Spark, from rows it holds in memory."""

from __future__ import annotations

import struct
from pathlib import Path

import pyarrow as pa

from eos.local import jars
from tests.java_peer import JavaPeer

SOURCE = Path(__file__).with_name("JavaTransaction.java")
THREADS = 2
"""Sending threads: as many as the Spark contenders have tasks at a time."""

_LENGTH = struct.Struct(">i")


class JavaClient(JavaPeer):
    """A JVM with `JavaTransaction`, warm as long as the block lasts."""

    def __init__(self, folder: Path, service_url: str) -> None:
        """Args: where its class and its rows may be kept for that time; the broker."""
        self._rows = folder / "rows"
        flags = ("-Xms2g", "-Xmx2g")
        super().__init__(SOURCE, folder, jars.classpath(), (service_url, str(THREADS)), flags)

    def load(self, rows: pa.Table) -> None:
        """Give it the rows that it is to write from now on; columns `key` and `value`."""
        with self._rows.open("wb") as out:
            out.write(_LENGTH.pack(rows.num_rows))
            for batch in rows.to_batches():
                for key, value in zip(batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True):
                    out.write(b"".join((_LENGTH.pack(len(key)), key, _LENGTH.pack(len(value)), value)))
        loaded = int(self.order(f"load {self._rows}", "loaded"))
        assert loaded == rows.num_rows
        self._rows.unlink()


class JavaTransaction:
    """Writes the rows that the JVM has loaded, commit and all."""

    name = "java_txn"

    def __init__(self, java: JavaClient, topic: str) -> None:
        self._java = java
        self._topic = topic

    def run(self) -> int:
        """Write the rows; return how many were committed."""
        return int(self._java.order(f"run {self._topic}", "committed"))
