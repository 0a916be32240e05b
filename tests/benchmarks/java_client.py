"""The official Java client, all rows in one transaction; without Spark, from rows it holds in memory."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path
from types import TracebackType

import pyarrow as pa

from eos.local import jars

SOURCE = Path(__file__).with_name("JavaTransaction.java")
THREADS = 2
"""Sending threads: as many as the Spark contenders have tasks at a time."""

_LENGTH = struct.Struct(">i")


class JavaClient:
    """A JVM with `JavaTransaction`, warm as long as the block lasts."""

    def __init__(self, folder: Path, service_url: str) -> None:
        """Args: where its class and its rows may be kept for that time; the broker."""
        self._rows = folder / "rows"
        self.log = folder / "java.log"
        javac = shutil.which("javac")
        if javac is None:
            raise RuntimeError("javac is missing: the comparison with the Java client needs a JDK, not only a JRE")
        classpath = jars.classpath()
        subprocess.run([javac, "-d", str(folder), "-cp", classpath, str(SOURCE)], check=True)
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                ["java", "-Xms2g", "-Xmx2g", "-cp", f"{folder}:{classpath}", SOURCE.stem, service_url, str(THREADS)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def order(self, verb: str, what: str) -> int:
        """Have it do something; return the number of rows in its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{verb} {what}\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            answer, _, rows = line.strip().partition(" ")
            if answer in ("loaded", "committed"):
                return int(rows)
        raise RuntimeError(f"the Java client ended at `{verb} {what}`:\n{self.log.read_text()[-4_000:]}")

    def load(self, rows: pa.Table) -> None:
        """Give it the rows that it is to write from now on; columns `key` and `value`."""
        with self._rows.open("wb") as out:
            out.write(_LENGTH.pack(rows.num_rows))
            for batch in rows.to_batches():
                for key, value in zip(batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True):
                    out.write(b"".join((_LENGTH.pack(len(key)), key, _LENGTH.pack(len(value)), value)))
        loaded = self.order("load", str(self._rows))
        assert loaded == rows.num_rows
        self._rows.unlink()

    def __enter__(self) -> JavaClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


class JavaTransaction:
    """Writes the rows that the JVM has loaded, commit and all."""

    name = "java_txn"

    def __init__(self, java: JavaClient, topic: str) -> None:
        self._java = java
        self._topic = topic

    def run(self) -> int:
        """Write the rows; return how many were committed."""
        return self._java.order("run", self._topic)
