from __future__ import annotations

from pathlib import Path

import pytest

from eos.pulsar.protocol import diagram
from eos.pulsar.protocol.transaction import TRANSACTION


def test_the_page_in_docs_is_fresh() -> None:
    assert diagram.main(["--check"]) == 0


def test_a_stale_page_is_noticed_and_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(diagram, "PAGE", tmp_path / "protocol-states.md")
    assert diagram.main(["--check"]) == 1
    assert "is stale" in capsys.readouterr().out
    assert diagram.main([]) == 0
    assert diagram.main(["--check"]) == 0


def test_every_move_is_on_the_diagram() -> None:
    drawn = diagram.mermaid(TRANSACTION)
    for (state, what), to in TRANSACTION.moves.items():
        if to is not state:
            (arrow,) = [line for line in drawn.splitlines() if line.startswith(f"    {state.name} --> {to.name} :")]
            assert str(what) in arrow
