"""The file of properties that a local broker, bookie or ZooKeeper is given."""

from __future__ import annotations

import pytest

from eos.local.settings import Setting, properties


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (True, "true"),
        (-1, "-1"),
        ("a=b c", "a=b c"),
        ("/home/jos\u00e9/d", "/home/jos\\u00e9/d"),
        ("\U0001f4be", "\\ud83d\\udcbe"),
        ("C:\\data", "C:\\\\data"),
        ("two\nlines", "two\\nlines"),
    ],
)
def test_a_value_is_written_so_that_java_reads_it_back(value: Setting, written: str) -> None:
    """Java takes such a file for Latin-1, and a backslash for the beginning of an escape."""
    assert properties({"key": value}) == f"key={written}\n"
