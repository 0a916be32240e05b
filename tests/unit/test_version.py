"""The version of this library, also where nothing of its installation is there."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError

import pytest

import eos
from eos import version
from eos.sinks.producer_properties import introduction


def test_modules_that_were_shipped_alone_have_no_version_and_write_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    assert eos.__version__ == version.own_version() != version.UNKNOWN
    monkeypatch.setattr(version, "version", missing)
    assert eos.__version__ == version.UNKNOWN
    assert introduction("flights", None, {}, encrypted=False).properties["eos.version"] == version.UNKNOWN
