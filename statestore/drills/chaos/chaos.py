"""The chaos drill: run jobs on a cluster of its own, do one fault after the other, and account for all rows.

Each fault is done when the jobs have got over the one before. At the end the input stops, the jobs finish, and the
oracle reads what they have written. In any case nothing that was started is left, and the journal has an end.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import statestore
from eos.local import LocalCluster, jars, parts
from statestore.drills.admin import DrillAdmin
from statestore.drills.chaos import plan
from statestore.drills.chaos.driver import java_flags
from statestore.drills.chaos.end_to_end import COPIES, EndToEnd
from statestore.drills.chaos.fault_targets import FaultTargets
from statestore.drills.chaos.faults import FAULTS
from statestore.drills.chaos.faults.driver import EXECUTORS, LOCAL
from statestore.drills.chaos.feed import KEYS, ROWS, Feeder
from statestore.drills.chaos.job import DrillJobSettings, JobSpec
from statestore.drills.chaos.proxy import Proxy
from statestore.drills.chaos.supervisor import Running, StartRefused, Supervisor
from statestore.drills.journal import (
    AccountEvent,
    CheckEvent,
    Event,
    JobEvent,
    Journal,
    NotTested,
    PlannedFault,
    ReadersEvent,
    Sample,
    StateEvent,
)
from statestore.drills.judge import oracle, rows
from statestore.drills.judge.accounting import Expected
from statestore.drills.judge.oracle import LiveReaders
from statestore.drills.later_transactions import end_later_transactions
from statestore.drills.processes import undisturbed
from statestore.drills.record import began, record
from statestore.drills.standalone import StandaloneCluster

DRIVER_LOG = "driver.log"
WRITERS_LOG = "writers.log"
_LISTENER = "drill"
_TREE = "bk://drill/chaos"
_PARTITIONS = 3
_READERS = 2
_FEED_S = 0.5
# Spark notes a file in the source's log before it plans its batch. If it ends in between, the next batch takes that
# file and what has come since, and its rows can't be told apart: so nothing comes before all is committed.
_AHEAD = 1
_SAMPLE_S = 1.0
_SETTLE_S = (0.2, 1.0)
_TTL_S = 30.0  # the first batch of a driver takes its time on a slow machine
# Shorter than the defaults, which are for larger clusters, so that a fault shows its consequences within the drill.
_REQUEST_S = 8.0
_SESSION_S = 10.0
# With a standalone cluster nothing may be silent for longer than this.
_SILENCE_S = 6.0
# Most of a backlog is in closed ledgers then. With two copies a new ledger can be made while one bookie is gone.
_SMALL_LEDGERS = {
    "managedLedgerMaxEntriesPerLedger": 100,
    "managedLedgerMinLedgerRolloverTimeMinutes": 0,
    "managedLedgerDefaultEnsembleSize": 2,
    "managedLedgerDefaultWriteQuorum": 2,
    "managedLedgerDefaultAckQuorum": 2,
}
_NOT_TESTED = (
    NotTested("loss of power", "the local cluster doesn't fsync; SIGKILL loses nothing that the system has taken"),
    NotTested(
        "loss of a machine with its disks", "all processes share this machine. See `statestore drill total-loss`"
    ),
    NotTested("geo-replication", "Pulsar doesn't carry transactions to another cluster"),
    NotTested("a partition between brokers, bookies and ZooKeeper", "the proxies are between the jobs and the cluster"),
    NotTested("clocks that jump", "processes on one machine share its clock"),
    NotTested("authentication and TLS under faults", "the local cluster has neither"),
)

_WITHOUT_END_TO_END = NotTested(
    "jobs with a backlog", "the next file comes when the last is committed, so each batch has one. See --end-to-end"
)

_KEYS_MOVED = NotTested(
    "the order of a key's rows across partitions", "a topic got more partitions, and a key's rows go to another one"
)

Tell = Callable[[str, int], None]
"""Called with what is going on, and how many faults are over."""


@dataclass(frozen=True)
class Chaos:
    """The task of a chaos drill.

    Attributes:
        faults: the plan.
        folder: where the journal goes; it must have none.
        minutes: after these no further faults are done. None: no limit.
        rerun: the command line that does the same.
        end_to_end: whether there is a third job, from topic to topic.
        standalone: whether the jobs run on a standalone cluster of Spark, with time-outs of 6 s.
        from_bookies: whether the third job reads closed segments from the bookies. Ledgers are small then.
        pulsar: its version, one of `eos.local.jars.VERSIONS`.
    """

    faults: Sequence[PlannedFault]
    seed: int
    folder: Path
    rerun: str
    minutes: float | None = None
    end_to_end: bool = False
    standalone: bool = False
    from_bookies: bool = False
    pulsar: str = jars.PULSAR_VERSION


def run(chaos: Chaos, tell: Tell) -> Path:
    """Do the drill as `record` does, and return the path of its journal.

    Raises:
        InvalidInput: there is a journal in the folder already.
    """

    def drill(journal: Journal) -> str:
        try:
            return _drill(chaos, journal.write, tell)
        except StartRefused as error:
            journal.write(CheckEvent("jobs that nothing was done to run", False, str(error)))
            return str(error)

    return record(began("chaos", chaos.rerun, chaos.seed, chaos.faults), chaos.folder, drill)


def _drill(chaos: Chaos, write: Callable[[Event], object], tell: Tell) -> str:
    """Return why the drill ended before its plan did; "" if it didn't."""
    stack = ExitStack()
    try:
        tell("Starting two brokers, three bookies and a ZooKeeper", 0)
        stage = _set_up(stack, chaos, write, tell)
        live = _readers(stack, stage)
        if chaos.end_to_end:
            tell("Writing the backlog of the job from topic to topic", 0)
            spec, log, scratch = stage.supervisor.jobs[COPIES].spec, chaos.folder / WRITERS_LOG, stage.hold.parent
            stage.end_to_end = stack.enter_context(EndToEnd(stage.cluster.service_url, spec, log, scratch))
        tell("Starting the jobs", 0)
        stage.feeder.start()
        stack.callback(stage.feeder.stop)
        stack.enter_context(_sampling(stage, live, write))
        stage.supervisor.start()
        left = _do_faults(chaos, stage, tell)
        tell("Waiting for the jobs to finish, and accounting for their output", len(chaos.faults) - left)
        _settle(stage, live, write)
    finally:
        with undisturbed():
            stack.close()
    return f"the time was out, and {left} of {len(chaos.faults)} faults were not done" if left else ""


def _set_up(stack: ExitStack, chaos: Chaos, write: Callable[[Event], object], tell: Tell) -> FaultTargets:
    broker_links = [stack.enter_context(Proxy(in_frames=True)) for _ in range(2)]
    state_link = stack.enter_context(Proxy())
    listeners = {_LISTENER: [link.port for link in broker_links]}
    cluster = stack.enter_context(
        LocalCluster(
            listeners=listeners,
            session_s=_SILENCE_S if chaos.standalone else parts.SESSION_S,
            settings=_SMALL_LEDGERS if chaos.from_bookies else {},
            version=chaos.pulsar,
        )
    )
    for link, url in zip(broker_links, cluster.broker_urls, strict=True):
        link.target = _target(url.removeprefix("pulsar://"))
    state_link.target = _target(cluster.zookeeper)
    assert cluster.data is not None
    work = cluster.data / "drill"
    hold = work / "hold"
    hold.mkdir(parents=True)
    spark = stack.enter_context(_standalone(work)) if chaos.standalone else None
    session_s = _SILENCE_S if chaos.standalone else _SESSION_S
    specs = [_spec(cluster, "rows"), _spec(cluster, "sums", stateful=True)]
    if chaos.end_to_end:
        with DrillAdmin(cluster.admin_url) as admin:
            admin.keep_messages("public/default")  # for the last readers: the first ones acknowledge
        source = _topic(cluster, f"{COPIES}-input")
        specs.append(_spec(cluster, COPIES, source=source))
    settings = DrillJobSettings(
        service_url="pulsar://" + ",".join(f"127.0.0.1:{link.port}" for link in broker_links),
        listener=_LISTENER,
        input=str(work / "input"),
        hold=str(hold),
        scratch=str(work / "scratch"),
        master=_master(chaos.faults[0], spark),
        ttl_s=_TTL_S,
        request_timeout_s=_SILENCE_S if chaos.standalone else _REQUEST_S,
        java=java_flags(lambda line: tell(line, 0)),
        options=_state_options(f"127.0.0.1:{state_link.port}", session_s),
        admin_url=cluster.admin_url if chaos.from_bookies else None,
    )
    supervisor = Supervisor(settings, specs, chaos.folder / DRIVER_LOG)
    stack.callback(supervisor.close)
    feeder = Feeder(work / "input", lambda: supervisor.committed, _FEED_S, _AHEAD)
    for spec in specs:
        write(JobEvent(spec.job, spec.stateful, spec.topic, spec.checkpoint))
    options = _state_options(cluster.zookeeper, session_s)
    links = (broker_links, state_link)
    return FaultTargets(cluster, supervisor, feeder, *links, _TREE, options, hold, _TTL_S, write, standalone=spark)


def _readers(stack: ExitStack, stage: FaultTargets) -> Mapping[str, LiveReaders]:
    url = stage.cluster.service_url
    return {
        job: stack.enter_context(LiveReaders(url, running.spec.topic, _READERS))
        for job, running in stage.supervisor.jobs.items()
        if not running.spec.source
    }


def _do_faults(chaos: Chaos, stage: FaultTargets, tell: Tell) -> int:
    """Do the faults of the plan, each when the jobs have got over the one before; return how many are left."""
    end = float("inf") if chaos.minutes is None else time.monotonic() + 60 * chaos.minutes
    turns: Counter[str] = Counter()
    for number, fault in enumerate(chaos.faults):
        if time.monotonic() > end:
            return len(chaos.faults) - number
        tell(f"Fault {fault.n} of {len(chaos.faults)}: {fault.kind}", number)
        chance = plan.chance_of(chaos.seed, fault)
        stage.fault, stage.turn = fault, turns[fault.kind]
        turns[fault.kind] += 1
        stage.supervisor.use(_master(fault, stage.standalone))
        stage.let_pass(chance.uniform(*_SETTLE_S))
        FAULTS[fault.kind](stage, chance)
        recovery = stage.supervisor.recovery
        assert recovery is not None
        stage.supervisor.wait(lambda over=recovery: over.over, f"the jobs to get over fault {fault.n}, {fault.kind}")  # type: ignore[misc]
    return 0


def _settle(stage: FaultTargets, live: Mapping[str, LiveReaders], write: Callable[[Event], object]) -> None:
    """Let the jobs finish what there is, and account for it."""
    feeder, supervisor = stage.feeder, stage.supervisor
    feeder.stop()
    if stage.end_to_end is not None:
        stage.end_to_end.drain(supervisor)
    for job in supervisor.jobs:
        supervisor.stop(job, lambda: feeder.files)
    inputs = rows.read_input(feeder.folder)
    committed = range(feeder.files)
    for job in live:
        running, spec = supervisor.jobs[job], supervisor.jobs[job].spec
        expected = rows.stateful(inputs, committed) if spec.stateful else rows.stateless(inputs, committed)
        if job in stage.repartitioned:
            expected = replace(expected, keys_move=True)
        equal = None
        if spec.stateful:
            equal = {key: (count, total) for key, count, total in supervisor.state(job)} == rows.state(
                inputs, committed
            )
            found = statestore.snapshots(spec.checkpoint, options=stage.options)
            versions = min(len(store.versions) for store in found.stores)
            write(StateEvent(job, feeder.files - 1, versions))
        _account(stage, running, expected, live[job], equal, write)
    if stage.end_to_end is not None:
        end_later_transactions(stage.cluster.service_url, supervisor.jobs[COPIES].spec.topic)
        write(supervisor.jobs[COPIES].transactions())
        write(stage.end_to_end.account())
    for missing in (
        *_NOT_TESTED,
        *([_WITHOUT_END_TO_END] if stage.end_to_end is None else []),
        *([_KEYS_MOVED] if stage.repartitioned else []),
    ):
        write(missing)


def _account(
    stage: FaultTargets,
    running: Running,
    expected: Expected,
    live: LiveReaders,
    state_equal: bool | None,
    write: Callable[[Event], object],
) -> None:
    spec, url = running.spec, stage.cluster.service_url
    end_later_transactions(url, spec.topic)
    account, readers = oracle.judge(spec.job, url, spec.topic, expected, live, state_equal=state_equal)
    write(running.transactions())
    write(ReadersEvent(**vars(readers)))
    write(AccountEvent(**vars(account)))


@contextmanager
def _sampling(stage: FaultTargets, live: Mapping[str, LiveReaders], write: Callable[[Event], object]) -> Iterator[None]:
    """Write down about once a second how far the jobs and their readers are."""
    over = threading.Event()

    def sample() -> None:
        while not over.wait(_SAMPLE_S):
            for job, readers in live.items():
                asked = stage.feeder.files * (KEYS if stage.supervisor.jobs[job].spec.stateful else ROWS)
                write(Sample(job, asked, readers.progress.rows, readers.progress.latency_ms))
            if stage.end_to_end is not None:
                progress = stage.end_to_end.output.progress
                write(Sample(COPIES, stage.end_to_end.given, progress.rows, progress.latency_ms))

    thread = threading.Thread(target=sample, name="samples", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _spec(cluster: LocalCluster, job: str, stateful: bool = False, source: str = "") -> JobSpec:
    """Make the job's topic."""
    return JobSpec(job, stateful, _topic(cluster, job), f"drill-{job}", f"{_TREE}/{job}", source)


def _topic(cluster: LocalCluster, name: str) -> str:
    """Make a topic and return its name."""
    topic = f"persistent://public/default/drill-{name}"
    with DrillAdmin(cluster.admin_url) as admin:
        admin.create(topic, _PARTITIONS)
    return topic


def _standalone(work: Path) -> StandaloneCluster:
    return StandaloneCluster(work / "spark", memory="1200m", timeout_s=round(_SILENCE_S))


def _master(fault: PlannedFault, standalone: StandaloneCluster | None) -> str:
    """Spark's master that a fault needs."""
    if standalone is not None:
        return standalone.master
    return EXECUTORS if plan.kind_of(fault.kind).on_executors else LOCAL


def _state_options(zookeeper: str, session_s: float) -> dict[str, str]:
    return {
        "fs.bk.drill.metadata-service-uri": f"zk://{zookeeper}/ledgers",
        "fs.bk.session.timeout.ms": f"{1000 * session_s:.0f}",
    }


def _target(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)
