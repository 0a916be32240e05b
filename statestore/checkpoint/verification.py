"""Look whether Spark would go on from a checkpoint: read every file that it needs, and compare.

Comparisons that work on any file system are in `inspection`. On `bk://` each entry of these files is asked for on each
bookie that should have a copy, too: reading alone would not notice a bad copy while there is a good one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from eos.spark.capabilities import Capability, has
from statestore.bk import tree
from statestore.bk.address import BkAddress, is_bk
from statestore.bk.replicas import Copy, LostLedger, check_copies
from statestore.bk.tree import NO_LEDGER
from statestore.checkpoint.files import HadoopFiles
from statestore.checkpoint.findings import CheckpointFinding, Severity, by_severity
from statestore.checkpoint.inspection import Inspection, Progress, inspect
from statestore.defaults import BATCHES
from statestore.hadoop.file_systems import Hadoop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Answer = Literal["yes", "no", "unknown"]

# The signs of a bookie's silence. BookKeeper's AutoRecovery makes new copies of what a lost bookie had; nothing
# replaces a bad copy on a bookie that runs.
_SILENT = ("Bookie handle is not available", "Bookie operation timeout", "Bookie protocol error")
_ABSENT = ("No such entry", "No such ledger")


@dataclass(frozen=True, slots=True)
class VerificationReport:
    """The findings of `verify`.

    Attributes:
        batches: the committed batches that were looked at.
        files: how many files were read.
        bytes: how many bytes they have.
        copies: how many copies of entries were read from bookies; None if they are not on `bk://`, or were left out.
        findings: errors first, then what is not known.
    """

    uri: str
    query_id: str | None
    batches: tuple[int, ...]
    files: int
    bytes: int
    copies: int | None
    findings: tuple[CheckpointFinding, ...]

    @property
    def answer(self) -> Answer:
        """Whether Spark would go on from here: "no" if there are errors."""
        worst = {finding.severity for finding in self.findings}
        return "no" if "error" in worst else "unknown" if "unknown" in worst else "yes"

    @property
    def ok(self) -> bool:
        """Whether Spark would go on from here for certain; there may be warnings."""
        return self.answer == "yes"


def verify(
    uri: str,
    batches: int = BATCHES,
    *,
    spark: SparkSession | None = None,
    options: Mapping[str, object] | None = None,
    replicas: bool = True,
    stateful: bool | None = None,
    operators: int | None = None,
    progress: Progress | None = None,
) -> VerificationReport:
    """Find out whether Spark can resume from a checkpoint: read and compare the files of its last batches.

    The query may run meanwhile.

    Args:
        uri: the checkpoint, on any file system that Hadoop knows.
        batches: how many of the last committed batches, 1 or more.
        spark: the session whose JVM and options to use. None: the active session's, or a new JVM.
        options: Hadoop options `fs.bk.…`.
        replicas: on bk://, also read each entry from each bookie.
        stateful: whether the query keeps state. Without this, where the checkpoint has no state and does not say that
            there should be none, nobody can know whether Spark can resume.
        operators: how many stateful operators the query has, as in `stateOperators` of its progress. Default: the
            number that `eos.sink` has noted in the checkpoint. Without that note, in checkpoint format 1, `verify`
            can't see that an operator's folder is lost. So nobody can know whether Spark can resume.
        progress: called with the done part, the whole, and what is counted.

    Raises:
        InvalidInput: an argument or option is wrong, this user may not read a file, or nothing was ever written under
            `fs.bk.root`.
        NotFound: there is no checkpoint at the address.
        Unavailable: the file system does not answer.
    """
    hadoop = Hadoop.of(spark, options, make_root=False)
    files = HadoopFiles(hadoop, uri)
    found = inspect(files, batches, progress, uri, stateful, has(Capability.REPAIRS_SNAPSHOTS), operators)
    copies, findings = None, list(found.findings)
    if replicas and is_bk(uri):
        copies, more = _replicas(hadoop, BkAddress.parse(uri, hadoop.options), found, progress)
        findings += more
    findings.sort(key=by_severity)
    size = sum(found.files.values())
    return VerificationReport(
        uri=uri,
        query_id=found.query_id,
        batches=found.batches,
        files=len(found.files),
        bytes=size,
        copies=copies,
        findings=tuple(findings),
    )


def _replicas(
    hadoop: Hadoop, address: BkAddress, found: Inspection, progress: Progress | None
) -> tuple[int, list[CheckpointFinding]]:
    fs = hadoop.file_system(address.uri)

    def ask(ledger: int, first: int, last: int) -> str:
        with hadoop.explained(f"ledger {ledger}"):
            return str(hadoop.jvm.eos.bk.Maintenance.replicas(fs, ledger, first, last))

    places = {address.at(path).path: path for path in found.files}
    records = {places[at]: record for at, record in tree.records(hadoop, address, places).items()}
    known = tree.ledgers(hadoop, address, {record.ledger for record in records.values()} - {NO_LEDGER})
    sealed = {ledger.id for ledger in known.values() if ledger.sealed}
    copies, bad, lost = check_copies(records, sealed.__contains__, ask, progress)
    return copies, [*_lost(lost), *_bad(bad)]


def _bad(copies: list[Copy]) -> Iterator[CheckpointFinding]:
    for copy in copies:
        files = ", ".join(copy.files[:3]) + (f" and {len(copy.files) - 3} more" if len(copy.files) > 3 else "")
        place = f"entry {copy.entry} of ledger {copy.ledger}"
        message = f"{copy.bookie} has no good copy of {place}: {copy.says} ({files}; {copy.good} other good)"
        silent = any(words in copy.says for words in _SILENT)
        severity: Severity = "error"
        if copy.good == 0:
            remedy = (
                f"No bookie has a good copy of {place}. Start the bookies that are down, or bring their disks back. "
                "If none can, put the files back from a copy of the checkpoint or a savepoint."
            )
        elif silent:
            severity = "warning"
            remedy = "Start the bookie. If it is gone for good, BookKeeper's AutoRecovery makes new copies elsewhere."
        elif not copy.sealed and copy.says.startswith(_ABSENT):
            severity = "warning"
            remedy = "The ledger is open, and one copy may still be on its way. Verify again in a minute."
        else:
            remedy = (
                "The other copies are read in its place. Nothing replaces it by itself. Recover the bookie "
                "(bookkeeper shell recover), or write the file again by copying the checkpoint (statestore cp)."
            )
        yield CheckpointFinding(
            severity=severity,
            kind="replica",
            message=message,
            remedy=remedy,
            file=copy.files[0],
            batches=(),
            ledger=copy.ledger,
            entry=copy.entry,
            bookie=copy.bookie,
        )


def _lost(ledgers: list[LostLedger]) -> Iterator[CheckpointFinding]:
    for ledger in ledgers:
        severity: Severity = "error"
        why = ledger.says
        remedy = "Put its files back from a copy of the checkpoint or a savepoint."
        if not ledger.gone:
            severity = "unknown"
            why = f"its copies could not be asked for ({why})"
            remedy = "Verify again when ZooKeeper and the bookies answer."
        for file in ledger.files:
            message = f"{file} is in ledger {ledger.ledger}, and {why}"
            yield CheckpointFinding(
                severity=severity,
                kind="replica",
                message=message,
                remedy=remedy,
                file=file,
                batches=(),
                ledger=ledger.ledger,
            )
