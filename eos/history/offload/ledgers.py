"""Offloaded ledgers of a location: which of Pulsar's formats a ledger has there, and its entries, verified."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import quote_plus

from eos.errors import DamagedFrame
from eos.history.offload import OffloadDamaged, OffloadMissing
from eos.history.offload.block_index import parse_index
from eos.history.offload.block_reader import BlockReader
from eos.history.offload.location import OffloadLocation
from eos.history.offload.map_file import MapFileReader
from eos.history.offload.stored_object import CHUNK_BYTES, StoredObject, storage_errors
from eos.pulsar.wire.checksum import Buffer
from eos.pulsar.wire.stored_entry import body_of


class OffloadedLedgers:
    """Reads ledgers from one location."""

    def __init__(self, location: OffloadLocation, chunk_bytes: int = CHUNK_BYTES) -> None:
        """Open nothing yet. Args: where they are; about how many bytes a request asks for, default 4 MiB."""
        self._location, self._chunk_bytes = location, chunk_bytes
        self._opened: tuple[Any, str] | None = None

    def read(self, topic: str, ledger: int, uuid: str, first: int, last: int) -> Iterator[tuple[int, Buffer]]:
        """Yield the entries `first` to `last` of a ledger in order, each with its number.

        An entry comes without its checksum, which was right. Only one chunk of the object is in memory, or one entry.

        Args: the physical topic; the ledger's id; the UUID under which it was offloaded; the entries.

        Raises OffloadError of each kind. The entries that were yielded before it are right.
        """
        with ExitStack() as opened:
            for number, stored, where in self._reader(opened, topic, ledger, uuid).read(first, last):
                try:
                    body, checked = body_of(memoryview(stored), 0, len(stored))
                except DamagedFrame as error:
                    raise OffloadDamaged(f"entry {ledger}:{number} is damaged in {where} ({error})") from error
                if not checked:
                    raise OffloadDamaged(
                        f"entry {ledger}:{number} has no checksum in {where}, which would prove it right"
                    )
                yield number, body

    def holds(self, topic: str, ledger: int, uuid: str) -> bool:
        """Return whether the ledger is at the location, in either format. Raises OffloadUnavailable."""
        files, base = self._open()
        paths = [_index(base, ledger, uuid)]
        if self._location.has_folders:
            paths.append(f"{_folder(base, topic, ledger, uuid)}/data")
        with storage_errors(base):
            return any(one.is_file for one in files.get_file_info(paths))

    def _reader(self, opened: ExitStack, topic: str, ledger: int, uuid: str) -> BlockReader | MapFileReader:
        files, base = self._open()
        index = _index(base, ledger, uuid)
        try:
            found = opened.enter_context(StoredObject(files, index))
        except OffloadMissing:
            if not self._location.has_folders:
                raise
            folder = _folder(base, topic, ledger, uuid)
            try:
                data = opened.enter_context(StoredObject(files, f"{folder}/data"))
            except OffloadMissing as error:
                raise OffloadMissing(
                    f"ledger {ledger} is not in secondary storage. Neither {index} nor {folder}/data exists"
                ) from error
            return MapFileReader(files, folder, data, self._chunk_bytes)
        blocks = parse_index(found.read(0, found.size), index)
        data = opened.enter_context(StoredObject(files, index.removesuffix("-index")))
        return BlockReader(data, blocks, self._chunk_bytes)

    def _open(self) -> tuple[Any, str]:
        if self._opened is None:
            self._opened = self._location.open()
        return self._opened


def _index(base: str, ledger: int, uuid: str) -> str:
    """Return the name of a ledger's index object. Source: Pulsar's DataBlockUtils."""
    return f"{base}/{uuid}-ledger-{ledger}-index"


def _folder(base: str, topic: str, ledger: int, uuid: str) -> str:
    """Return the folder of a ledger's MapFile. Source: Pulsar's TopicName.getPersistenceNamingEncoding."""
    scheme, _, rest = topic.partition("://")
    tenant, namespace, name = rest.split("/", 2)
    encoded = quote_plus(name, safe="*").replace("~", "%7E")  # as java.net.URLEncoder
    return f"{base}/{tenant}/{namespace}/{scheme}/{encoded}/{ledger}-{uuid}"
