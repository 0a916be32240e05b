"""`eos doctor`: what holds readers up, and what the sinks of a namespace depend on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from eos.cli.connection import ConnectionOptions, Namespace, connecting
from eos.cli.console import FINDINGS, UNKNOWN, print_table, tell

if TYPE_CHECKING:
    from eos.doctor.check import Check
    from eos.doctor.doctor import Doctor, Finding
    from eos.errors import NetworkError

_SILENCE = (
    "Several partitions in a row gave no answer, so eos doctor stopped asking. See why their broker is silent, or name "
    "the topics to look at"
)


@connecting
def doctor(
    to: ConnectionOptions,
    topics: Annotated[list[str] | None, typer.Argument(help="Topics. Default: all of the namespace.")] = None,
    namespace: Namespace = "public/default",
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
    from dataclasses import asdict

    from eos.doctor.check import CheckVerdict, not_told, unknown
    from eos.doctor.checkup import checkup, job_needs, readers_not_told
    from eos.doctor.doctor import SILENT, Doctor, NotAsked, ReaderState, summary
    from eos.doctor.leftovers import Leftover, remove_leftovers
    from eos.errors import InvalidInput, NetworkError, Refused
    from eos.pulsar.net.admin import Admin
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
    check_namespace(namespace)
    cluster, admin_url = to.cluster, to.needed_admin_url
    with Client(cluster) as client, Admin(admin_url, cluster.credentials, cluster.tls) as admin:
        one = Doctor(client, admin, log_namespaces=(namespace,), note=tell)
        partitions: list[str] = []
        held_up: list[Finding] = []
        failed: dict[str, NetworkError] = {}
        checks: list[Check] = []
        removed: list[Leftover] = []
        looked = False
        alone = topics or readers or heal or leftovers
        try:
            if preflight:
                checks += job_needs(client, admin, namespace, sink, [full_name(topic) for topic in topics or ()])
            else:
                partitions = list(one.partitions(topics)) if topics else one.namespace(namespace)
                held_up, looked = one.look(partitions, failed), True
        except Refused as error:
            if alone or preflight:
                raise
            checks.append(readers_not_told(error))
        if leftovers:
            try:
                for one_left in remove_leftovers(admin, partitions):
                    removed.append(one_left)
                    tell(f"The subscription {one_left.subscription} of {one_left.topic} is deleted.")
            except NetworkError as error:
                checks.append(
                    not_told("leftovers", f"Subscriptions that killed reads have left may be there yet: {error}", error)
                )
        if heal:
            for finding in held_up:
                if finding.state is ReaderState.FROZEN and (accept_loss or not finding.loses_rows):
                    tell(_healed(one, finding, accept_loss=accept_loss))
            silent = {partition: error for partition, error in failed.items() if isinstance(error, SILENT)}
            held_up = one.look([partition for partition in partitions if partition not in silent], failed)
            failed |= silent  # each costs a time-out
        checks += _not_looked_at(failed)
        gave_up = any(isinstance(error, NotAsked) for error in failed.values())
        if gave_up and not alone:
            checks.append(unknown("sinks and brokers", f"The sinks and brokers were not looked at. {_SILENCE}"))
        elif not (alone or preflight):
            try:
                checks += checkup(client, admin, namespace)
            except NetworkError as error:
                if not looked:
                    raise
                checks.append(
                    not_told("sinks and brokers", f"The state of the brokers and sinks is not known: {error}", error)
                )
    found = [finding for finding in held_up if finding.lasts(older_than)]
    younger = len(held_up) - len(found)
    if as_json:
        held = [summary(finding) for finding in found]
        told = {"held_up": held, "younger": younger, "checks": [asdict(check) for check in checks]}
        if leftovers:
            told["removed"] = [asdict(leftover) for leftover in removed]
        print(json.dumps(told, indent=2))
    else:
        if found:
            _show_held_up(found)
        _show_checks(checks, whole=preflight)
        if looked:
            tell(_told_readers(len(partitions), len(failed), len(found), younger, older_than))
        if checks:
            tell(_told_checks(checks))
    verdicts = {check.verdict for check in checks}
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
        others = "1 other partition" if rest == 1 else f"{rest} other partitions"
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
        return f"{len(checks)} thing{'s' if len(checks) > 1 else ''} looked at: good."
    words = {
        CheckVerdict.GOOD: "good",
        CheckVerdict.CARE: "to take care of",
        CheckVerdict.UNKNOWN: "that can't be known",
    }
    told = ", ".join(f"{number[verdict]} {word}" for verdict, word in words.items() if number[verdict])
    return f"{len(checks)} thing{'s' if len(checks) > 1 else ''} looked at: {told}. --json tells of each."


def _told_readers(partitions: int, failed: int, held_up: int, younger: int, older_than: float) -> str:
    looked = f"{partitions - failed} of {partitions} partitions looked at" if failed else f"{partitions} partitions"
    held = "none held up" if held_up == 0 else f"{held_up} held up"
    if not younger:
        return f"{looked}, {held}."
    waits = "1 waits" if younger == 1 else f"{younger} wait"
    return (
        f"{looked}, {held}. {waits} for a transaction that is open for less than {older_than:g} s, as "
        "while a batch is written: --older-than 0 shows it."
    )
