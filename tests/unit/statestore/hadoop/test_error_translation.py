"""What is said of an address where Java throws an exception."""

from __future__ import annotations

from typing import Any

import pytest

from statestore.errors import CutFailed, Damaged, InvalidInput, NotFound, Unavailable
from statestore.hadoop.error_translation import explain


class Thrown:
    """An exception of Java's."""

    def __init__(self, name: str, message: str) -> None:
        self._name, self._message = name, message

    def getClass(self) -> Thrown:  # noqa: N802
        return self

    def getName(self) -> str:  # noqa: N802
        return self._name

    def getMessage(self) -> str:  # noqa: N802
        return self._message


def test_a_scheme_whose_jar_is_not_there_is_told_which_one() -> None:
    """What Hadoop 3.4 throws for s3a:// on a PySpark from the package index."""
    missing = "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found"
    error = explain("s3a://bucket/x", Thrown("java.lang.RuntimeException", missing))
    assert isinstance(error, Unavailable)
    assert "s3a: hadoop-aws" in str(error)
    assert "into Spark's folder jars" in str(error)


@pytest.mark.parametrize(
    ("kind", "message", "error"),
    [
        ("java.io.FileNotFoundException", "/q/commits/1 (Permission denied)", InvalidInput),
        ("java.io.FileNotFoundException", "/q/commits/1 (Read-only file system)", InvalidInput),
        ("java.io.FileNotFoundException", "/q/commits/1 (Too many open files)", Unavailable),
        ("java.io.FileNotFoundException", "/q/commits/1 (Input/output error)", Unavailable),
        ("java.io.FileNotFoundException", "/q/commits/1 (No such file or directory)", NotFound),
        ("java.io.FileNotFoundException", "File file:/q (Permission denied)/1 does not exist", NotFound),
        ("java.io.IOException", "/damaged/offsets/7 can't be read: too few bookies answer for entry 3", Unavailable),
        ("org.apache.hadoop.security.AccessControlException", "/damaged/7: every bookie refuses", InvalidInput),
        ("org.apache.hadoop.fs.FileAlreadyExistsException", "/damaged/7 already exists", InvalidInput),
        ("org.apache.hadoop.fs.ChecksumException", "Checksum error: /q/offsets/7 at 0", Damaged),
    ],
)
def test_a_file_is_missing_or_damaged_only_where_java_says_so(kind: str, message: str, error: type[Exception]) -> None:
    assert type(explain("file:///q", Thrown(kind, message))) is error


class Said(Exception):
    """What the jar throws."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def getClass(self) -> Any:  # noqa: N802
        return type("Class", (), {"getName": lambda _: "eos.bk.Failed"})()

    def getMessage(self) -> str:  # noqa: N802
        return "so it is"

    def kind(self) -> str:
        return self._kind


@pytest.mark.parametrize("error", [NotFound, InvalidInput, CutFailed, Damaged, Unavailable])
def test_the_jar_says_which_error_it_is(error: type[Exception]) -> None:
    explained = explain("bk://h:1/", Said(error.__name__))
    assert type(explained) is error
    assert str(explained) == "so it is"
