"""The settings of each part of a cluster: its main class, its configuration file and its addresses."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from eos.local import checks
from eos.local.jars import PULSAR_VERSION
from eos.local.settings import DEFAULTS, Setting, properties

HOST = "127.0.0.1"
CLUSTER = "local"
BOOKIES = 3
BROKERS = 2
PARTS = ("zookeeper", *(f"bookie-{n}" for n in range(BOOKIES)), *(f"broker-{n}" for n in range(BROKERS)))
SETUP = "org.apache.pulsar.PulsarClusterMetadataSetup"

# How long ZooKeeper waits for a part that says nothing before others take over what it had. A part that is paused for
# longer loses its session, as on a real cluster; there it is 30 s.
SESSION_S = 8.0
_OWN_LISTENER = "own"


@dataclass(frozen=True, slots=True)
class ClusterPorts:
    """The ports of one cluster, all on 127.0.0.1; those of bookies and brokers in the order of their numbers."""

    zookeeper: int
    bookies: tuple[int, ...]
    brokers: tuple[int, ...]
    http: tuple[int, ...]

    @classmethod
    def free(cls) -> ClusterPorts:
        """Ports that are free now."""
        picked = iter(checks.pick_ports(1 + BOOKIES + 2 * BROKERS))
        return cls(
            next(picked),
            tuple(next(picked) for _ in range(BOOKIES)),
            tuple(next(picked) for _ in range(BROKERS)),
            tuple(next(picked) for _ in range(BROKERS)),
        )

    @property
    def metadata_store(self) -> str:
        """ZooKeeper, as Pulsar writes it."""
        return f"zk:{HOST}:{self.zookeeper}"

    @property
    def metadata_service_uri(self) -> str:
        """Where BookKeeper's ledgers are found, as BookKeeper writes it."""
        return f"zk+hierarchical://{HOST}:{self.zookeeper}/ledgers"

    @property
    def service_url(self) -> str:
        """The URL for clients. It lists every broker."""
        return "pulsar://" + ",".join(f"{HOST}:{port}" for port in self.brokers)


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings of a new cluster. It is kept in the cluster's folder, so that each part starts again as it was.

    Attributes:
        settings: the brokers', over the defaults.
        memory: each broker's heap, and as much again outside the heap.
        autorecovery: whether bookies copy what a lost bookie held.
        coordinators: how many transaction coordinators it gets; 0: one, which the start does not wait for.
        listeners: further listeners by name, each with the port of every broker that it stands for.
        session_s: seconds of silence after which ZooKeeper takes a part for dead.
        version: of Pulsar. Clusters from before there was a choice are of the default.
    """

    ports: ClusterPorts
    settings: Mapping[str, Setting]
    memory: str
    autorecovery: bool
    coordinators: int
    listeners: Mapping[str, Sequence[int]] = field(default_factory=dict)
    session_s: float = SESSION_S
    version: str = PULSAR_VERSION

    def to_json(self) -> str:
        """The text for `from_json`."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Read back what `to_json` wrote."""
        held = json.loads(text)
        ports = held["ports"]
        several = {key: tuple(ports[key]) for key in ("bookies", "brokers", "http")}
        return cls(**{**held, "ports": ClusterPorts(ports["zookeeper"], **several)})

    @property
    def session_ms(self) -> int:
        """`session_s`, in the form for bookies and brokers."""
        return round(1000 * self.session_s)

    def parts(self, home: Path) -> list[ClusterPart]:
        """The parts of the cluster in the folder `home`, ZooKeeper first, then bookies, then brokers."""
        return [
            _zookeeper(home / "zookeeper", self.ports),
            *(_bookie(home, number, self) for number in range(BOOKIES)),
            *(_broker(number, self) for number in range(BROKERS)),
        ]

    def setup_arguments(self) -> list[str]:
        """The input of `SETUP`. Running it twice does no harm."""
        store = self.ports.metadata_store
        return [
            *("--cluster", CLUSTER, "--metadata-store", store, "--configuration-metadata-store", store),
            *("--web-service-url", f"http://{HOST}:{self.ports.http[0]}"),
            *("--broker-service-url", self.ports.service_url),
            *("--initial-num-transaction-coordinators", str(max(1, self.coordinators))),
            *("--default-namespace-bundle-number", "4", "--initial-num-stream-storage-containers", "0"),
        ]


@dataclass(frozen=True, slots=True)
class ClusterPart:
    """One process of a cluster.

    Attributes:
        name: "zookeeper", "bookie-0" … or "broker-0" …; its folder in the cluster's is called so too.
        main: the main class.
        option: what the main class wants before the path of the configuration file.
        configuration: the text of that file.
        port: where it is reached.
        heap, direct: memory, as Java writes it.
        http: a broker's port for the admin API; None for the others.
        is_localhost: Java is to take this machine's own name for 127.0.0.1. A broker with listeners can't be told the
            address of its admin API otherwise: it takes the machine's name.
    """

    name: str
    main: str
    option: tuple[str, ...]
    configuration: str
    port: int
    heap: str
    direct: str
    http: int | None = None
    is_localhost: bool = False

    @property
    def address(self) -> str:
        """host:port."""
        return f"{HOST}:{self.port}"


# No fsync anywhere: a local cluster must survive kill -9, not a power cut.
_ZOOKEEPER: Mapping[str, Setting] = {
    "tickTime": 1000,
    "clientPortAddress": HOST,
    "admin.enableServer": False,
    "maxClientCnxns": 0,
    "forceSync": "no",
    "4lw.commands.whitelist": "srvr,dump",
}

_BOOKIE: Mapping[str, Setting] = {
    "advertisedAddress": HOST,
    "listeningInterface": checks.loopback(),
    "allowLoopback": True,
    "ledgerStorageClass": "org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage",
    "dbStorage_writeCacheMaxSizeMb": 32,
    "dbStorage_readAheadCacheMaxSizeMb": 16,
    "dbStorage_rocksDB_blockCacheSize": 4 * 1024 * 1024,
    "journalSyncData": False,
    "journalMaxGroupWaitMSec": 1,
    "journalMaxSizeMB": 64,
    "journalPreAllocSizeMB": 4,
    "logSizeLimit": 64 * 1024 * 1024,
    "entryLogFilePreallocationEnabled": False,
    "numAddWorkerThreads": 1,
    "numReadWorkerThreads": 2,
    "numHighPriorityWorkerThreads": 2,
    "serverNumIOThreads": 2,
    "statsProviderClass": "org.apache.bookkeeper.stats.NullStatsProvider",
    **{key: value for key, value in DEFAULTS.items() if key.startswith("diskUsage")},
}

# With three bookies and ledgers 3/3/2 no bookie can replace a lost one: its writes are then left out as long as two
# answer, instead of closing the ledger. Bundles stay where they are until their broker is gone.
_BROKER: Mapping[str, Setting] = {
    **{key: value for key, value in DEFAULTS.items() if key != "advertisedAddress"},
    "clusterName": CLUSTER,
    "managedLedgerDefaultEnsembleSize": 3,
    "managedLedgerDefaultWriteQuorum": 3,
    "managedLedgerDefaultAckQuorum": 2,
    "bookkeeper_delayEnsembleChange": True,
    "managedLedgerCacheSizeMB": 32,
    "loadBalancerEnabled": True,
    "loadManagerClassName": "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl",
    "loadBalancerSheddingEnabled": False,
    "loadBalancerAutoBundleSplitEnabled": False,
    "numIOThreads": 2,
    "numHttpServerThreads": 8,
}


def _zookeeper(home: Path, ports: ClusterPorts) -> ClusterPart:
    return ClusterPart(
        name="zookeeper",
        main="org.apache.zookeeper.server.ZooKeeperServerMain",
        option=(),
        configuration=properties({**_ZOOKEEPER, "clientPort": ports.zookeeper, "dataDir": str(home / "data")}),
        port=ports.zookeeper,
        heap="192m",
        direct="64m",
    )


def _bookie(home: Path, number: int, plan: Plan) -> ClusterPart:
    name = f"bookie-{number}"
    own: Mapping[str, Setting] = {
        "bookiePort": plan.ports.bookies[number],
        "bookieId": f"{HOST}:{plan.ports.bookies[number]}",  # BookKeeper 4.18 takes ::1 for it, and refuses that
        "metadataServiceUri": plan.ports.metadata_service_uri,
        "zkTimeout": plan.session_ms,
        "journalDirectories": str(home / name / "data"),
        "ledgerDirectories": str(home / name / "data"),
        "autoRecoveryDaemonEnabled": plan.autorecovery,
    }
    return ClusterPart(
        name=name,
        main="org.apache.bookkeeper.server.Main",
        option=("--conf",),
        configuration=properties({**_BOOKIE, **own}),
        port=plan.ports.bookies[number],
        heap="192m",
        direct="192m",
    )


def _broker(number: int, plan: Plan) -> ClusterPart:
    ports = plan.ports
    own: Mapping[str, Setting] = {
        "metadataStoreUrl": ports.metadata_store,
        "configurationMetadataStoreUrl": ports.metadata_store,
        "metadataStoreSessionTimeoutMillis": plan.session_ms,
        "brokerServicePort": ports.brokers[number],
        "webServicePort": ports.http[number],
    }
    return ClusterPart(
        name=f"broker-{number}",
        main="org.apache.pulsar.PulsarBrokerStarter",
        option=("--broker-conf",),
        configuration=properties({**_BROKER, **own, **_addresses(number, plan), **plan.settings}),
        port=ports.brokers[number],
        heap=plan.memory,
        direct=plan.memory,
        http=ports.http[number],
        is_localhost=bool(plan.listeners),
    )


def _addresses(number: int, plan: Plan) -> Mapping[str, Setting]:
    """The address that a broker gives to clients: its own address, or to those that ask for a listener, that one's."""
    if not plan.listeners:
        return {"advertisedAddress": HOST}
    known = {_OWN_LISTENER: plan.ports.brokers, **plan.listeners}
    return {
        "advertisedListeners": ",".join(f"{name}:pulsar://{HOST}:{ports[number]}" for name, ports in known.items()),
        "internalListenerName": _OWN_LISTENER,
    }
