"""Which files of a source's log a start reads, and which it looks for in vain."""

from __future__ import annotations

from pathlib import Path

import pytest

from statestore.checkpoint import LocalFiles
from statestore.checkpoint.logs import parse_offsets
from statestore.checkpoint.sources import check_entry, clocks_of, compact_interval, source_log, source_logs
from statestore.errors import Damaged

LOGS: dict[str, tuple[list[str], list[str], list[str]]] = {
    "nothing": ([], [], []),
    "no compact one yet": (["0", "1", "2"], ["0", "1", "2"], []),
    "one, which holds all before it": (["1", "2.compact", "3"], ["2.compact", "3"], []),
    "two, of which Spark reads the distance": (
        ["2.compact", "3", "5.compact", "6"],
        ["2.compact", "5.compact", "6"],
        [],
    ),
    "more": (["9.compact", "19.compact", "29.compact", "30"], ["19.compact", "29.compact", "30"], []),
    "a hole after the newest": (["2.compact", "5.compact", "7"], ["2.compact", "5.compact", "7"], ["6"]),
    "the same number twice": (["2", "2.compact", "3"], ["2.compact", "3"], []),
    "a lost one makes the distance wrong": (
        ["2.compact", "3", "4", "6", "7", "8.compact", "9"],
        ["2.compact", "6", "7", "9"],
        ["5.compact", "8"],
    ),
    "the first compact one is lost, the second is alone": (["3", "4", "5.compact", "6"], ["5.compact", "6"], []),
    "none, though one is due": ([str(number) for number in range(11)], ["10"], ["9.compact"]),
    "not a log": ([".2.crc", "tmp"], [], []),
}


@pytest.mark.parametrize(("there", "needed", "missing"), LOGS.values(), ids=LOGS.keys())
def test_a_start_reads_the_newest_compact_file_and_what_follows(
    there: list[str], needed: list[str], missing: list[str], tmp_path: Path
) -> None:
    folder = tmp_path / "sources" / "0"
    folder.mkdir(parents=True)
    for name in there:
        (folder / name).touch()
    log = source_logs(LocalFiles(tmp_path))["sources/0"]
    assert log.files == tuple(f"sources/0/{name}" for name in needed)
    assert [gap.path for gap in log.gaps] == [f"sources/0/{name}" for name in missing]


@pytest.mark.parametrize(
    ("compact", "default", "interval"),
    [
        ([], 10, 10),
        ([5, 8], 10, 3),
        ([2], 10, 3),
        ([9], 10, 10),
        ([29], 10, 10),
        ([20], 10, 21),  # 21 has the divisors 3 and 7 only
        ([23], 10, 12),
        ([19], 10, 20),
        ([29], 4, 5),
    ],
)
def test_the_interval_is_the_one_that_spark_concludes(compact: list[int], default: int, interval: int) -> None:
    assert compact_interval(compact, default) == interval


def test_the_setting_counts_where_no_compact_file_tells(tmp_path: Path) -> None:
    (tmp_path / "sources" / "0").mkdir(parents=True)
    for number in range(11):
        (tmp_path / "sources" / "0" / str(number)).touch()
    assert source_log(LocalFiles(tmp_path), "sources/0", default=20).gaps == ()


@pytest.mark.parametrize("data", [b"", b'v1\n{"path":"file', b'v1\n{"path":"a"}\n{', b"v1\n179540788650"])
def test_an_entry_that_is_cut_short_is_damaged(data: bytes) -> None:
    with pytest.raises(Damaged):
        check_entry(data)


@pytest.mark.parametrize("data", [b"v1", b'v1\n{"path":"a"}\n{"path":"b"}', b"19", b"v1\n1795407886504"])
def test_a_whole_entry_is_fine(data: bytes) -> None:
    check_entry(data)


def test_only_a_source_that_counts_has_a_clock() -> None:
    offsets = parse_offsets("offsets/0", b'v1\n{}\n7\n{"logOffset":3}\n-')
    assert clocks_of(offsets) == ["sources/0/0"]
