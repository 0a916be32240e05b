"""Pulsar's jars: fetched by Maven once, kept in the cache folder.

The folder appears under its final name only when it is complete, so an interrupted
fetch leaves no half cache. Jars that Maven keeps on the same disk are linked, not copied.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from eos.local import checks
from eos.local.places import Tell, cache, locked, quiet

PULSAR_VERSION = "4.2.4"
OPENTELEMETRY_VERSION = "1.62.0"  # without it the broker stops with NoSuchMethodError
DEPENDENCY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
ABOUT_JARS = 330
ABOUT_BYTES = 243 * checks.MEGABYTE
_TELL_EVERY_S = 2.0

POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>eos.local</groupId>
  <artifactId>pulsar</artifactId>
  <version>1</version>
  <dependencyManagement>
    <dependencies>
      <dependency>
        <groupId>io.opentelemetry</groupId>
        <artifactId>opentelemetry-bom</artifactId>
        <version>{OPENTELEMETRY_VERSION}</version>
        <type>pom</type>
        <scope>import</scope>
      </dependency>
    </dependencies>
  </dependencyManagement>
  <dependencies>
    <dependency>
      <groupId>org.apache.pulsar</groupId>
      <artifactId>pulsar-broker</artifactId>
      <version>{PULSAR_VERSION}</version>
    </dependency>
  </dependencies>
</project>
"""


def folder() -> Path:
    """The folder of the jars, there or not. Its name changes with the pom."""
    return cache() / f"pulsar-{PULSAR_VERSION}-{hashlib.sha256(POM.encode()).hexdigest()[:8]}"


def classpath(tell: Tell = quiet) -> str:
    """A Java class path with the broker, the Java client and BookKeeper; fetches the jars when they are not there.

    Raises:
        LocalError: Java, Maven, disk space or the network is missing.
    """
    target = folder()
    if not target.exists():
        with locked("jars", tell):
            if not target.exists():
                with checks.disk_errors("Fetching Pulsar's jars"):
                    _fetch(target, tell)
    return f"{target}{os.sep}*"


def _fetch(target: Path, tell: Tell) -> None:
    checks.java()
    mvn = checks.maven()
    checks.free_space(target, 3 * ABOUT_BYTES, f"Fetching Pulsar {PULSAR_VERSION}")
    for leftover in target.parent.glob(f"{target.name}.*"):
        shutil.rmtree(leftover)
    scratch = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
    try:
        jars = _resolve(mvn, scratch, tell)
        lib = scratch / "lib"
        lib.mkdir()
        for jar in jars:
            _link(jar, lib / jar.name)
        held = sum(jar.stat().st_size for jar in lib.iterdir())
        lib.rename(target)
        tell(f"Pulsar {PULSAR_VERSION}: {len(jars)} jars, {held // checks.MEGABYTE} MB in {target}")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _resolve(mvn: Path, scratch: Path, tell: Tell) -> list[Path]:
    """Let Maven find the jars and bring them into its own repository; follow what it prints."""
    (scratch / "pom.xml").write_text(POM)
    answer = scratch / "classpath"
    goal = [f"{DEPENDENCY_PLUGIN}:build-classpath", f"-Dmdep.outputFile={answer}", "-DincludeScope=runtime"]
    tell(f"Asking Maven for Pulsar {PULSAR_VERSION}: about {ABOUT_JARS} jars, {ABOUT_BYTES // checks.MEGABYTE} MB")
    count, size, told = 0, 0.0, time.monotonic()
    complaints: list[str] = []
    with subprocess.Popen(
        [mvn, "-B", "-f", scratch / "pom.xml", *goal],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        try:
            for line in process.stdout or ():
                if line.startswith("[ERROR]"):
                    complaints.append(line.removeprefix("[ERROR]").strip())
                count_of_line, size_of_line = downloaded(line)
                count, size = count + count_of_line, size + size_of_line
                if count_of_line and time.monotonic() - told > _TELL_EVERY_S:
                    told = time.monotonic()
                    megabytes = int(size // checks.MEGABYTE)
                    tell(
                        f"  {count} of about {ABOUT_JARS} jars, {megabytes} of {ABOUT_BYTES // checks.MEGABYTE} MB here"
                    )
        except BaseException:
            process.terminate()
            raise
    if process.returncode != 0 or not answer.exists():
        reason = next((line for line in complaints if line), f"{mvn} ended with {process.returncode}")
        raise checks.LocalError(f"Maven could not fetch Pulsar {PULSAR_VERSION}: {reason}")
    jars = [Path(entry) for entry in answer.read_text().strip().split(os.pathsep)]
    if len({jar.name for jar in jars}) != len(jars):
        raise checks.LocalError(f"Maven found two different jars of one name for Pulsar {PULSAR_VERSION}")
    return jars


def downloaded(line: str) -> tuple[int, float]:
    """Read how many jars (0 or 1) and bytes a line of Maven's output says have arrived."""
    match = re.search(r"Downloaded from \S+: \S+\.jar \(([\d.,]+) ([kMG]?)B", line)
    if match is None:
        return 0, 0.0
    return 1, float(match[1].replace(",", ".")) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[match[2]]


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another disk, or a file system without links
        shutil.copyfile(source, target)
