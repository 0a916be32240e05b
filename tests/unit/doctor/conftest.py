"""What all tests of the doctor share."""

from __future__ import annotations

import pytest

from eos.doctor import doctor


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look again at once: a fake cluster needs no time to free a partition."""
    monkeypatch.setattr(doctor, "_PAUSE_S", 0.0)
