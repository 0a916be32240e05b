"""One script of SQL on the catalog, by each door that Spark has to SQL, with the Spark of this environment.

`make matrix` runs the same script on older Sparks.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from eos.local import LocalPulsar
from tests.matrix.catalog import DOORS
from tests.matrix.smoke import Smoke

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("door", DOORS)
def test_the_script_gives_the_same_by_each_door(pulsar: LocalPulsar, tmp_path: Path, door: str) -> None:
    smoke = Smoke(sys.executable, pulsar.service_url, pulsar.admin_url, "", tmp_path)
    problem = smoke.by_sql(door)
    assert not problem, (tmp_path / f"catalog-{door}.log").read_text(errors="replace")[-4_000:]
