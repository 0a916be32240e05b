"""The instances of `eos local`: what a start that fails leaves as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from eos.local import LocalError, access, certificates, instances
from eos.local.pulsar import LocalPulsar


@pytest.fixture(autouse=True)
def _fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no instance, and every start fail."""

    def fail(pulsar: LocalPulsar) -> None:
        raise LocalError("port 6650 is in use")

    monkeypatch.setenv("EOS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(LocalPulsar, "launch", fail)


def test_a_start_that_fails_leaves_the_secrets_of_earlier_data(tmp_path: Path) -> None:
    """Without them the next start would let everybody in, and the tokens of clients be worth nothing."""
    home = tmp_path / "data"
    access.require_tokens(home)
    for name in certificates.FILES:
        (home / name).write_text("made before")
    held = {path.name: path.read_bytes() for path in home.iterdir()}
    with pytest.raises(LocalError, match="is in use"):
        instances.up("other", data=home)
    assert {path.name: path.read_bytes() for path in home.iterdir()} == held


def test_a_first_start_that_fails_leaves_nothing(tmp_path: Path) -> None:
    home = tmp_path / "data"
    with pytest.raises(LocalError, match="is in use"):
        instances.up("first", data=home, asks_token=True)
    assert not home.exists()
    assert instances.known() == []
