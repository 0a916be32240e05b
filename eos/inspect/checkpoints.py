"""How far a streaming query is, read from its checkpoint without Spark.

Spark writes `offsets/N` before it hands batch N to the sink, and `commits/N` after the sink has returned
(MicroBatchExecution of Spark 4.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow.fs import FileSelector, FileSystem, FileType

from eos.commit.registration import REGISTRATION, UNLOGGED, Registration, Unlogged
from eos.errors import InvalidInput
from eos.json_reader import read_json


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A query's checkpoint.

    Attributes:
        query_id: Spark's.
        begun: the newest batch that Spark planned; None before the first.
        committed: the newest batch that the query's sink returned from; None before the first.
        begun_ms: when the newest batch was planned, in milliseconds since 1970, by the driver's clock; None where
            Spark has not written it.
        registered: the sink of this project that the checkpoint belongs to; None where it has none.
        unlogged: what a sink of this project with guarantee="at-least-once" has begun last; None where none has.
    """

    query_id: str
    begun: int | None
    committed: int | None
    begun_ms: int | None
    registered: Registration | None
    unlogged: Unlogged | None = None

    @property
    def next_batch(self) -> int:
        """The batch that Spark hands over next."""
        if self.begun is None:
            return 0
        return self.begun + 1 if self.committed == self.begun else self.begun


def read_checkpoint(place: str) -> Checkpoint:
    """Read a checkpoint. Args: a folder, or an address that Arrow opens: file:, s3:, gs:, abfs:, hdfs:.

    Raises InvalidInput where there is none, and where it can't be read.
    """
    try:
        files, root = FileSystem.from_uri(place if "://" in place or ":/" in place else str(Path(place).absolute()))
        return _read(files, root.rstrip("/"), place)
    except (OSError, UnicodeError, pa.ArrowException, ImportError) as error:
        raise InvalidInput(
            f"can't read the checkpoint {place}: {str(error).splitlines()[0]}. Give a folder, or an address that "
            "begins with file:, s3:, gs:, abfs: or hdfs:. Of any other, copy the file metadata, those that begin with "
            "eos-, and the folders offsets and commits here, and give the folder of the copies."
        ) from error


def _read(files: FileSystem, root: str, place: str) -> Checkpoint:
    metadata = _text(files, f"{root}/metadata")
    if metadata is None:
        raise InvalidInput(
            f"{place} is not a checkpoint of a query. It has no file metadata. Give what the query has as its option "
            "checkpointLocation."
        )
    begun, committed = (_newest(files, f"{root}/{log}") for log in ("offsets", "commits"))
    planned = None if begun is None else _text(files, f"{root}/offsets/{begun}")
    registration, unlogged = (_text(files, f"{root}/{name}") for name in (REGISTRATION, UNLOGGED))
    try:
        return Checkpoint(
            read_json(metadata)["id"],
            begun,
            committed,
            None if planned is None else read_json(planned.splitlines()[1]).get("batchTimestampMs"),
            None if registration is None else Registration.parse(registration),
            None if unlogged is None else Unlogged.parse(unlogged),
        )
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise InvalidInput(f"the checkpoint {place} can't be read: {error!r}. Restore it from a backup.") from error


def _text(files: FileSystem, path: str) -> str | None:
    if files.get_file_info(path).type is not FileType.File:
        return None
    with files.open_input_stream(path, compression=None) as stream:
        return bytes(stream.read()).decode()


def _newest(files: FileSystem, log: str) -> int | None:
    found = files.get_file_info(FileSelector(log, allow_not_found=True))
    return max((int(one.base_name) for one in found if one.base_name.isdecimal()), default=None)
