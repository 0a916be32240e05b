"""`eos local up | down | status | fetch`."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from eos.local import instances, jars
from eos.local.checks import LocalError
from eos.local.instances import Instance

app = typer.Typer(no_args_is_help=True, help="A real Pulsar with transactions on this machine, for tests and trials.")

Name = Annotated[str, typer.Option("--name", "-n", help="Several instances may run side by side, each with a name.")]


class PortChoice(StrEnum):
    """How ports that no option names are chosen."""

    PULSAR = "pulsar"
    AUTO = "auto"


def _tell(line: str) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(line, markup=False)


def _show(instance: Instance) -> None:
    table = Table.grid(padding=(0, 2))
    for label, value in instance.summary().items():
        if label not in ("name", "running"):
            table.add_row(label.replace("_", " "), str(value))
    Console(highlight=False, soft_wrap=True).print(table)


@app.command()
def up(
    name: Name = "default",
    data: Annotated[Path | None, typer.Option(help="Folder for its data. Default: in the cache folder.")] = None,
    port: Annotated[int | None, typer.Option(help="The broker's port. Default 6650.")] = None,
    http_port: Annotated[int | None, typer.Option(help="The admin API's port. Default 8080.")] = None,
    zookeeper_port: Annotated[int | None, typer.Option(help="ZooKeeper's port. Default 2181.")] = None,
    bookkeeper_port: Annotated[int | None, typer.Option(help="The bookie's port. Default 3181.")] = None,
    ports: Annotated[PortChoice, typer.Option(help="auto: free ports for those not given.")] = PortChoice.PULSAR,
    memory: Annotated[str, typer.Option(help="Heap, and as much again outside it, as Java writes it.")] = "1g",
    setting: Annotated[list[str] | None, typer.Option(help="A broker setting, KEY=VALUE. Repeatable.")] = None,
) -> None:
    """Start Pulsar, BookKeeper and ZooKeeper, with transactions on, and wait until they answer.

    The first time, Maven fetches 330 jars, 243 MB, into the cache folder. Run twice, it finds the running one.

    Topics keep their data until they are deleted (retention has no end). The broker listens on 127.0.0.1; ZooKeeper and
    the bookie listen on every interface and ask nobody for a password: don't use it on a network you don't trust.
    """
    given = {"broker": port, "http": http_port, "zookeeper": zookeeper_port, "bookkeeper": bookkeeper_port}
    chosen = {key: value for key, value in given.items() if value is not None}
    instance, started = instances.up(
        name,
        ports=chosen,
        pick_ports=ports is PortChoice.AUTO,
        data=data,
        memory=memory,
        settings=_settings(setting or []),
        tell=_tell,
    )
    _tell(f"{name} is up. Stop it with: eos local down --name {name}" if started else f"{name} was running already.")
    if {**instance.ports.mapping(), **chosen} != instance.ports.mapping():
        _tell("It runs on other ports than those asked for; take it down first to move it.")
    _show(instance)


@app.command()
def down(
    name: Name = "default",
    keep_data: Annotated[bool, typer.Option(help="Leave the data, for a later `up` with the same --data.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Every instance.")] = False,
) -> None:
    """Stop an instance and remove its data."""
    names = [one.name for one in instances.known()] if every else [name]
    for one in names:
        instance = instances.down(one, keep_data, _tell)
        if instance is None:
            _tell(f"{one} does not run.")
        else:
            _tell(f"{one} is down; its data {'stay in ' + str(instance.data) if keep_data else 'are removed'}.")


@app.command()
def status(
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list, one object for each instance.")] = False,
) -> None:
    """Show the instances that are up, and those that ended without `down`."""
    found = [instance.summary() for instance in instances.known()]
    if as_json:
        print(json.dumps(found, indent=2))
        return
    if not found:
        _tell("No local Pulsar is up. Start one with: eos local up")
        return
    table = Table("name", "state", "service url", "admin url")
    for one in found:
        state = "running" if one["running"] else "ended"
        table.add_row(str(one["name"]), state, str(one["service_url"]), str(one["admin_url"]))
    Console(highlight=False, soft_wrap=True).print(table)


@app.command()
def fetch() -> None:
    """Fetch Pulsar's jars into the cache folder, and start nothing."""
    jars.classpath(_tell)


def _settings(pairs: list[str]) -> dict[str, str]:
    parted = [pair.partition("=") for pair in pairs]
    wrong = [key for key, equals, _ in parted if not (key and equals)]
    if wrong:
        raise LocalError(f"--setting takes KEY=VALUE, not {wrong[0]!r}")
    return {key: value for key, _, value in parted}
