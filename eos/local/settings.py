"""The settings of the broker: ports, configuration, and the command line of its JVM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from eos.local import checks
from eos.local.jvm import Jvm

Setting = str | int | bool

OPTIONS = {
    "broker": "--port",
    "http": "--http-port",
    "zookeeper": "--zookeeper-port",
    "bookkeeper": "--bookkeeper-port",
}


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of one instance, all on 127.0.0.1. The defaults are Pulsar's own, without TLS."""

    broker: int = 6650
    http: int = 8080
    zookeeper: int = 2181
    bookkeeper: int = 3181

    @classmethod
    def usual(cls, tls: bool) -> Ports:
        """Pulsar's own."""
        return cls(broker=6651, http=8443) if tls else cls()

    @classmethod
    def free(cls) -> Ports:
        """Ports that are free now."""
        return cls(*checks.pick_ports(len(OPTIONS)))

    def service_url(self, tls: bool) -> str:
        """The URL for clients."""
        return f"{'pulsar+ssl' if tls else 'pulsar'}://localhost:{self.broker}"

    def admin_url(self, tls: bool) -> str:
        """The admin API."""
        return f"{'https' if tls else 'http'}://localhost:{self.http}"

    def mapping(self) -> dict[str, int]:
        """The ports by their names."""
        return asdict(self)

    def check_free(self) -> None:
        """Raise `LocalError` for ports that are in use, naming their options."""
        checks.ports_free({OPTIONS[name]: port for name, port in self.mapping().items()})


# Retention without end: topics without a subscription would lose their data as soon as they have no reader.
# Ledgers 1/1/1: there is one bookie. No fsync: a local instance must survive kill -9, not a power cut.
# The journal gathers writes for 1 ms, as in the bookkeeper.conf that Pulsar ships; BookKeeper's own default is 2 ms.
# One thread recovers topics: several may take a topic with transactions for a new one, see eos/preflight/recovery.py.
# The disk thresholds: free space is checked before the start; a bookie on a disk that is 95% full refuses to write.
DEFAULTS: Mapping[str, Setting] = {
    "metadataStoreUrl": "",
    "configurationMetadataStoreUrl": "",
    "bindAddress": "127.0.0.1",
    "advertisedAddress": "localhost",
    "listeningInterface": checks.loopback(),  # the bookie's
    "clusterName": "standalone",
    "transactionCoordinatorEnabled": True,
    "numTransactionReplayThreadPoolSize": 1,
    "managedLedgerDefaultEnsembleSize": 1,
    "managedLedgerDefaultWriteQuorum": 1,
    "managedLedgerDefaultAckQuorum": 1,
    "defaultRetentionTimeInMinutes": -1,
    "defaultRetentionSizeInMB": -1,
    "brokerDeleteInactiveTopicsEnabled": False,
    "loadBalancerEnabled": False,
    "journalSyncData": False,
    "journalMaxGroupWaitMSec": 1,
    "diskUsageThreshold": "0.999",
    "diskUsageWarnThreshold": "0.998",
    "diskUsageLwmThreshold": "0.997",
}


def broker_conf(ports: Ports, settings: Mapping[str, Setting]) -> str:
    """The text of the broker's configuration file; `settings` win over the defaults."""
    merged = {**DEFAULTS, "brokerServicePort": ports.broker, "webServicePort": ports.http, **settings}
    return properties(merged)


def properties(settings: Mapping[str, Setting]) -> str:
    """The text of a configuration file as Pulsar and BookKeeper read it."""
    return "".join(f"{key}={_text(value)}\n" for key, value in settings.items())


def _text(value: Setting) -> str:
    """Write a value as Java reads it from a file of properties, in Latin-1, with a backslash before what is special."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    plain = text.replace("\\", "\\\\").replace("\n", "\\n")
    return "".join(one if one.isascii() else _escaped(one) for one in plain)


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[place] << 8 | units[place + 1]:04x}" for place in range(0, len(units), 2))


def command(
    java: Path, classpath: str, home: Path, ports: Ports, memory: str, flags: Sequence[str], *, bookie_port: bool = True
) -> list[str]:
    """The command line of the JVM that runs ZooKeeper, one bookie and the broker; `home` is the instance's folder.

    Pulsar 5 has no option for the bookie's port. Its bookie has an id that stays, and listens on a free port.
    """
    return Jvm(java, classpath, heap=memory, direct=memory, flags=flags).command(
        home,
        "org.apache.pulsar.PulsarStandaloneStarter",
        [
            *("--config", str(home / "broker.conf"), "--advertised-address", "localhost"),
            *("--no-functions-worker", "--no-stream-storage"),
            *("--zookeeper-dir", str(home / "zookeeper"), "--zookeeper-port", str(ports.zookeeper)),
            *("--bookkeeper-dir", str(home / "bookkeeper")),
            *(("--bookkeeper-port", str(ports.bookkeeper)) if bookie_port else ()),
        ],
    )


ENVIRONMENT = {"PULSAR_STANDALONE_USE_ZOOKEEPER": "1"}  # a real ZooKeeper, so that ledgers can be reached from outside
VERSION_FILE = "pulsar-version"
OWN_FILES = (
    "zookeeper",
    "bookkeeper0",  # the bookie appends its number, 0, to the folder that it is given
    "tmp",
    "broker.conf",
    "log4j2.properties",
    "pulsar.log",
    "ports.json",
    VERSION_FILE,
)
