"""Spark's own answer beside verify's: each entry of a checkpoint is damaged in turn, and the query started on the rest.

A choice of files is looked at here, since a restart takes its time. `make soak` looks at every entry.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.statestore.damage import DAMAGES, OF_OFFSETS, Kind, entries, kind_of, look
from tests.unit.statestore.checkpoint.conftest import NAMES, unpack

KINDS = (*NAMES, "chained", "files", "files-counted", "rate")

KindOf = Callable[[str], Kind]


@pytest.fixture(scope="module")
def kind(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> KindOf:
    """A checkpoint that may be copied, by its kind."""
    folder = tmp_path_factory.mktemp("kinds")
    unpacked = unpack(folder)
    return functools.cache(lambda name: kind_of(spark, name, folder, unpacked))


SCHEMA = "0_433cce1d-0224-4ab4-8c95-e8bf12bca980"
SNAPSHOT = "6_98a570e8-369e-49d8-97d2-95fa1e45e57a.zip"
CHOICE = {
    "files": (
        ("sources", "gone"),
        ("sources/0/2.compact", "gone"),
        ("sources/0/5.compact", "gone"),
        ("sources/0/6", "cut"),
        ("commits/7", "gone"),
        ("metadata", "empty"),
    ),
    "hdfs-aggregation": (
        ("state", "gone"),
        ("state/0/0/8.delta", "gone"),
        ("state/0/0/8.delta", "cut"),
        ("state/0/0/4.snapshot", "cut"),
        ("state/0/0/_metadata/schema", "gone"),
        ("state/0/0/_metadata/schema", "cut"),
        ("state/0/_metadata/metadata", "cut"),
        ("commits/7", "gone"),
        ("offsets/8", "gone"),
        ("offsets/8", "without sources"),
        ("offsets/7", "in a source"),
    ),
    "chained": (("state/1", "gone"),),
    "changelog1-transform": (
        ("state/0/_metadata", "gone"),
        (f"state/0/_stateSchema/default/{SCHEMA}", "cut"),
        ("state/0/0/7.zip", "cut"),
    ),
    "changelog2-join": (
        ("state", "gone"),
        ("commits/7", "gone"),
        (f"state/0/0/left-keyToNumValues/{SNAPSHOT}", "gone"),
        (f"state/0/0/left-keyToNumValues/{SNAPSHOT}", "empty"),
        ("state/0/0/left-keyToNumValues/SSTs", "gone"),
    ),
    "rate": (("sources/0/0", "gone"), ("sources/0/0", "cut")),
}


def check(kind: Kind, folder: Path, damages: list[tuple[str, str]]) -> None:
    found = look(kind, folder, damages)
    different = [one for one in found if bool(one[2]) != bool(one[3])]
    assert different == [], "\n".join(f"{at} {how}: Spark: {says!r}; verify: {by}" for at, how, says, by in different)


@pytest.mark.parametrize("name", CHOICE)
def test_verify_says_what_spark_does(name: str, kind: KindOf, tmp_path: Path) -> None:
    check(kind(name), tmp_path, list(CHOICE[name]))


@pytest.mark.soak
@pytest.mark.timeout(7200)  # changelog2-join has 642 damages, each a start of some seconds on a busy machine
@pytest.mark.parametrize("name", KINDS)
def test_verify_says_what_spark_does_for_every_entry(name: str, kind: KindOf, tmp_path: Path) -> None:
    checkpoint = kind(name).checkpoint
    every = [
        (entry, damage)
        for entry in entries(checkpoint)
        for damage in (DAMAGES | OF_OFFSETS if entry.startswith("offsets/") else DAMAGES)
        if damage == "gone" or (checkpoint / entry).is_file()
    ]
    check(kind(name), tmp_path, every)
