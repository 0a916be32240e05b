from __future__ import annotations

import io
import zipfile

import pytest

from tools import check_wheel


def test_a_whole_wheel_and_sdist_have_no_findings() -> None:
    assert list(check_wheel.amiss_in_wheel(check_wheel.WHEEL_MUST_HAVE)) == []
    assert list(check_wheel.amiss_in_sdist(check_wheel.SDIST_MUST_HAVE)) == []


@pytest.mark.parametrize("name", check_wheel.WHEEL_MUST_HAVE)
def test_each_missing_file_of_the_wheel_is_found(name: str) -> None:
    (found,) = check_wheel.amiss_in_wheel([one for one in check_wheel.WHEEL_MUST_HAVE if one != name])
    assert name in found


@pytest.mark.parametrize(
    "name",
    [
        *("tests/test_x.py", "tools/x.py", "eos/tests/test_x.py", "statestore/java/pom.xml"),
        *("eos/X.java", "eos/__pycache__/x.pyc", "statestore/x.pyc"),
    ],
)
def test_what_a_wheel_must_not_have_is_found(name: str) -> None:
    (found,) = check_wheel.amiss_in_wheel([*check_wheel.WHEEL_MUST_HAVE, name])
    assert name in found


@pytest.mark.parametrize("name", ["statestore/java/target/eos-bk.jar", ".venv/bin/python", "eos/__pycache__/x.pyc"])
def test_what_a_build_left_in_the_sdist_is_found(name: str) -> None:
    (found,) = check_wheel.amiss_in_sdist([*check_wheel.SDIST_MUST_HAVE, name])
    assert name in found


def test_a_class_of_an_unknown_work_is_found_in_the_jar() -> None:
    (found,) = check_wheel.amiss_in_jar(["eos/bk/A.class", "org/apache/bookkeeper/B.class", "org/rocksdb/C.class"])
    assert "org/rocksdb/C.class" in found


def test_a_file_that_record_does_not_name_or_names_with_another_hash_is_found() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as wheel:
        wheel.writestr("eos/a.py", "a")
        wheel.writestr("eos/b.py", "b")
        wheel.writestr("x.dist-info/RECORD", "eos/a.py,sha256=wrong,1\nx.dist-info/RECORD,,\n")
    with zipfile.ZipFile(buffer) as wheel:
        assert [one.split(" for ")[1] for one in check_wheel.amiss_in_record(wheel, "x.dist-info")] == [
            "eos/a.py, or none",
            "eos/b.py, or none",
        ]
