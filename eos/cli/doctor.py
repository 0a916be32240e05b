"""`eos doctor`: what holds readers up, and what the sinks of a namespace depend on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from eos.cli.connection import ConnectionOptions, connecting
from eos.cli.console import FINDINGS, UNKNOWN, count, print_json, print_table, tell
from eos.commit.control_topic import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from eos.doctor.check import Check
    from eos.doctor.doctor import Doctor, Finding
    from eos.doctor.leftovers import Leftover
    from eos.errors import NetworkError
    from eos.pulsar.net.admin import Admin
    from eos.pulsar.net.client import Client

_SILENCE = (
    "Several partitions in a row gave no answer, so eos doctor stopped asking. See why their broker is silent, or name "
    "the topics to look at"
)


@connecting
def doctor(
    to: ConnectionOptions,
    topics: Annotated[list[str] | None, typer.Argument(help="Topics. Default: all of the namespace.")] = None,
    namespace: Annotated[
        str | None,
        typer.Option(
            help="tenant/namespace of the topics, or with --sink of its control topic. Default public/default, with "
            "--preflight that of the TOPICS."
        ),
    ] = None,
    older_than: Annotated[float, typer.Option(help="Pass over transactions that are open for fewer seconds.")] = 60.0,
    heal: Annotated[bool, typer.Option("--heal", help="Free frozen partitions.")] = False,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="With --heal, also where that hides committed rows, or may do so.")
    ] = False,
    readers: Annotated[
        bool, typer.Option("--readers", help="Look at readers only, as with --heal, and where topics are named.")
    ] = False,
    preflight: Annotated[
        bool, typer.Option("--preflight", help="Look at all that a job needs, and at no reader.")
    ] = False,
    leftovers: Annotated[
        bool,
        typer.Option("--remove-leftovers", help="Delete the subscriptions that killed reads have left."),
    ] = False,
    sink: Annotated[str | None, typer.Option(help="With --preflight, the name of the job's sink.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object.")] = False,
) -> None:
    """Find the partitions whose readers wait, and look at what the sinks of a namespace depend on.

    Waiting: a coordinator has the transaction open. The batch, the sink's next driver, `eos sink abort` or the time-out
    ends it. Frozen: no coordinator knows it any longer. --heal ends empty transactions there until the broker
    discards it. Without --accept-loss it does so only where a sink's control log proves that the batch is not
    committed. Control logs of the topics' namespaces are read, and of --namespace. Unrecovered: a policy keeps the
    broker from finding out which transactions are open. Readers wait until you change the policy.

    --preflight looks at this machine, the brokers, the control topic of --sink in --namespace, and the TOPICS.

    Exit codes: 0 good, 1 readers wait at the end or something needs care, 2 nothing was found out, 3 something cannot
    be known, such as what only a superuser is told.
    """
    from eos.doctor.checkup import job_needs
    from eos.doctor.doctor import Doctor
    from eos.errors import InvalidInput
    from eos.pulsar.net.client import Client
    from eos.pulsar.protocol.topics import check_namespace, full_name

    if preflight and (heal or readers or leftovers):
        raise InvalidInput("--preflight looks at no reader. Give it without --heal, --readers and --remove-leftovers")
    if sink is not None and not preflight:
        raise InvalidInput(f"--sink {sink} names the sink of a job that is to start. Give --preflight too")
    if accept_loss and not heal:
        raise InvalidInput("--accept-loss says how far --heal may go. Nothing was healed. Give --heal too, or neither")
    if not older_than >= 0:
        raise InvalidInput(f"--older-than {older_than:g} is not a number of seconds. Give 0 or more")
    named = [full_name(topic) for topic in topics or ()]
    if namespace is None:
        namespace = _namespace_of(named, sink) if preflight else DEFAULT_NAMESPACE
    check_namespace(namespace)
    seen = _Seen()
    with to.needed_admin() as admin, Client(to.cluster) as client:
        if preflight:
            seen.checks += job_needs(client, admin, namespace, sink, named)
        else:
            alone = bool(topics or readers or heal or leftovers)
            one = Doctor(client, admin, log_namespaces=(namespace,), note=tell)
            _look_at_readers(one, topics, namespace, seen, alone=alone)
            if leftovers:
                _remove_leftovers(admin, seen)
            if heal:
                _heal(one, seen, accept_loss=accept_loss)
            seen.checks += _not_looked_at(seen.failed)
            if not alone:
                _look_at_the_rest(client, admin, namespace, seen)
    found = [finding for finding in seen.held_up if finding.lasts(older_than)]
    if as_json:
        _print_json(seen, found, leftovers=leftovers)
    else:
        _show(seen, found, older_than, namespace, whole=preflight)
    _exit(seen, found)


def _namespace_of(topics: list[str], sink: str | None) -> str:
    """Return the namespace of the topics of a job, where a sink has its control topic unless it is told another one.

    Raises InvalidInput where they have several, and the control topic of a sink is to be looked at.
    """
    from eos.errors import InvalidInput
    from eos.pulsar.protocol.topics import namespace_of

    namespaces = sorted({namespace_of(topic) for topic in topics})
    if len(namespaces) > 1 and sink is not None:
        raise InvalidInput(
            f"The topics are in {' and '.join(namespaces)}, and the control topic of the sink {sink} is in one "
            "namespace. Nothing was looked at. Give it with --namespace. It is the sink's control_namespace=, or else "
            f"that of its topic=. For a sink with neither it is {DEFAULT_NAMESPACE}"
        )
    return namespaces[0] if namespaces else DEFAULT_NAMESPACE


@dataclass
class _Seen:
    """The findings of a command.

    Attributes:
        partitions: those whose readers were to be looked at.
        looked: whether they were.
        held_up: the partitions whose readers wait.
        failed: {partition that could not be looked at: why}.
        removed: the subscriptions that were deleted.
        checks: all else.
    """

    partitions: list[str] = field(default_factory=list)
    looked: bool = False
    held_up: list[Finding] = field(default_factory=list)
    failed: dict[str, NetworkError] = field(default_factory=dict)
    removed: list[Leftover] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)


def _look_at_readers(doctor: Doctor, topics: list[str] | None, namespace: str, seen: _Seen, *, alone: bool) -> None:
    """Look which readers wait. Args: alone: nothing else is looked at, so a refusal ends the command."""
    from eos.doctor.checkup import readers_not_told
    from eos.errors import Refused

    try:
        seen.partitions = list(doctor.partitions(topics)) if topics else doctor.namespace(namespace)
        seen.held_up, seen.looked = doctor.look(seen.partitions, seen.failed), True
    except Refused as error:
        if alone:
            raise
        seen.checks.append(readers_not_told(error))


def _remove_leftovers(admin: Admin, seen: _Seen) -> None:
    from eos.doctor.check import not_told
    from eos.doctor.leftovers import remove_leftovers
    from eos.errors import NetworkError

    try:
        for one in remove_leftovers(admin, seen.partitions):
            seen.removed.append(one)
            tell(f"The subscription {one.subscription} of {one.topic} is deleted.")
    except NetworkError as error:
        said = f"Subscriptions that killed reads have left may be there yet: {error}"
        seen.checks.append(not_told("leftovers", said, error))


def _heal(doctor: Doctor, seen: _Seen, *, accept_loss: bool) -> None:
    """Heal frozen partitions, and look again. Those that were silent are not asked again: each costs a time-out."""
    from eos.doctor.doctor import SILENT, ReaderState

    for finding in seen.held_up:
        if finding.state is ReaderState.FROZEN and (accept_loss or not finding.loses_rows):
            tell(_healed(doctor, finding, accept_loss=accept_loss))
    silent = {partition: error for partition, error in seen.failed.items() if isinstance(error, SILENT)}
    seen.held_up = doctor.look([partition for partition in seen.partitions if partition not in silent], seen.failed)
    seen.failed |= silent


def _look_at_the_rest(client: Client, admin: Admin, namespace: str, seen: _Seen) -> None:
    """Look at the brokers and sinks, unless they seem to be silent."""
    from eos.doctor.check import not_told, unknown
    from eos.doctor.checkup import checkup
    from eos.doctor.doctor import NotAsked
    from eos.errors import NetworkError

    about = "sinks and brokers"
    if any(isinstance(error, NotAsked) for error in seen.failed.values()):
        seen.checks.append(unknown(about, f"The sinks and brokers were not looked at. {_SILENCE}"))
        return
    try:
        seen.checks += checkup(client, admin, namespace)
    except NetworkError as error:
        if not seen.looked:
            raise
        seen.checks.append(not_told(about, f"The state of the brokers and sinks is not known: {error}", error))


def _print_json(seen: _Seen, found: list[Finding], *, leftovers: bool) -> None:
    from eos.doctor.doctor import summary

    told: dict[str, object] = {
        "held_up": [summary(finding) for finding in found],
        "younger": len(seen.held_up) - len(found),
        "checks": seen.checks,
    }
    if leftovers:
        told["removed"] = seen.removed
    print_json(told)


def _show(seen: _Seen, found: list[Finding], older_than: float, namespace: str, *, whole: bool) -> None:
    if found:
        _show_held_up(found)
    _show_checks(seen.checks, whole=whole)
    if seen.looked and not seen.partitions:
        tell(f"{namespace} has no topics, so no readers were looked at. --namespace names another namespace.")
    elif seen.looked:
        younger = len(seen.held_up) - len(found)
        tell(_told_readers(len(seen.partitions), len(seen.failed), len(found), younger, older_than))
    if seen.checks:
        tell(_told_checks(seen.checks))


def _exit(seen: _Seen, found: list[Finding]) -> None:
    from eos.doctor.check import CheckVerdict

    verdicts = {check.verdict for check in seen.checks}
    if found or CheckVerdict.CARE in verdicts:
        raise typer.Exit(FINDINGS)
    if CheckVerdict.UNKNOWN in verdicts:
        raise typer.Exit(UNKNOWN)


def _not_looked_at(failed: dict[str, NetworkError]) -> list[Check]:
    """Say of each partition that could not be looked at why, and of those that were not asked how many."""
    from eos.doctor.check import not_told, unknown
    from eos.doctor.doctor import NotAsked

    asked = {partition: error for partition, error in failed.items() if not isinstance(error, NotAsked)}
    checks = [
        not_told(f"readers of {partition}", f"Whether readers of {partition} wait is not known: {error}", error)
        for partition, error in asked.items()
    ]
    if rest := len(failed) - len(asked):
        others = count(rest, "other partition")
        checks.append(unknown(f"readers of {others}", f"Whether readers of {others} wait is not known. {_SILENCE}"))
    return checks


def _healed(doctor: Doctor, finding: Finding, *, accept_loss: bool) -> str:
    """Heal a partition, and say what came of it. One that stays frozen keeps no other from being healed."""
    from eos.errors import NetworkError

    try:
        if doctor.heal(finding, accept_loss=accept_loss):
            return f"{finding.partition} is free."
    except NetworkError as error:
        return f"{finding.partition} is not healed. {error}"
    return f"{finding.partition} is still frozen, by another transaction than at first."


def _show_held_up(found: list[Finding]) -> None:
    rows = []
    for one in found:
        whose = "not known" if one.trace is None else f"{one.trace.sink}, batch {one.trace.intent.batch_id}"
        age = "" if one.age_s is None else f"{one.age_s:.0f} s"
        rows.append((one.partition, one.state, str(one.txn or "not known"), age, whose, one.remedy))
    print_table(("partition", "state", "transaction", "open for", "whose", "what to do"), rows)


def _show_checks(checks: list[Check], *, whole: bool) -> None:
    """Print what is not good, and who owns the sinks; or the whole."""
    from eos.doctor.check import CheckVerdict
    from eos.doctor.owners import OWNER

    shown = [
        check for check in checks if whole or check.verdict is not CheckVerdict.GOOD or check.about.startswith(OWNER)
    ]
    if shown:
        rows = [(check.about, check.verdict, check.said) for check in shown]
        print_table(("about", "verdict", "what was found"), rows)


def _told_checks(checks: list[Check]) -> str:
    from eos.doctor.check import CheckVerdict

    number = {verdict: sum(check.verdict is verdict for check in checks) for verdict in CheckVerdict}
    if number[CheckVerdict.GOOD] == len(checks):
        return f"{count(len(checks), 'thing')} looked at: good."
    words = {
        CheckVerdict.GOOD: "good",
        CheckVerdict.CARE: "to take care of",
        CheckVerdict.UNKNOWN: "that can't be known",
    }
    told = ", ".join(f"{number[verdict]} {word}" for verdict, word in words.items() if number[verdict])
    return f"{count(len(checks), 'thing')} looked at: {told}. --json tells of each."


def _told_readers(partitions: int, failed: int, held_up: int, younger: int, older_than: float) -> str:
    looked = count(partitions, "partition")
    if failed:
        looked = f"{partitions - failed} of {looked} looked at"
    held = "none held up" if held_up == 0 else f"{held_up} held up"
    if not younger:
        return f"{looked}, {held}."
    waits = "1 waits" if younger == 1 else f"{younger} wait"
    return (
        f"{looked}, {held}. {waits} for a transaction that is open for less than {older_than:g} s, as "
        "while a batch is written: --older-than 0 shows it."
    )
