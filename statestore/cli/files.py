"""`statestore ls | stat | cat | du | rm`: files of any scheme that Hadoop knows; more is known of those on bk://."""

from __future__ import annotations

import posixpath
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Annotated, Any

import typer

from statestore.bk import tree
from statestore.bk.address import BkAddress, is_bk
from statestore.bk.tree import NO_LEDGER, FileRecord
from statestore.cli import console
from statestore.cli.options import AsJson, HadoopOptions, parse_options
from statestore.errors import InvalidInput, NotFound
from statestore.hadoop.file_systems import Hadoop, Status

Uri = Annotated[str, typer.Argument(metavar="URI", help="bk://host:port/path, bk://NAME/path, or any of Hadoop's.")]


def ls(
    uri: Uri,
    recursive: Annotated[bool, typer.Option("--recursive", "-r", help="All files below it.")] = False,
    as_json: AsJson = False,
    option: HadoopOptions = None,
) -> None:
    """List a directory."""
    hadoop = _hadoop(uri, option)
    found = sorted(hadoop.walk(uri) if recursive else hadoop.list(uri), key=lambda one: one.path)
    if as_json:
        console.show_json([{name: value for name, value in asdict(one).items() if name != "uri"} for one in found])
        return
    rows = [
        (
            "" if one.is_directory else console.size(one.length),
            console.time_of(one.mtime_ms),
            (one.path if recursive else one.name) + ("/" if one.is_directory else ""),
        )
        for one in found
    ]
    console.print_table(("size", "modified", "name"), rows, right=("size",))


def stat(uri: Uri, as_json: AsJson = False, option: HadoopOptions = None) -> None:
    """Show a file's length and checksum, and on bk:// its ledger, entries and bookies."""
    facts = _facts(_hadoop(uri, option), uri)
    if as_json:
        console.show_json(facts)
        return
    console.print_facts({name: _text(name, value) for name, value in facts.items()})


def cat(uri: Uri, option: HadoopOptions = None) -> None:
    """Write a file's bytes to standard output, checked against their CRC."""
    for block in _hadoop(uri, option).blocks(uri):
        sys.stdout.buffer.write(block)
    sys.stdout.buffer.flush()


def du(uri: Uri, as_json: AsJson = False, option: HadoopOptions = None) -> None:
    """Add up the bytes of the files below an address, and on bk:// those of their ledgers."""
    hadoop = _hadoop(uri, option)
    top = _existing(hadoop, uri).path
    if is_bk(uri):
        address = BkAddress.parse(uri, hadoop.options)
        files = tree.files(hadoop, address)
        lengths = {path: file.length for path, file in files.items()}
        more = _held(hadoop, address, files)
    else:
        lengths, more = {one.path: one.length for one in hadoop.walk(uri)}, {}
    facts = {"files": len(lengths), "bytes": sum(lengths.values())} | more
    by_name = _sums(top, lengths)
    if as_json:
        console.show_json(facts | {"names": {name: {"files": n, "bytes": b} for name, (n, b) in by_name.items()}})
        return
    rows = [(console.size(count), files, name) for name, (files, count) in sorted(by_name.items())]
    console.print_table(("bytes", "files", "name"), rows, right=("bytes", "files"))
    console.print_facts({name: _text(name, value) for name, value in facts.items()})


def rm(
    uri: Uri,
    recursive: Annotated[bool, typer.Option("--recursive", "-r", help="A directory with all below it.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask before a checkpoint is deleted.")] = False,
    option: HadoopOptions = None,
) -> None:
    """Delete a file, or a directory. Before it deletes a query's checkpoint it asks."""
    from statestore.checkpoint.logs import is_begun
    from statestore.checkpoint.place import find_checkpoints, remove

    hadoop = _hadoop(uri, option)
    if _existing(hadoop, uri).is_directory:
        if not recursive:
            raise InvalidInput(f"{uri} is a directory: --recursive deletes it with all below it")
        found = find_checkpoints(hadoop, uri, through_links=False)
        checkpoints = [files.uri("") for files in found if not is_begun(files)]
        if checkpoints and not yes:
            _ask(checkpoints)
        for place in (*checkpoints, uri):
            remove(hadoop, place)
    else:
        hadoop.delete(uri)
    console.tell(f"{uri} is deleted." + (" Its ledgers are freed by the next round of gc." if is_bk(uri) else ""))


def _facts(hadoop: Hadoop, uri: str) -> dict[str, Any]:
    status = _existing(hadoop, uri)
    kind = "directory" if status.is_directory else "file"
    if not is_bk(uri):
        return {"path": status.path, "type": kind, "length": status.length, "mtime_ms": status.mtime_ms}
    if status.is_directory:
        names = len(hadoop.list(uri))
        return {"path": status.path, "type": kind, "names": names, "mtime_ms": status.mtime_ms}
    address = BkAddress.parse(uri, hadoop.options)
    (file,) = tree.files(hadoop, address).values()
    facts: dict[str, Any] = {
        "path": file.path,
        "type": kind,
        "length": file.length,
        "mtime_ms": file.mtime_ms,
        "crc32c": f"{file.crc32c:08x}",
        "write": file.write,
        "generation": file.generation,
        "ledger": None if file.ledger == NO_LEDGER else file.ledger,
    }
    if file.ledger == NO_LEDGER:
        return facts
    facts |= {"first_entry": file.first, "last_entry": file.last, "entry_size": file.entry_size}
    for ledger in tree.ledgers(hadoop, address, [file.ledger]).values():
        facts["ledger_sealed"] = ledger.sealed
        facts["ledger_files"] = len(ledger.references) - len(ledger.savepoints)
        facts["ledger_savepoints"] = ledger.savepoints
        if (stored := ledger.stored) is not None:
            facts["ledger_quorum"] = f"{stored.ensemble}/{stored.write_quorum}/{stored.ack_quorum}"
            facts["ledger_length"] = stored.length if stored.closed else None
            facts["ledger_bookies"] = list(stored.bookies)
    return facts


def _held(hadoop: Hadoop, address: BkAddress, files: Mapping[str, FileRecord]) -> dict[str, int]:
    """The content of the ledgers of files."""
    live: dict[int, int] = defaultdict(int)
    for file in files.values():
        if file.ledger != NO_LEDGER:
            live[file.ledger] += file.length
    stored = {id_: ledger.stored for id_, ledger in tree.ledgers(hadoop, address, live).items()}
    closed = {id_: one for id_, one in stored.items() if one is not None and one.closed}
    return {
        "ledgers": len(live),
        # Of an open ledger only the bookies know how much it holds.
        "open_ledgers": len(live) - len(closed),
        "sealed_ledgers_hold_bytes": sum(one.length for one in closed.values()),
        "of_that_below_this_address_bytes": sum(live[id_] for id_ in closed),
        "with_copies_bytes": sum(one.length * one.write_quorum for one in closed.values()),
    }


def _sums(top: str, lengths: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Files and bytes of each name directly below an address."""
    found: dict[str, tuple[int, int]] = {}
    for path, length in lengths.items():
        name = path.removeprefix(top).lstrip("/").partition("/")[0] or posixpath.basename(path)
        files, count = found.get(name, (0, 0))
        found[name] = (files + 1, count + length)
    return found


def _ask(checkpoints: list[str]) -> None:
    question = (
        f"{', '.join(checkpoints)}: a query's checkpoint. Without it the query starts from nothing, and its sink will "
        "refuse it. Delete?"
    )
    if sys.stdin is None or not sys.stdin.isatty():
        raise InvalidInput(f"{question} There is no terminal to ask at: --yes says so beforehand")
    if not console.confirmed(question):
        raise InvalidInput("Nothing was deleted")


def _existing(hadoop: Hadoop, uri: str) -> Status:
    status = hadoop.status(uri)
    if status is None:
        raise NotFound(f"{uri} does not exist")
    return status


def _hadoop(uri: str, option: list[str] | None) -> Hadoop:
    options = parse_options(option)
    if is_bk(uri):
        BkAddress.parse(uri, options)
    return Hadoop.of(options=options, make_root=False, own_jvm=True)


def _text(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name.endswith("mtime_ms"):
        return console.time_of(value)
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    if name in ("length", "ledger_length") or name.endswith("bytes"):
        return f"{console.size(value)} ({value})"
    return str(value)


COMMANDS: tuple[Callable[..., None], ...] = (ls, stat, cat, du, rm)
