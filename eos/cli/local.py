"""`eos local up | down | status | fetch`, and `kill | pause | resume | restart` for the parts of a cluster."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eos.cli.console import print_facts, print_json, print_table, tell

if TYPE_CHECKING:
    from eos.local.clusters import ClusterInstance
    from eos.local.instances import Instance

app = typer.Typer(
    no_args_is_help=True,
    help="A real Pulsar with transactions on this machine, for tests and trials.",
)

Part = Annotated[str, typer.Argument(help="zookeeper, bookie-0 to bookie-2, broker-0 or broker-1.")]
Name = Annotated[str, typer.Option("--name", "-n", help="The instance's name. Several may run side by side.")]


class Auth(StrEnum):
    """How clients show who they are."""

    NONE = "none"
    TOKEN = "token"


class PortChoice(StrEnum):
    """How ports that no option names are chosen."""

    PULSAR = "pulsar"
    AUTO = "auto"


@contextmanager
def _sigterm_is_an_end() -> Iterator[None]:
    """Let SIGTERM unwind the stack, as Ctrl-C does, so that what was begun is taken back."""

    def end(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _show(instance: Instance | ClusterInstance) -> None:
    told = instance.summary()
    print_facts({name: value for name, value in told.items() if name not in ("name", "running", "parts")})


@app.command()
def up(
    name: Name = "default",
    cluster: Annotated[
        bool, typer.Option("--cluster", help="Two brokers, three bookies and one ZooKeeper, each a process of its own.")
    ] = False,
    data: Annotated[Path | None, typer.Option(help="Folder for its data, by default in the cache folder.")] = None,
    port: Annotated[int | None, typer.Option(help="The broker's port. Default 6650, with --tls 6651.")] = None,
    http_port: Annotated[int | None, typer.Option(help="The admin API's port. Default 8080, with --tls 8443.")] = None,
    zookeeper_port: Annotated[int | None, typer.Option(help="ZooKeeper's port. Default 2181.")] = None,
    bookkeeper_port: Annotated[int | None, typer.Option(help="The bookie's port. Default 3181.")] = None,
    ports: Annotated[PortChoice, typer.Option(help="With auto, free ports for those not given.")] = PortChoice.PULSAR,
    memory: Annotated[
        str | None,
        typer.Option(
            help="Heap, and as much again outside it, as Java writes it. Default 1g, for a cluster's broker 384m."
        ),
    ] = None,
    version: Annotated[
        str, typer.Option(help="Pulsar 4.0.0, 4.2.4 or 5.0.0-M1. Every test runs with the default.")
    ] = "4.2.4",
    auth: Annotated[Auth, typer.Option(help="With token, clients need a token. `up` shows where one is.")] = Auth.NONE,
    tls: Annotated[
        bool, typer.Option("--tls", help="TLS only, by an authority of its own. `up` shows its certificate.")
    ] = False,
    setting: Annotated[list[str] | None, typer.Option(help="A broker setting, KEY=VALUE. Repeatable.")] = None,
    autorecovery: Annotated[
        bool, typer.Option("--autorecovery", help="Let a cluster's bookies copy the ledgers of a lost one.")
    ] = False,
) -> None:
    """Start Pulsar, BookKeeper and ZooKeeper, with transactions on, and wait until they answer.

    The first time, Maven fetches 330 jars, 243 MB, into the cache folder. A second run finds the running instance.
    Topics keep their data until they are deleted.

    It listens on 127.0.0.1. The ZooKeeper of the single process listens on every interface and asks for no password.
    Do not use it on a network that you do not trust.

    With --cluster a second run starts the parts that do not run. Its ports are always free ones.
    """
    from eos.local import access, instances
    from eos.local.checks import LocalError
    from eos.local.pulsar import recorded_version

    given = {"broker": port, "http": http_port, "zookeeper": zookeeper_port, "bookkeeper": bookkeeper_port}
    chosen = {key: value for key, value in given.items() if value is not None}
    access.refuse_half(_settings(setting or []))
    if cluster:
        if chosen:
            raise LocalError("A cluster's ports are always picked: leave out --port and its like")
        if auth is not Auth.NONE or tls:
            raise LocalError("--auth and --tls are for the single process: leave out --cluster")
        _up_cluster(name, data, memory, _settings(setting or []), autorecovery, version)
        return
    if autorecovery:
        raise LocalError("--autorecovery is for clusters. There is one bookie here, and nowhere to copy to")
    with _sigterm_is_an_end():
        instance, started = instances.up(
            name,
            ports=chosen,
            pick_ports=ports is PortChoice.AUTO,
            data=data,
            memory=memory or "1g",
            version=version,
            settings=_settings(setting or []),
            asks_token=auth is Auth.TOKEN,
            tls=tls,
            tell=tell,
        )
    tell(f"{name} is up. Stop it with: eos local down --name {name}" if started else f"{name} was running already.")
    if not started:
        _tell_kept(recorded_version(instance.data), version, instance.data, data, bool(memory or setting))
    if {**instance.ports.mapping(), **chosen} != instance.ports.mapping():
        tell("It runs on other ports than those asked for. Take it down first to move it.")
    if auth is Auth.TOKEN and "token" not in instance.summary():
        tell("It asks for no token. Take it down first to change that.")
    if tls and not instance.tls:
        tell("It speaks no TLS. Take it down first to change that.")
    _show(instance)
    if options := instance.connection():
        print(f"\nOptions for all commands that connect:\n{shlex.join(options)}")


def _up_cluster(
    name: str, data: Path | None, memory: str | None, settings: dict[str, str], autorecovery: bool, version: str
) -> None:
    from eos.local import clusters

    with _sigterm_is_an_end():
        instance, started = clusters.up(
            name, data=data, memory=memory, settings=settings, autorecovery=autorecovery, version=version, tell=tell
        )
    tell(f"{name} is up. Stop it with: eos local down --name {name}" if started else f"{name} was running already.")
    made = instance.found()
    other = (memory or made.memory, {**made.settings, **settings}) != (made.memory, made.settings)
    _tell_kept(made.version, version, instance.data, data, other or (autorecovery and not made.autorecovery))
    _show(instance)
    _show_parts([instance.summary()])


def _tell_kept(made_with: str, version: str, folder: Path, data: Path | None, other: bool) -> None:
    """Say which options have no effect, since the instance was there. Args: other: of its memory, or its settings."""
    if made_with != version:
        tell(f"It is of Pulsar {made_with}. Take it down first to have Pulsar {version}.")
    if data is not None and data.absolute() != folder:
        tell(f"Its data are in {folder}. Take it down first to have them elsewhere.")
    if other:
        tell("It keeps the memory and the settings that it was made with. Take it down first to change them.")


@app.command()
def down(
    context: typer.Context,
    name: Name = "default",
    keep_data: Annotated[bool, typer.Option(help="Leave the data for a later `up` with the same --data.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Every instance.")] = False,
) -> None:
    """Stop an instance and remove its data."""
    from eos.local import instances
    from eos.local.checks import LocalError

    if every and getattr(context.get_parameter_source("name"), "name", "") == "COMMANDLINE":
        raise LocalError(f"--all would take down others than {name}, too. Nothing was done. Give --name or --all")
    names = [one.name for one in instances.known()] if every else [name]
    for one in names:
        instance = instances.down(one, keep_data, tell)
        if instance is None:
            tell(f"{one} does not run.")
        else:
            tell(f"{one} is down. Its data {'stay in ' + str(instance.data) if keep_data else 'are removed'}.")


@app.command()
def status(
    name: Annotated[str | None, typer.Option("--name", "-n", help="Only the instance of this name.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list, one object for each instance.")] = False,
) -> None:
    """Show the instances that are up, and those that ended without `down`."""
    from eos.local import instances

    found = [instance.summary() for instance in instances.known() if name in (None, instance.name)]
    if as_json:
        print_json(found)
        return
    if not found:
        if name is None:
            tell("No local Pulsar is up. Start one with: eos local up")
        else:
            tell(f"No local Pulsar named {name!r} is up. Start it with: eos local up --name {name}")
        return
    rows = []
    for one in found:
        state = "running" if one["running"] else "ended"
        if not one["running"] and any(part["state"] != "ended" for part in one.get("parts", [])):
            state = "in part"
        rows.append((str(one["name"]), state, str(one["service_url"]), str(one["admin_url"])))
    print_table(("name", "state", "service url", "admin url"), rows)
    _show_parts(found)


def _show_parts(summaries: list[dict[str, Any]]) -> None:
    rows = []
    for one in summaries:
        for part in one.get("parts", []):
            pid = "" if part["pid"] is None else str(part["pid"])
            rows.append((one["name"], part["name"], part["state"], pid, part["address"]))
    if rows:
        print_table(("name", "part", "state", "pid", "address"), rows)


@app.command()
def kill(part: Part, name: Name = "default") -> None:
    """Kill one part of a cluster with SIGKILL."""
    from eos.local import clusters

    member = clusters.part(part, name)
    member.kill()
    tell(f"{part} is dead. Start it again with: eos local restart {part} --name {name}")


@app.command()
def pause(part: Part, name: Name = "default") -> None:
    """Stop one part of a cluster with SIGSTOP. It keeps its connections and does not answer."""
    from eos.local import clusters

    member = clusters.part(part, name)
    member.pause()
    tell(f"{part} is {member.state}.")


@app.command()
def resume(part: Part, name: Name = "default") -> None:
    """Let a paused part of a cluster go on."""
    from eos.local import clusters

    member = clusters.part(part, name)
    member.resume()
    tell(f"{part} is {member.state}.")


@app.command()
def restart(part: Part, name: Name = "default") -> None:
    """Kill one part of a cluster if it runs, start it on its port and data, and wait until it answers."""
    from eos.local import clusters

    clusters.restart(part, name, tell)
    tell(f"{part} is up.")


@app.command()
def fetch() -> None:
    """Fetch Pulsar's jars into the cache folder, and start a Pulsar once, so that later ones start sooner."""
    from eos.local.pulsar import keep_classes

    keep_classes(tell)


def _settings(pairs: list[str]) -> dict[str, str]:
    from eos.local.checks import LocalError

    parted = [pair.partition("=") for pair in pairs]
    wrong = [key for key, equals, _ in parted if not (key and equals)]
    if wrong:
        raise LocalError(f"--setting takes KEY=VALUE, not {wrong[0]!r}")
    return {key: value for key, _, value in parted}
