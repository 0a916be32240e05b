from __future__ import annotations

import pytest

from eos.commit.registration import Registration, fits, retained_since
from eos.errors import DamagedLog, InvalidInput


def test_a_checkpoint_of_another_sink_is_refused() -> None:
    fits(None, "f", "t")
    fits(Registration("f", "t", 1), "f", "t")
    with pytest.raises(InvalidInput, match="use the old name"):
        fits(Registration("f", "t", 1), "g", "t")


@pytest.mark.parametrize(
    "registered", [Registration("f", "t", 1), Registration("f", "t", 7, 3), Registration("f", "t", 7, None, True)]
)
def test_what_a_checkpoint_remembers_survives_its_file(registered: Registration) -> None:
    assert Registration.parse(registered.text) == registered


def test_what_a_checkpoint_of_an_earlier_version_remembers_is_read() -> None:
    assert Registration.parse('{"name": "f", "control_topic": "t", "last_number": 4}') == Registration("f", "t", 4)


def test_a_damaged_registration_is_named() -> None:
    for text in ("", "[]", '{"name": "f"}', '{"name": "f", "control_topic": "t", "last_number": 4, "other": 1}'):
        with pytest.raises(DamagedLog, match=r"eos-sink\.json .* can't be read.* Restore the file from a backup"):
            Registration.parse(text)


def test_what_savepoints_need_is_read() -> None:
    assert retained_since(None) is None
    assert retained_since('{"markers_since": 7}') == 7
    for text in ("", "{}", '{"markers_since": "x"}', "[1]"):
        with pytest.raises(DamagedLog, match=r'eos-keep\.json .* can\'t be read.* Write {"markers_since": BATCH} into'):
            retained_since(text)
