"""What several unit tests share: a scripted broker; a Spark session, for those of columns and of the driver path."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.spark_session import spark as spark
from tests.unit.pulsar.net.fake_broker import FakeBroker


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with FakeBroker() as fake:
        yield fake
