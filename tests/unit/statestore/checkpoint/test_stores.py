"""Which files make up a version of a store: the versions that can be loaded, all at once."""

from __future__ import annotations

import time
from itertools import product

from statestore.checkpoint.stores import StoreFile, chain, whole_versions

_KINDS = {"": (), "delta": ("delta",), "snapshot": ("snapshot",), "both": ("delta", "snapshot"), "other": ("zip",)}


def stored(*kinds: str) -> list[StoreFile]:
    """Files of the versions from 1 on. Args: what there is of each; "other" is a file of checkpoint format 2."""
    return [
        StoreFile(f"{version}.{one}", version, "uid" if one == "zip" else "", one, 1, 0, False)
        for version, kind in enumerate(kinds, 1)
        for one in _KINDS[kind]
    ]


def test_a_version_is_whole_where_its_chain_has_no_gap() -> None:
    for kinds in product(_KINDS, repeat=5):
        have = stored(*kinds)
        expected = [version for version in range(1, 6) if not chain("s", have, version).gaps]
        there = {file.version for file in have}
        assert list(whole_versions(have)) == [version for version in expected if version in there], kinds


def test_the_versions_of_thousands_of_batches_are_told_at_once() -> None:
    """The chain of each was made anew: 100 stores of 1,000 kept batches took more than a minute."""
    have = stored(*["delta"] * 4, "snapshot", *["delta"] * 4_995)
    began = time.process_time()
    assert whole_versions(have) == tuple(range(1, 5_001))
    assert time.process_time() - began < 1
