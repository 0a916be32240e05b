"""The layout of a Spark checkpoint, as typed records read through `Files`: pure, for any file system or plain folder.

files.py        what is needed of a file system
logs.py         metadata, offsets, commits, sources            operators.py   which state a query keeps
stores.py       the files of a state store and their lineage   needs.py       which files a committed batch needs
changes.py      deltas, snapshots, changelogs                  rocksdb.py     zips and SST files
compression.py  lz4, zstd and snappy streams
"""

from __future__ import annotations

from statestore.checkpoint.files import FileEntry, Files, LocalFiles
from statestore.checkpoint.logs import (
    CommitLogEntry,
    OffsetsLogEntry,
    batch_ids,
    read_commit,
    read_offsets,
    read_query_id,
)
from statestore.checkpoint.needs import Need, Needs, committed, needs_of, plain_files
from statestore.checkpoint.operators import Operator, moved_metadata, operator_ids, read_operator
from statestore.checkpoint.stores import Chain, Gap, StoreFile, store_files

__all__ = [
    "Chain",
    "CommitLogEntry",
    "FileEntry",
    "Files",
    "Gap",
    "LocalFiles",
    "Need",
    "Needs",
    "OffsetsLogEntry",
    "Operator",
    "StoreFile",
    "batch_ids",
    "committed",
    "moved_metadata",
    "needs_of",
    "operator_ids",
    "plain_files",
    "read_commit",
    "read_offsets",
    "read_operator",
    "read_query_id",
    "store_files",
]
