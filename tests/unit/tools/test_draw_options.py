"""The tables of options in docs/ are those of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from eos.sinks.options import SinkOptions
from statestore.hadoop.options import OPTIONS
from tools import draw_options


def test_each_option_is_a_row_with_its_default_and_its_words() -> None:
    rows = draw_options.sink_options().splitlines()[2:]
    names = [row.split("`")[1] for row in rows]
    assert set(names) == {"service_url", *SinkOptions.__dataclass_fields__}
    assert "| `attempts` | 5 | transactions tried for one batch before the query fails. |" in rows
    assert '| `key_hash` | `"murmur3"` | which hash of the key picks the partition: "murmur3" (Flink,' in "\n".join(
        rows
    )
    of_source = draw_options.source_options()
    assert "| `subscription` | none | streams: the durable subscription that keeps" in of_source
    assert "| `token` |" in draw_options.sink_options()
    assert "| `token` |" not in of_source
    assert "| `__key` | binary or string | the key, or null |" in draw_options.source_columns()
    figures = draw_options.sink_figures()
    assert "| `eos_sink_payload_bytes_total`<br>`eos.sink.payload`, By | `sink`, `topic` | counter: bytes of" in figures
    assert [row.split("`")[1] for row in draw_options.bk_options().splitlines()[2:]] == [f"fs.bk.{o}" for o in OPTIONS]


def test_a_table_of_the_configuration_has_the_places_where_an_option_of_it_can_be_given() -> None:
    assert "| command | variable |" in draw_options.configuration("Security").splitlines()[0]
    assert draw_options.configuration("Transactions").splitlines()[0].endswith('| `format("pulsar")` writes |')


def test_a_stale_page_is_found_and_drawn_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    before = "<!-- drawn: sink options, by tools/draw_options.py -->\n\n"
    after = "\n\n<!-- end of what is drawn -->\nafter\n"
    page.write_text(f"before\n{before}| old |{after}")
    monkeypatch.setattr(draw_options, "DOCS", page.parent)
    monkeypatch.setattr(draw_options, "DRAWN", ((page, "sink options", draw_options.sink_options),))
    assert draw_options.main(["--check"]) == 1
    assert "| old |" in page.read_text()
    assert draw_options.main([]) == 0
    assert page.read_text() == f"before\n{before}{draw_options.sink_options()}{after}"
    assert draw_options.main(["--check"]) == 0


def test_a_page_without_marks_is_said() -> None:
    with pytest.raises(SystemExit, match="lacks the marks of the table of sink options"):
        draw_options.drawn("text", "sink options", "table")
