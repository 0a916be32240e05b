from __future__ import annotations

from collections.abc import Callable

import pytest

from eos.commit import failure
from eos.commit.decision import Action
from eos.commit.owner import Owner
from eos.commit.registration import (
    Registration,
    Unlogged,
    fits,
    keeps_state,
    retained_since,
    stateful_operators,
)
from eos.errors import DamagedLog, InvalidInput, NewerVersion, StaleBatch
from tests.simulation.job import CONTROL, NAME
from tests.simulation.world import Alone
from tests.unit.commit.driver import commit, owning


def test_a_checkpoint_of_another_sink_is_refused() -> None:
    fits(None, "f", "t")
    fits(Registration("f", "t", 1), "f", "t")
    with pytest.raises(InvalidInput, match="One query has one sink"):
        fits(Registration("f", "t", 1), "g", "t")


def test_a_sink_whose_control_log_was_elsewhere_is_told_how_to_keep_it_there() -> None:
    """As when topic= has moved to another namespace. The name is right, and a new checkpoint would not help."""
    before, now = (f"persistent://{namespace}/__eos-f" for namespace in ("public/default", "sales/eu"))
    with pytest.raises(
        InvalidInput, match=r'control_namespace="public/default"\. If the log must move, first let'
    ) as told:
        fits(Registration("f", before, 1), "f", now)
    assert "Give it the name" not in str(told.value)


def test_a_log_moves_after_a_whole_batch_where_the_note_of_it_is_deleted(world: Alone) -> None:
    """As out of a namespace that takes encrypted messages alone from now on."""
    owner = owning(world)
    commit(world, owner, 0, 1)
    noted = owner.registration
    owner.close()
    moved = Owner(owner.client, NAME, CONTROL.replace("public/default", "public/control"), owner.waits.settings)
    with pytest.raises(InvalidInput, match="which does not know what is committed"):
        moved.take_over("query", "run-2", noted)
    moved.take_over("query", "run-2", None)
    assert commit(world, moved, 2) == [Action.WRITE]
    moved.close()


@pytest.mark.parametrize(
    "registered",
    [
        Registration("f", "t", 1),
        Registration("f", "t", 7, 3),
        Registration("f", "t", 7, None, True),
        Registration("f", "t", 7, stateful=True),
        Registration("f", "t", 7, jumped=(4, 5)),
    ],
)
def test_what_a_checkpoint_remembers_survives_its_file(registered: Registration) -> None:
    assert Registration.parse(registered.text) == registered


@pytest.mark.parametrize("unlogged", [Unlogged(0), Unlogged(7, 2_000)])
def test_what_a_checkpoint_remembers_of_batches_without_a_log_survives_its_file(unlogged: Unlogged) -> None:
    assert Unlogged.parse(unlogged.text) == unlogged


@pytest.mark.parametrize("text", ["cut", "[]", '{"rows": 3}'])
def test_a_damaged_note_of_batches_without_a_log_is_refused(text: str) -> None:
    with pytest.raises(DamagedLog, match=r"eos-at-least-once\.json in the query's checkpoint can't be read"):
        Unlogged.parse(text)


def test_a_batch_that_was_begun_at_least_once_is_not_written_by_a_guarantee_that_writes_once() -> None:
    for batch_id in (6, 7):
        with pytest.raises(
            InvalidInput, match=rf"batch {batch_id} was begun with guarantee=\"at-least-once\".*\"exactly-once\"$"
        ):
            Unlogged(7).refuse_in_doubt(batch_id)
    Unlogged(7).refuse_in_doubt(8)


def test_what_a_checkpoint_of_an_earlier_version_remembers_is_read() -> None:
    assert Registration.parse('{"name": "f", "control_topic": "t", "last_number": 4}') == Registration("f", "t", 4)


def test_a_damaged_registration_is_named() -> None:
    for text in ("", "[]", '{"name": "f"}'):
        with pytest.raises(DamagedLog, match=r"eos-sink\.json .* can't be read.* Restore the file from a backup"):
            Registration.parse(text)


@pytest.mark.parametrize(
    ("noted", "has_state", "batch_id", "expected"),
    [
        ("no file", True, 0, True),
        ("no file", False, 0, False),
        ("no file", False, 7, None),  # lost, or of a query that keeps none: begun with an earlier version
        (None, True, 7, True),
        (None, False, 7, None),
        (True, False, 7, True),  # its folder is lost
        (True, False, 0, True),
        (False, False, 7, False),
        (False, True, 7, True),
    ],
)
def test_what_is_noted_of_state(
    noted: bool | str | None, has_state: bool, batch_id: int, expected: bool | None
) -> None:
    registered = None if isinstance(noted, str) else Registration("f", "t", 1, stateful=noted)
    assert keeps_state(registered, has_state, batch_id, described=True) is expected
    unsure = None if (noted, expected) == ("no file", False) else expected
    assert keeps_state(registered, has_state, batch_id, described=False) is unsure, "its folder may come with the tasks"


@pytest.mark.parametrize(
    ("noted", "there", "expected"), [(None, 0, None), (None, 2, 2), (2, 2, 2), (2, 1, 2), (2, 3, 3), (2, 0, 2)]
)
def test_the_number_of_operators_never_falls(noted: int | None, there: int, expected: int | None) -> None:
    registered = None if noted is None else Registration("f", "t", 1, operators=noted)
    assert stateful_operators(registered, there) == expected


def test_what_savepoints_need_is_read() -> None:
    assert retained_since(None) is None
    assert retained_since('{"markers_since": 7}') == 7
    for text in ("", "{}", '{"markers_since": "x"}', "[1]"):
        with pytest.raises(DamagedLog, match=r'eos-keep\.json .* can\'t be read.* Write {"markers_since": BATCH} into'):
            retained_since(text)


def test_a_checkpoint_that_was_rescaled_behind_the_output_writes_nothing(world: Alone, owner: Owner) -> None:
    commit(world, owner, 0, 1, 2)
    owner.close()
    owner.take_over("query", "run-2", Registration(NAME, CONTROL, 1, jumped=(2, 2)))
    assert owner.registration.jumped == (2, 2), "the next start knows it too"
    with pytest.raises(StaleBatch, match=r"holds batch 2, .* Batch 3 would write the same input again"):
        commit(world, owner, 3)
    owner.close()
    owner.take_over("query", "run-3", Registration(NAME, CONTROL, 1, jumped=(3, 3)))
    commit(world, owner, 4)
    owner.close()


@pytest.mark.parametrize(
    ("parse", "newer"),
    [
        (Registration.parse, Registration("n", "t", 1).text),
        (Unlogged.parse, Unlogged(3).text),
        (failure.parse, failure.text_of([failure.Failure("n", 3, "run", "error", 3)])),
        (retained_since, '{"markers_since": 3}'),
    ],
    ids=["registration", "at least once", "failed", "keep"],
)
def test_a_file_of_a_newer_version_is_not_told_as_damage(parse: Callable[[str], object], newer: str) -> None:
    parse(newer)
    with pytest.raises(NewerVersion, match=r"A newer version has run the query\. The file is not damaged") as told:
        parse(newer.replace("{", '{"later": 1, ', 1))
    assert isinstance(told.value, InvalidInput)
    assert not isinstance(told.value, DamagedLog)


@pytest.mark.parametrize("text", ["{", "[3]", '[{"name": "n"}]', '{"name": "n", "batch_id": "3"}'])
def test_damaged_failures_are_named(text: str) -> None:
    with pytest.raises(DamagedLog, match=r"eos-failed\.json in the query's checkpoint cannot be read"):
        failure.parse(text)
