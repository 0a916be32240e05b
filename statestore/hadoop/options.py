"""The Hadoop options `fs.bk.…`: their names, kinds, defaults and meaning. The jar reads the same names (`Settings`)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from eos.config import FILE
from eos.credentials import is_no_path
from eos.option_names import whole_number
from statestore.errors import InvalidInput

PREFIX = "fs.bk."
SERVICE = "metadata-service-uri"
_PASSED_ON = ("zookeeper.", "bookkeeper.")
_NAMED = re.compile(rf"[A-Za-z0-9.-]+\.{SERVICE}")
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "digest": ("CRC32C", "CRC32", "MAC", "DUMMY"),
    "peers": ("none", "zookeeper", "bookies", "all"),
    "access": ("open", "creator"),
}
_SHOWN = re.compile(r"file:.+|digest:[^:]+:.+|(?!digest:)[a-z0-9]+:.+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HadoopOption:
    """One option.

    Attributes:
        kind: "count" (an integer, 0 or more), "size" (an integer, 1 or more), "share" (0 to 1), "path" (of a znode),
            "digest", "peers" or "access" (one of some words), "shown" (what a client shows ZooKeeper, or
            file:PATH of that), "file" (the path of one) or "text".
        default: as text; what the jar takes when the option is not set.
        meaning: one phrase, with the unit.
    """

    kind: str
    default: str
    meaning: str


OPTIONS: Mapping[str, HadoopOption] = {
    "ledgers": HadoopOption("path", "/ledgers", "BookKeeper's path in ZooKeeper, for bk://host:port/"),
    "root": HadoopOption("path", "/eos-bk", "path of the names in ZooKeeper, one tree of files each"),
    "ensemble": HadoopOption("count", "0", "bookies of a ledger, 0 for 3 or as many as there are"),
    "write-quorum": HadoopOption("count", "0", "copies of an entry, 0 for as many as the ensemble"),
    "ack-quorum": HadoopOption("count", "0", "copies to wait for, 0 for 2 or as many as are written"),
    "digest": HadoopOption("digest", "CRC32C", "checksum of each entry"),
    "password": HadoopOption("text", "", "password of each ledger, or file:PATH of it, a guard against mistakes"),
    "entry.bytes": HadoopOption("size", "1048576", "bytes of an entry, at most 1 MiB"),
    "window": HadoopOption("size", "16", "entries on their way at once, for a large file"),
    "pack.file.bytes": HadoopOption("count", "1048576", "files up to this share a ledger, at most 1 MiB"),
    "pack.bytes": HadoopOption("size", "67108864", "a pack of this many bytes is rolled"),
    "pack.age.ms": HadoopOption("size", "600000", "a pack of this age is rolled"),
    "pack.files": HadoopOption("size", "2000", "a pack of this many files is rolled"),
    "cache.bytes": HadoopOption(
        "count",
        "33554432",
        "heap for the read cache of small files, in each process. Files not renamed yet take up to 32 MiB more",
    ),
    "session.timeout.ms": HadoopOption("size", "30000", "ZooKeeper session timeout"),
    "patience.ms": HadoopOption(
        "size", "120000", "how long ZooKeeper, or the bookies of a file that is read, may stay away before a call fails"
    ),
    "rename.limit": HadoopOption("size", "500", "names in a directory that is renamed, at most"),
    "grace.ms": HadoopOption(
        "count", "3600000", "how long a ledger without references, or a dead writer's, is left alone"
    ),
    "maintenance.ms": HadoopOption("count", "300000", "between rounds of the sweeper, 0 for no rounds"),
    "compact.below": HadoopOption("share", "0.25", "live part of a pack below which it is compacted"),
    "zookeeper-auth": HadoopOption("shown", "", "file:PATH of digest:user:password, this client's user of ZooKeeper"),
    "zookeeper-acl": HadoopOption(
        "access", "", "names are for their creator alone (creator, the default with zookeeper-auth) or for all (open)"
    ),
    "zookeeper-readers": HadoopOption("text", "", "other users that may read: digest:user:hash, separated by commas"),
    "tls": HadoopOption("peers", "none", "servers to which the client speaks TLS (zookeeper, bookies or all)"),
    "tls.trust-certs": HadoopOption("file", "", "PEM file of the authorities that signed their certificates"),
    "tls.certificate": HadoopOption("file", "", "PEM file of a client certificate and its key, where they demand one"),
}


def checked(options: Mapping[str, object]) -> dict[str, str]:
    """Return the options as Hadoop takes them, name to text.

    Args:
        options: full names, `fs.bk.…`, to values; booleans become "true" and "false".

    Raises:
        InvalidInput: an option that does not exist, with the nearest that does, or a value of the wrong kind.
    """
    if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
        raise InvalidInput(f"options= must be a dict of options by name, such as {{'{PREFIX}ensemble': 3}}")
    found = {}
    for name, value in options.items():
        text = str(value).lower() if isinstance(value, bool) else str(value).strip()
        _check(name, text)
        found[name] = text
    return found


def value(options: Mapping[str, str], name: str) -> str:
    """Return an option by its short name ("root"), or its default."""
    return options.get(PREFIX + name, OPTIONS[name].default)


def _check(name: str, text: str) -> None:
    short = name.removeprefix(PREFIX)
    if name.startswith(PREFIX):
        if short.startswith(_PASSED_ON) or _NAMED.fullmatch(short):
            return
        option = OPTIONS.get(short)
        if option is not None:
            _check_value(name, option, text)
            return
    near = difflib.get_close_matches(short, [*OPTIONS, f"NAME.{SERVICE}"], n=1, cutoff=0.5)
    hint = f" Did you mean {PREFIX}{near[0]}?" if near else f" The options are: {', '.join(OPTIONS)}."
    raise InvalidInput(f"{name} is not an option of bk://.{hint}")


def _check_value(name: str, option: HadoopOption, text: str) -> None:
    if (option.kind == "file" or text.startswith(FILE)) and is_no_path(text):
        raise InvalidInput(
            f"{name} must name a file. It is a text such as the content of one, which is not shown here. Write the "
            "text into a file that only the job's user may read, on the machines of driver and executors"
        )
    if option.kind == "shown" and text and not _SHOWN.fullmatch(text):
        raise InvalidInput(f"{name} is neither digest:user:password nor file:PATH of that ({option.meaning})")
    if option.kind in _CHOICES:
        good, expected = text in (*_CHOICES[option.kind], option.default), " or ".join(_CHOICES[option.kind])
    else:
        fits, words = _KINDS.get(option.kind, (_anything, ""))
        good, expected = fits(text), words.format(default=option.default)
    if not good:
        raise InvalidInput(f"{name} is {text!r}; expected: {expected} ({option.meaning})")


def _anything(text: str) -> bool:
    return True


def _is_whole(text: str, least: int) -> bool:
    number = whole_number(text) if text.isascii() else None
    return number is not None and number >= least


def _is_share(text: str) -> bool:
    try:
        return 0 <= float(text) <= 1
    except ValueError:
        return False


def _is_znode(text: str) -> bool:
    return text.startswith("/") and text != "/" and not text.endswith("/")


_KINDS: Mapping[str, tuple[Callable[[str], bool], str]] = {
    "count": (partial(_is_whole, least=0), "a whole number, 0 or more"),
    "size": (partial(_is_whole, least=1), "a whole number, 1 or more"),
    "share": (_is_share, "a number from 0 to 1"),
    "path": (_is_znode, "a path in ZooKeeper such as {default}"),
}
"""{kind of option: whether a text fits, and what is expected}; any other kind takes every text."""
