"""The command line of a Java process that runs one of Pulsar's main classes."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eos.local.checks import LocalError, PortTaken

_LOG_LINES = 25
_TAKEN = "Address already in use"
_OPENED = ("java.base/java.nio", "java.base/sun.net", "java.base/jdk.internal.misc")  # netty's direct memory

LOGGING = """status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %-5level [%t] %c{1} - %m%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
logger.requests.name = org.eclipse.jetty.server.RequestLog
logger.requests.level = warn
logger.zookeeper.name = org.apache.zookeeper
logger.zookeeper.level = warn
"""


@dataclass(frozen=True, slots=True)
class Jvm:
    """How a JVM is run.

    Attributes:
        java: its executable.
        classpath: as `jars.classpath` gives it.
        heap: as Java writes it: "256m".
        direct: memory outside the heap, likewise.
        flags: further options. `QUICK_START` suits a process that is to be up soon and does little.
    """

    java: Path
    classpath: str
    heap: str
    direct: str
    flags: Sequence[str] = ()

    def command(self, home: Path, main: str, arguments: Sequence[str]) -> list[str]:
        """The command line; `home` holds log4j2.properties and a folder tmp."""
        return [
            str(self.java),
            f"-Xmx{self.heap}",
            f"-XX:MaxDirectMemorySize={self.direct}",
            "-XX:+ExitOnOutOfMemoryError",
            *self.flags,
            *(part for package in _OPENED for part in ("--add-opens", f"{package}=ALL-UNNAMED")),
            "-Dio.netty.tryReflectionSetAccessible=true",
            f"-Dlog4j2.configurationFile={home / 'log4j2.properties'}",
            f"-Djava.io.tmpdir={home / 'tmp'}",
            *("-cp", self.classpath, main, *arguments),
        ]


# The second compiler costs more than it gains in a process that lives for minutes.
QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def prepare(home: Path) -> None:
    """Make what `Jvm.command` expects in `home`."""
    (home / "tmp").mkdir(parents=True, exist_ok=True)
    (home / "log4j2.properties").write_text(LOGGING)


def as_localhost(home: Path) -> Sequence[str]:
    """Write a file of hosts into `home`, and return the flags that let Java know this machine as localhost by it."""
    hosts = home / "hosts"
    hosts.write_text(f"127.0.0.1 localhost {socket.gethostname()}\n")
    return (f"-Djdk.net.hosts.file={hosts}",)


def start_failure(what: str, log: Path) -> LocalError:
    """Return the error of a process that did not come up. Args: the event, and its log. The end of the log is shown."""
    taken = log.exists() and _TAKEN in log.read_text(errors="replace")
    return (PortTaken if taken else LocalError)(f"{what}.\n{last_lines(log)}")


def last_lines(log: Path) -> str:
    """The end of a JVM's log without the frames of stack traces."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    told = [line[:400] for line in lines if not line.startswith("\t")]
    return "\n".join(["The last lines of its log:", *told[-_LOG_LINES:]])
