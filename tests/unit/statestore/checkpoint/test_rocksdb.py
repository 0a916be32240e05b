"""The metadata of a RocksDB snapshot, as each Spark writes them."""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import suppress
from typing import Any

import pytest

from statestore.checkpoint.rocksdb import SstTable, read_snapshot
from statestore.errors import Damaged, UnknownVersion

OF_SPARK_4_0: dict[str, Any] = {
    "sstFiles": [{"localFileName": "1.sst", "dfsSstFileName": "1-a.sst", "sizeBytes": 7}],
    "numKeys": 3,
    "numInternalKeys": 0,
}


def zipped(version: str, said: dict[str, Any]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("metadata", f"{version}\n{json.dumps(said)}")
    return data.getvalue()


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_what_spark_4_0_calls_v2_is_read_as_v1(version: str) -> None:
    """It writes stateStore.checkpointFormatVersion there, whatever the metadata are."""
    found = read_snapshot(zipped(version, OF_SPARK_4_0))
    assert (found.tables, found.keys) == ((SstTable("SSTs/1-a.sst", 7),), 3)


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("v2", OF_SPARK_4_0 | {"blobFiles": []}),
        ("v2", {"tables": []}),
        ("v2", {}),
        ("v3", OF_SPARK_4_0),
    ],
)
def test_metadata_that_may_need_files_of_another_kind_are_not_taken_for_whole(
    version: str, said: dict[str, Any]
) -> None:
    with pytest.raises(UnknownVersion, match=f"has the version {version}"):
        read_snapshot(zipped(version, said))


def test_a_zip_with_a_flipped_bit_is_damaged_or_still_read() -> None:
    whole = zipped("v1", OF_SPARK_4_0)
    damaged = 0
    for at in range(8 * len(whole)):
        data = bytearray(whole)
        data[at // 8] ^= 1 << at % 8
        with suppress(UnknownVersion):
            try:
                read_snapshot(bytes(data))
            except Damaged:
                damaged += 1
    assert damaged > 4 * len(whole)
