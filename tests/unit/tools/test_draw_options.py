"""The tables of options in docs/ are those of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from eos.cli.client_conf import KEYS, read_client_conf
from eos.metrics.figures import FIGURES
from statestore.hadoop.options import OPTIONS
from tools import draw_options, output_schemas


def test_each_option_is_a_row_with_its_default_and_its_words() -> None:
    expert = draw_options.configuration("Expert")
    assert "| `attempts` | integer | `5` | yes|| | transactions tried for one batch before the query fails. |" in expert
    reading = draw_options.configuration("Reading")
    assert "| `subscription` | text | none | ||yes | streams: the durable subscription that keeps" in reading
    assert reading.startswith(
        "| option | type | default | sink|writes|reads | meaning |\n|---|---|---|---|---|---|---|\n"
    )
    security = draw_options.configuration("Security")
    assert "reads|command line|environment | meaning |\n|---|---|---|---|---|---|---|---|---|\n" in security
    assert "| yes|yes|yes|`--token`|`EOS_TOKEN` |" in security
    assert "| `principal` | text | none | yes|||| | the role" in security
    assert "| `__key` | binary or string | the key, or null |" in draw_options.source_columns()
    figures = draw_options.figures(FIGURES)
    assert "| `eos_sink_payload_bytes_total`<br>`eos.sink.payload`, By | `sink`, `topic` | counter: bytes of" in figures
    assert [row.split("`")[1] for row in draw_options.bk_options().splitlines()[2:]] == [f"fs.bk.{o}" for o in OPTIONS]


def test_a_key_of_a_client_conf_stands_beside_the_options_that_it_gives(tmp_path: Path) -> None:
    rows = [row.strip("| ").split(" | ") for row in draw_options.connection_options().splitlines()[2:]]
    keys = {row[0].split("`")[1]: row[2].strip("`") for row in rows if len(row) == 3}
    assert len(rows) - len(keys) == 2  # --client-conf and --subscription-prefix have none
    values = dict.fromkeys(KEYS.values(), "true") | {"authPlugin": "token\nauthParams=t"}
    for option, key in keys.items():
        conf = tmp_path / "client.conf"
        conf.write_text(f"{key}={values[key]}")
        name = "token" if key == "authPlugin" else option.removeprefix("--").replace("-", "_")
        assert getattr(read_client_conf(conf), name) is not None, option
    assert {option for option, key in keys.items() if key == "authPlugin"} == {"--token", "--basic", "--oauth2"}


def test_a_stale_page_is_found_and_drawn_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    before = "<!-- drawn: primitive types, by tools/draw_options.py -->\n\n"
    after = "\n\n<!-- end of what is drawn -->\nafter\n"
    page.write_text(f"before\n{before}| old |{after}")
    monkeypatch.setattr(draw_options, "DOCS", page.parent)
    monkeypatch.setattr(draw_options, "DRAWN", ((page, "primitive types", draw_options.primitive_types),))
    gone = tmp_path / "docs" / "json" / "eos-read.json"
    gone.parent.mkdir()
    gone.write_text("{}")
    monkeypatch.setattr(output_schemas, "FOLDER", gone.parent)
    assert draw_options.main(["--check"]) == 1
    assert "| old |" in page.read_text()
    assert draw_options.main([]) == 0
    assert page.read_text() == f"before\n{before}{draw_options.primitive_types()}{after}"
    assert [one.name for one in sorted(gone.parent.iterdir())] == sorted(map(name_of, output_schemas.OUTPUTS))
    assert draw_options.main(["--check"]) == 0
    output_schemas.file_of("eos lag").write_text("{}")
    assert draw_options.main(["--check"]) == 1


def name_of(command: str) -> str:
    return f"{command.replace(' ', '-')}.json"


def test_a_page_without_marks_is_said() -> None:
    with pytest.raises(SystemExit, match="lacks the marks of the table of primitive types"):
        draw_options.drawn("text", "primitive types", "table")
