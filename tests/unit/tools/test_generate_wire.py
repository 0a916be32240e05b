"""The generated modules name the oldest protobuf that the package installs with."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("module", ["eos/pulsar/wire/pulsar_pb2.py", "eos/bookkeeper/wire/bookkeeper_pb2.py"])
def test_generated_code_runs_with_the_oldest_protobuf_that_is_allowed(module: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (protobuf,) = (one for one in map(Requirement, project["dependencies"]) if one.name == "protobuf")
    named = (ROOT / module).read_text().partition("# Protobuf Python Version: ")[2].partition("\n")[0]
    assert protobuf.specifier.contains(named)
    (oldest,) = (one.version for one in protobuf.specifier if one.operator == ">=")
    assert named == f"{oldest}.0"
