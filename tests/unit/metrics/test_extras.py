"""Exporters whose library is not installed, and what is loaded where none is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

LIBRARIES = {"prometheus": "prometheus_client", "opentelemetry": "opentelemetry"}


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("extra", LIBRARIES)
def test_a_missing_library_is_told_with_the_command_that_installs_it(extra: str) -> None:
    said = run(
        f"import sys; sys.modules[{LIBRARIES[extra]!r}] = None\n"
        "from eos.errors import InvalidInput\n"
        f"try: import eos.metrics.{extra}\n"
        "except InvalidInput as error: print(isinstance(error, ImportError), error)"
    )
    assert said.startswith(f"True eos.metrics.{extra} needs what can't be imported here: ")
    assert f'pip install "spark-pulsar-eos[{extra}]"' in said


def test_no_exporter_is_loaded_unless_it_is_asked_for() -> None:
    loaded = run("import eos, eos.sinks.factory, eos.sinks.job, sys; print(*sys.modules)").split()
    assert "eos.metrics.observers" in loaded
    assert not {*LIBRARIES.values(), "eos.metrics.prometheus", "eos.metrics.opentelemetry"} & set(loaded)
