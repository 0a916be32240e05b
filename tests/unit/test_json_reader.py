"""JSON of others: whatever the text is, a reader has its own error for it."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest

from eos.commit import control_log, failure
from eos.commit.registration import Registration, Unlogged, retained_since
from eos.credentials import key_of
from eos.errors import DamagedLog, EosError, InvalidInput
from eos.json_reader import read_json
from eos.metrics.source_report import offset_in
from eos.pulsar.net.authentication import expiry
from eos.pulsar.wire.encryption_keys import key_files

DEEP = '{"a":' * 100_000
ODD = [DEEP, "[" * 100_000, "NaN", "[-Infinity]", "1e999", "9" * 5_000, "", '{"a":1', "\ud800"]


@pytest.mark.parametrize("text", ODD)
def test_what_is_not_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011  its own words, or Python's
        read_json(text)
    assert len(str(error.value)) < 300
    with pytest.raises(ValueError):  # noqa: PT011
        read_json(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize(
    ("text", "value"), [("1.5e3", 1500.0), (b'{"a":[1,null]}', {"a": [1, None]}), ('"NaN"', "NaN")]
)
def test_json_is_read(text: str | bytes, value: object) -> None:
    assert read_json(text) == value


def test_objects_are_made_by_the_caller() -> None:
    assert read_json('{"a":{"b":1}}', tuple) == (("a", (("b", 1),)),)


READERS: list[tuple[Callable[[str], Any], type[EosError]]] = [
    (lambda text: control_log.decode(text.encode()), DamagedLog),
    (Registration.parse, DamagedLog),
    (Unlogged.parse, DamagedLog),
    (retained_since, DamagedLog),
    (failure.parse, DamagedLog),
    (key_files, InvalidInput),
    (lambda text: key_of(text, "the key file"), InvalidInput),
]


@pytest.mark.parametrize(("read", "error"), READERS)
@pytest.mark.parametrize("text", [DEEP, '{"v":1e999}', '{"jumped":[NaN,1]}', '{"markers_since":Infinity}'])
def test_each_reader_says_what_is_wrong(read: Callable[[str], Any], error: type[EosError], text: str) -> None:
    with pytest.raises(error):
        read(text)


def test_a_reader_that_may_meet_the_text_of_others_passes_it_over() -> None:
    assert offset_in(DEEP) is None
    assert expiry(b"header." + base64.urlsafe_b64encode(DEEP.encode()) + b".signature") == ""
