"""`statestore ls | stat | cat | du | rm`: bk:// by its names in ZooKeeper, without a JVM; the rest by Hadoop."""

from __future__ import annotations

import posixpath
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from statestore.bk.address import Address, is_bk
from statestore.bk.ledgers import read_ledgers
from statestore.bk.names import Names
from statestore.bk.records import NO_LEDGER, Directory, FileRecord, LedgerRecord
from statestore.checkpoint.logs import is_checkpoint
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
    options = parse_options(option)
    found = (
        _listed(Address.parse(uri, options), recursive) if is_bk(uri) else _listed_by_hadoop(uri, recursive, options)
    )
    if as_json:
        console.show_json([asdict(one) for one in found])
        return
    rows = [
        (
            "" if one.is_directory else console.size(one.length),
            console.moment(one.mtime_ms),
            (one.path if recursive else one.name) + ("/" if one.is_directory else ""),
        )
        for one in found
    ]
    console.show_table(("size", "modified (UTC)", "name"), rows, right=("size",))


def stat(uri: Uri, as_json: AsJson = False, option: HadoopOptions = None) -> None:
    """Show what is known of a file: length, checksum, and on bk:// its ledger, entries and bookies."""
    options = parse_options(option)
    facts = _facts(Address.parse(uri, options)) if is_bk(uri) else _facts_by_hadoop(uri, options)
    if as_json:
        console.show_json(facts)
        return
    console.show_table(("", ""), [(name.replace("_", " "), _text(name, value)) for name, value in facts.items()])


def cat(uri: Uri, option: HadoopOptions = None) -> None:
    """Write a file's bytes to standard output, checked against their CRC."""
    for block in _hadoop(uri, option).blocks(uri):
        sys.stdout.buffer.write(block)
    sys.stdout.buffer.flush()


def du(uri: Uri, as_json: AsJson = False, option: HadoopOptions = None) -> None:
    """Add up the bytes of the files below an address, and on bk:// what their ledgers hold besides."""
    options = parse_options(option)
    facts, by_name = _usage(Address.parse(uri, options)) if is_bk(uri) else _usage_by_hadoop(uri, options)
    if as_json:
        console.show_json(facts | {"names": {name: {"files": n, "bytes": b} for name, (n, b) in by_name.items()}})
        return
    rows = [(console.size(count), files, name) for name, (files, count) in sorted(by_name.items())]
    console.show_table(("bytes", "files", "name"), rows, right=("bytes", "files"))
    console.show_table(("", ""), [(name.replace("_", " "), _text(name, value)) for name, value in facts.items()])


def rm(
    uri: Uri,
    recursive: Annotated[bool, typer.Option("--recursive", "-r", help="A directory with all below it.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask before a checkpoint is deleted.")] = False,
    option: HadoopOptions = None,
) -> None:
    """Delete a file, or a directory. Before it deletes a query's checkpoint it asks."""
    hadoop = _hadoop(uri, option)
    status = hadoop.status(uri)
    if status is None:
        raise NotFound(f"{uri} does not exist")
    if status.is_directory:
        if not recursive:
            raise InvalidInput(f"{uri} is a directory: --recursive deletes it with all below it")
        checkpoints = _checkpoints(hadoop, uri)
        if checkpoints and not yes:
            _ask(checkpoints)
    hadoop.delete(uri, recursive)
    console.tell(f"{uri} is deleted." + (" Its ledgers are freed by the next round of gc." if is_bk(uri) else ""))


@dataclass(frozen=True, slots=True)
class _Line:
    name: str
    path: str
    is_directory: bool
    length: int
    mtime_ms: int


def _listed(address: Address, recursive: bool) -> list[_Line]:
    with Names.connect(address) as names:
        top = _existing(names, address)
        found: Mapping[str, FileRecord | Directory]
        if isinstance(top, FileRecord):
            found = {address.path: top}
        elif recursive:
            found = dict(names.walk(address.path))
        else:
            found = {posixpath.join(address.path, name): one for name, one in names.list(address.path).items()}
    return [_line(path, entry) for path, entry in sorted(found.items())]


def _line(path: str, entry: FileRecord | Directory) -> _Line:
    length = entry.length if isinstance(entry, FileRecord) else 0
    return _Line(posixpath.basename(path), path, isinstance(entry, Directory), length, entry.mtime_ms)


def _listed_by_hadoop(uri: str, recursive: bool, options: Mapping[str, str]) -> list[_Line]:
    hadoop = Hadoop.of(options=options)
    found: list[Status] = list(hadoop.walk(uri)) if recursive else hadoop.list(uri)
    return [_Line(one.name, one.path, one.is_directory, one.length, one.mtime_ms) for one in found]


def _facts(address: Address) -> dict[str, Any]:
    with Names.connect(address) as names:
        entry = _existing(names, address)
        if isinstance(entry, Directory):
            return {
                "path": address.path,
                "type": "directory",
                "names": len(names.list(address.path)),
                "mtime_ms": entry.mtime_ms,
            }
        facts: dict[str, Any] = {
            "path": address.path,
            "type": "file",
            "length": entry.length,
            "mtime_ms": entry.mtime_ms,
            "crc32c": f"{entry.crc32c:08x}",
            "write": entry.write,
            "generation": entry.generation,
            "ledger": None if entry.ledger == NO_LEDGER else entry.ledger,
        }
        if entry.ledger == NO_LEDGER:
            return facts
        facts |= {"first_entry": entry.first, "last_entry": entry.last, "entry_size": entry.entry_size}
        return facts | _ledger_facts(names, address, entry.ledger)


def _ledger_facts(names: Names, address: Address, ledger: int) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    node = names.zookeeper.node(names.ledger(str(ledger)))
    if node is not None:
        record = LedgerRecord.decode(ledger, node.data, tuple(names.references(ledger)))
        facts["ledger_sealed"] = record.sealed
        facts["ledger_files"] = len(record.references) - len(record.savepoints)
        facts["ledger_savepoints"] = sorted(record.savepoints)
    known = read_ledgers(names.zookeeper, address.ledgers, [ledger]).get(ledger)
    if known is not None:
        facts["ledger_quorum"] = f"{known.ensemble}/{known.write_quorum}/{known.ack_quorum}"
        facts["ledger_length"] = known.length if known.closed else None
        facts["ledger_bookies"] = sorted({bookie for members in known.bookies.values() for bookie in members})
    return facts


def _facts_by_hadoop(uri: str, options: Mapping[str, str]) -> dict[str, Any]:
    status = Hadoop.of(options=options).status(uri)
    if status is None:
        raise NotFound(f"{uri} does not exist")
    kind = "directory" if status.is_directory else "file"
    return {"path": status.path, "type": kind, "length": status.length, "mtime_ms": status.mtime_ms}


_Sums = dict[str, tuple[int, int]]


def _usage(address: Address) -> tuple[dict[str, Any], _Sums]:
    with Names.connect(address) as names:
        files = dict(names.walk(address.path))
        live: dict[int, int] = defaultdict(int)
        for record in files.values():
            if record.ledger != NO_LEDGER:
                live[record.ledger] += record.length
        known = read_ledgers(names.zookeeper, address.ledgers, live)
    sealed = {ledger: metadata for ledger, metadata in known.items() if metadata.closed}
    return {
        "files": len(files),
        "bytes": sum(record.length for record in files.values()),
        "ledgers": len(live),
        # Of an open ledger only the bookies know how much it holds.
        "open_ledgers": len(live) - len(sealed),
        "sealed_ledgers_hold_bytes": sum(metadata.length for metadata in sealed.values()),
        "of_that_below_this_address_bytes": sum(live[ledger] for ledger in sealed),
        "with_copies_bytes": sum(metadata.length * metadata.write_quorum for metadata in sealed.values()),
    }, _sums(address.path, {path: record.length for path, record in files.items()})


def _usage_by_hadoop(uri: str, options: Mapping[str, str]) -> tuple[dict[str, Any], _Sums]:
    hadoop = Hadoop.of(options=options)
    status = hadoop.status(uri)
    if status is None:
        raise NotFound(f"{uri} does not exist")
    lengths = {one.path: one.length for one in hadoop.walk(uri)}
    return {"files": len(lengths), "bytes": sum(lengths.values())}, _sums(status.path, lengths)


def _sums(top: str, lengths: Mapping[str, int]) -> _Sums:
    """Files and bytes of each name directly below an address."""
    found: _Sums = {}
    for path, length in lengths.items():
        name = path.removeprefix(top).lstrip("/").partition("/")[0] or posixpath.basename(path)
        files, count = found.get(name, (0, 0))
        found[name] = (files + 1, count + length)
    return found


def _checkpoints(hadoop: Hadoop, uri: str) -> list[str]:
    """The checkpoints at an address or directly below it."""
    found = hadoop.list(uri)
    if is_checkpoint({one.name for one in found}):
        return [uri]
    below = [one.uri for one in found if one.is_directory]
    return [one for one in below if is_checkpoint({status.name for status in hadoop.list(one)})]


def _ask(checkpoints: list[str]) -> None:
    question = (
        f"{', '.join(checkpoints)}: a query's checkpoint. Without it the query starts from nothing, and its sink will "
        "refuse it. Delete?"
    )
    if not sys.stdin.isatty():
        raise InvalidInput(f"{question} There is no terminal to ask at: --yes says so beforehand")
    if not typer.confirm(question, err=True):
        raise InvalidInput("Nothing was deleted")


def _existing(names: Names, address: Address) -> FileRecord | Directory:
    entry = names.find(address.path)
    if entry is None:
        raise NotFound(f"{address} does not exist")
    return entry


def _hadoop(uri: str, option: list[str] | None) -> Hadoop:
    options = parse_options(option)
    if is_bk(uri):
        Address.parse(uri, options)
    return Hadoop.of(options=options)


def _text(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name.endswith("mtime_ms"):
        return console.moment(value)
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    if name in ("length", "ledger_length") or name.endswith("bytes"):
        return f"{console.size(value)} ({value})"
    return str(value)


COMMANDS: tuple[Callable[..., None], ...] = (ls, stat, cat, du, rm)
