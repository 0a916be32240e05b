"""State that may be lost without a trace: that of the last operators, or all, where nothing tells their number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from eos.commit.registration import REGISTRATION, Registration
from statestore.checkpoint import logs
from statestore.checkpoint.files import Files
from statestore.checkpoint.findings import RESTORE, CheckpointFinding
from statestore.checkpoint.needs import Needs, noted_operators, read_note
from statestore.checkpoint.operators import STATE, operator_ids
from statestore.errors import NotFound, StateStoreError, Unavailable, Unreadable

_COUNTED = "--operators N, the number of stateOperators in the query's progress"


def lost_state(
    files: Files, needs: Needs, stateful: bool | None = None, operators: int | None = None
) -> Iterator[CheckpointFinding]:
    """Yield what can't be known about the state after a batch, or is known to be lost though nothing refers to it.

    Args:
        files: the checkpoint.
        needs: what the batch needs.
        stateful, operators: as of `inspect`.
    """
    if needs.batch < 0:
        return
    if operators != 0 and not needs.stores and not any(gap.path.startswith(STATE) for gap in needs.gaps):
        yield from _no_state(files, needs.batch, stateful)
    yield from _number_of_operators(files, needs.batch, operators)


def _no_state(files: Files, batch: int, stateful: bool | None) -> Iterable[CheckpointFinding]:
    """There is no state after a batch: right for a query that keeps none."""
    known = _keeps_state(files, batch) if stateful is None else stateful
    if known is None:
        message = f"there is no state, and {_silence(files)} whether the query keeps any. If it does, Spark can't go on"
        yield CheckpointFinding("unknown", "note", message, "Say which: --stateful or --stateless.", STATE)
    elif known:
        message = "there is no state, though the query keeps one. Its folder is lost"
        yield CheckpointFinding("error", "missing", message, RESTORE, STATE)


def _number_of_operators(files: Files, batch: int, said: int | None) -> Iterable[CheckpointFinding]:
    """Without the number of operators nobody can miss the folder of the last one: it looks like a smaller query.

    A commit of checkpoint format 2 names the states of all operators, and our sink notes the number in each format.
    """
    there = len(operator_ids(files))
    if not there:
        return
    if said is not None:
        if said < there:
            message = f"there is state of {there} stateful operators, and the query is said to have {said}"
            yield CheckpointFinding("unknown", "note", message, f"Give their number: {_COUNTED}.", STATE)
        return
    with suppress(NotFound, Unreadable, Unavailable):
        if logs.read_commit(files, batch).format == 2:
            return
    if noted_operators(files) is None:
        message = (
            f"there is state of {there} stateful operator{'s' if there > 1 else ''}, and {_silence(files)} how many "
            "the query has. If it has more, their state is lost, and Spark can't go on"
        )
        yield CheckpointFinding("unknown", "note", message, f"Give their number: {_COUNTED}.", STATE)


def _keeps_state(files: Files, batch: int) -> bool | None:
    """Whether the query keeps state, if anything says so.

    Of Spark's own files only a commit of checkpoint format 2 does: offsets name the same settings for each query. Our
    sink notes it in each format.
    """
    with suppress(NotFound, Unreadable, Unavailable):
        commit = logs.read_commit(files, batch)
        if commit.format == 2:
            return bool(commit.uids)
    note = read_note(files)
    return note.stateful if isinstance(note, Registration) else None


def _silence(files: Files) -> str:
    """Why nothing tells what our sink would have noted."""
    note = read_note(files)
    if isinstance(note, StateStoreError):
        return f"{REGISTRATION} can't be read ({note}). It may say"
    return "nothing here says"
