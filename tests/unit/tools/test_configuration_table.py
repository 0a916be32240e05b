"""The page of all options has each option of the code once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import pytest

from eos.by_name.options import OPTIONS as WRITER_OPTIONS
from eos.sinks.options import SinkOptions
from eos.source.table import OPTIONS as SOURCE_OPTIONS
from tools import configuration_table


def test_each_option_of_each_place_is_there_once() -> None:
    rows = [row for group in configuration_table.tables().values() for row in group]
    names = [row[0] for row in rows]
    assert len(names) == len(set(names))
    assert {row[3].strip("`") for row in rows if row[3]} == {"service_url", *SinkOptions.__dataclass_fields__}
    assert {row[4].strip("`") for row in rows if row[4]} == {"service.url", *(one.name for one in WRITER_OPTIONS)}
    assert {row[5].strip("`") for row in rows if row[5]} == {one.name for one in SOURCE_OPTIONS}
    assert {row[7].strip("`") for row in rows if row[7]} >= {"EOS_SERVICE_URL", "EOS_TLS_KEY", "PULSAR_CLIENT_CONF"}


def test_a_row_has_the_type_and_the_default_of_the_code() -> None:
    rows = {row[0]: row[1:3] for group in configuration_table.tables().values() for row in group}
    assert rows["`transaction_timeout_s`"] == ("number", "`600`")
    assert rows["`chunking`"] == ("bool", "`false`")
    assert rows["`batching`"] == ("one of `default`, `key-based`, `none`", "`default`")
    assert rows["`token`"] == ("text or function", "none")
    assert rows["`observer`"] == ("function", "none")
    assert rows["`starting_offsets`"] == ("text", "stream: `latest`, batch: `earliest`")


def test_an_option_without_a_group_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = {**configuration_table.GROUPS, "Rows": ("chunking", "invented")}
    monkeypatch.setattr(configuration_table, "GROUPS", groups)
    with pytest.raises(LookupError, match=r"'batching'.*'invented'.*in no group"):
        configuration_table.tables()


@pytest.mark.parametrize(
    ("hint", "words"),
    [(str | None, "text"), (Literal["a", "b"], "one of `a`, `b`"), (Mapping[str, str], "dict"), (int, "integer")],
)
def test_a_type_in_a_users_words(hint: object, words: str) -> None:
    assert configuration_table.type_of(hint) == words
