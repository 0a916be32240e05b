"""`bk://` addresses: which ZooKeeper, which tree of names, which path in it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from statestore.errors import InvalidInput
from statestore.hadoop import options as fs_options
from statestore.hadoop.options import PREFIX, SERVICE

SCHEME = "bk"
_HOST = re.compile(r"(?P<host>[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::(?P<port>\d{1,5}))?")
_SERVICE = re.compile(r"zk(?:\+[a-z]+)?://(?P<servers>[^/]+)(?P<ledgers>/.+)")


@dataclass(frozen=True, slots=True)
class BkAddress:
    """A path in a tree of files on BookKeeper.

    Attributes:
        authority: the part between `bk://` and the path, `host:port` or the name of an ensemble.
        path: absolute, without a slash at its end. "/" is the root.
        servers: ZooKeeper's servers as its clients take them, `host:port,host:port`.
        ledgers: BookKeeper's path in ZooKeeper, such as "/ledgers".
        root: the path of the names in ZooKeeper, such as "/eos-bk".
        options: the Hadoop options that were given, checked.
    """

    authority: str
    path: str
    servers: str
    ledgers: str
    root: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def parse(cls, uri: str, options: Mapping[str, object] | None = None) -> BkAddress:
        """Read `bk://host:port/path` or `bk://NAME/path`.

        Args:
            uri: the address. A name needs the option `fs.bk.NAME.metadata-service-uri`.
            options: Hadoop options `fs.bk.…`.

        Raises:
            InvalidInput: not such an address, or an option that is wrong.
        """
        given = fs_options.checked(options or {})
        scheme, slashes, rest = uri.partition("://")
        if scheme != SCHEME or not slashes:
            raise InvalidInput(f"{uri} is not a bk:// address: expected bk://host:port/path, or bk://NAME/path")
        authority, _, path = rest.partition("/")
        match = _HOST.fullmatch(authority)
        if match is None:
            raise InvalidInput(
                f"{uri} has no host that Java can read. Use bk://host:port/ for one ZooKeeper, or a name of letters, "
                f"digits and hyphens for an ensemble, bk://NAME/, with its address in {PREFIX}NAME.{SERVICE}"
            )
        if match["port"]:
            servers, ledgers = authority, fs_options.value(given, "ledgers")
        else:
            servers, ledgers = _ensemble(uri, authority, given)
        return cls(authority, _normal(path), servers, ledgers, fs_options.value(given, "root"), given)

    @property
    def uri(self) -> str:
        """The address as text, as Hadoop takes it."""
        return f"{SCHEME}://{self.authority}{self.path}"

    def at(self, path: str) -> BkAddress:
        """Return another path, absolute or relative to this one, in the same tree."""
        joined = _normal(posixpath.join(self.path, path))
        return BkAddress(self.authority, joined, self.servers, self.ledgers, self.root, self.options)

    def __str__(self) -> str:
        return self.uri


def is_bk(uri: str) -> bool:
    """Whether this is a `bk://` address, well made or not."""
    return uri.startswith(f"{SCHEME}:")


def _ensemble(uri: str, name: str, options: Mapping[str, str]) -> tuple[str, str]:
    option = f"{PREFIX}{name}.{SERVICE}"
    service = options.get(option)
    if service is None:
        raise InvalidInput(
            f"{uri} has no port, and {option} is not set. It would say, for example, zk://zk1:2181;zk2:2181/ledgers"
        )
    match = _SERVICE.fullmatch(service)
    if match is None:
        raise InvalidInput(f"{option} is {service}, not of the form zk://server:port;server:port/ledgers")
    return match["servers"].replace(";", ","), match["ledgers"]


def _normal(path: str) -> str:
    return posixpath.normpath("/" + path.lstrip("/"))
