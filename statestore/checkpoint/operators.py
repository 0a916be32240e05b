"""Which state a query keeps: its stateful operators, their stores, and the schemas of what those hold.

state/O/_metadata/metadata     v1: the stores and the number of partitions
state/O/_metadata/v2/N         v2, since batch N: also where the schemas are, as absolute addresses
state/O/_stateSchema/STORE/…   the schemas that v2 names; older operators have theirs beside the store's files
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eos.json_reader import read_json
from statestore.checkpoint.files import Files, join
from statestore.checkpoint.logs import read_offsets, read_version
from statestore.errors import Damaged, NotFound, Unreadable

STATE = "state"
PARTITIONS = "spark.sql.shuffle.partitions"
"""The setting in a batch's offsets that is the number of partitions of its state."""
DEFAULT_STORE = "default"
_FOLDER = "_stateSchema"
_SCHEMAS = f"/{_FOLDER}/"
_SCHEMA_ID = 2  # bytes
_METADATA_KNOWN, _SCHEMAS_KNOWN = 2, 3


@dataclass(frozen=True, slots=True)
class Operator:
    """A stateful operator.

    Attributes:
        name: what Spark calls it, such as stateStoreSave, dedupe, symmetricHashJoin, transformWithStateInPandasExec.
        stores: their names, in the order in which a commit lists their unique ids.
        partitions: how many; each has all stores.
        metadata: the file that says so; empty if there is none, and this was concluded from the folders.
        schemas: the files with the schemas of column families, which `metadata` names.
    """

    id: int
    name: str
    stores: tuple[str, ...]
    partitions: int
    metadata: str
    schemas: tuple[str, ...]

    def folder(self, partition: int, store: str) -> str:
        """The folder of a store."""
        return join(STATE, str(self.id), str(partition), "" if store == DEFAULT_STORE else store)


def operator_ids(files: Files) -> tuple[int, ...]:
    """Return the ids of the operators that have a folder."""
    return tuple(sorted(int(name) for name, entry in files.list(STATE).items() if name.isdecimal()))


def has_schemas(files: Files, operator: int) -> bool:
    """Whether it has a folder of schemas, which only metadata of v2 name: without these Spark can't start it."""
    return _FOLDER in files.list(join(STATE, str(operator)))


def read_operator(files: Files, operator: int, batch: int) -> Operator:
    """Return what is known about an operator as of a batch.

    Metadata of v1 is written once. Where the state was repartitioned since, the batch's offsets tell into how many. An
    operator without keys has one group: of all partitions in the metadata only the first is ever written.

    Raises:
        Damaged: its metadata can't be read.
        UnknownVersion: a newer Spark wrote it.
    """
    folder = join(STATE, str(operator))
    for name in files.list(join(folder, "_metadata")):
        if name.startswith("v"):
            read_version(join(folder, "_metadata"), name, _METADATA_KNOWN)
    newer = [int(name) for name in files.list(join(folder, "_metadata", "v2")) if name.isdecimal()]
    if newer:
        chosen = max((number for number in newer if number <= batch), default=min(newer))
        path = join(folder, "_metadata", "v2", str(chosen))
    elif "metadata" in files.list(join(folder, "_metadata")):
        path = join(folder, "_metadata", "metadata")
    else:
        return concluded(files, operator)
    said = _json(path, files.read(path))
    try:
        stores: Sequence[Mapping[str, Any]] = said["stateStoreInfo"]
        partitions = max((int(store["numPartitions"]) for store in stores), default=0)
        return Operator(
            operator,
            str(said["operatorInfo"]["operatorName"]),
            tuple(str(store["storeName"]) for store in stores),
            partitions if newer else 1 if _has_one_group(files, folder) else _partitions(files, batch, partitions),
            path,
            tuple(
                join(folder, _FOLDER, str(address).partition(_SCHEMAS)[2])
                for store in stores
                for address in store.get("stateSchemaFilePaths") or ()
            ),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged(f"{path} lacks what Spark writes there: {error}") from error


def _partitions(files: Files, batch: int, otherwise: int) -> int:
    try:
        return int(read_offsets(files, batch).conf[PARTITIONS])
    except (NotFound, Unreadable, KeyError, ValueError):
        return otherwise


def _has_one_group(files: Files, folder: str) -> bool:
    """Whether the keys of an operator's first store have no columns, as of `groupBy().count()`."""
    try:
        data = files.read(join(folder, "0", "_metadata", "schema"))
        version, at = _text(data, 0)
        if version == "v2":
            (pieces,) = struct.unpack_from(">i", data, at)
            keys = "" if pieces != 1 else _text(data, at + 4)[0]
        else:
            keys = _text(data, at)[0] if version == "v1" else ""
        return bool(keys) and read_json(keys).get("fields") == []
    except (NotFound, Damaged, struct.error, ValueError):
        return False


def moved_metadata(data: bytes, target: str) -> bytes:
    """Return the operator metadata of a checkpoint that is copied elsewhere.

    v2 names its schemas by absolute addresses: a copy would go on reading the original's. v1 is returned as it is.

    Args:
        data: the bytes of state/O/_metadata/v2/N.
        target: the address of the copy, such as bk://zk1:2181/queries/copy.

    Raises:
        Damaged: it can't be read.
    """
    version = data.partition(b"\n")[0]
    if version.strip() != b"v2":
        return data
    said = _json("the operator's metadata", data)
    try:
        home = join(target.rstrip("/"), STATE, str(said["operatorInfo"]["operatorId"])) + _SCHEMAS
        for store in said.get("stateStoreInfo") or ():
            store["stateSchemaFilePaths"] = [
                home + address.partition(_SCHEMAS)[2] for address in store.get("stateSchemaFilePaths") or ()
            ]
    except (KeyError, TypeError, AttributeError) as error:
        raise Damaged(f"the operator's metadata lacks what Spark writes there: {error}") from error
    return version + b"\n" + json.dumps(said, separators=(",", ":")).encode()


def check_schema(data: bytes) -> None:
    """Look whether the schema of a store's keys and values is whole.

    Text is written as two bytes of length and itself, a long one as the number of its pieces and these. First comes the
    version; then, in v1, two texts, and in v2 two long ones: of keys and of values. In v3 the number of column families
    comes next; each has its name, an id and a long text for keys and for values, and two long texts more: how keys are
    encoded, and what values the user sees (Spark: SchemaHelper.scala).

    Raises:
        Damaged: it is empty or cut short.
        UnknownVersion: a newer Spark wrote it.
    """
    try:
        version, at = _text(data, 0)
        if version == "v1":
            at = _text(data, _text(data, at)[1])[1]
        elif version == "v2":
            at = _long_text(data, _long_text(data, at))
        elif version == "v3":
            (families,) = struct.unpack_from(">i", data, at)
            at += 4
            for _ in range(families):
                _, at = _text(data, at)
                at = _long_text(data, _long_text(data, at + _SCHEMA_ID) + _SCHEMA_ID)
                at = _long_text(data, _long_text(data, at))
        else:
            read_version("the schema", version, _SCHEMAS_KNOWN)
            raise Damaged(f"it begins with {version[:20]!r}")
    except (struct.error, UnicodeDecodeError) as error:
        raise Damaged(f"it is empty or cut short: {error}") from error


def _long_text(data: bytes, at: int) -> int:
    """Where a text in pieces ends."""
    (pieces,) = struct.unpack_from(">i", data, at)
    at += 4
    for _ in range(pieces):
        _, at = _text(data, at)
    return at


def _text(data: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">H", data, at)
    (text,) = struct.unpack_from(f"{length}s", data, at + 2)
    return text.decode(), at + 2 + length


def concluded(files: Files, operator: int) -> Operator:
    """Return what its folders tell of an operator: before Spark 3.4 it had no metadata."""
    folder = join(STATE, str(operator))
    partitions = sorted(int(name) for name in files.list(folder) if name.isdecimal())
    stores: tuple[str, ...] = ()
    if partitions:
        below = files.list(join(folder, str(partitions[0])))
        stores = tuple(
            sorted(
                name
                for name, entry in below.items()
                if entry.is_directory and name not in ("_metadata", "SSTs", "logs")
            )
        )
    return Operator(operator, "", stores or (DEFAULT_STORE,), max(partitions, default=-1) + 1, "", ())


def _json(path: str, data: bytes) -> dict[str, Any]:
    version, _, text = data.partition(b"\n")
    read_version(path, version, _METADATA_KNOWN)
    try:
        said = read_json(text)
    except ValueError as error:
        raise Damaged(f"{path} is not the JSON that Spark writes: {error}") from error
    if not isinstance(said, dict):
        raise Damaged(f"{path} has no JSON object after its version")
    return said
