"""The notes of a sink in a query's checkpoint folder: a few small files."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Final

from eos.errors import DamagedLog, InvalidInput, NewerVersion
from eos.json_reader import read_json

REGISTRATION: Final = "eos-sink.json"
"""The file in the query's checkpoint folder that holds a `Registration`."""

KEEP: Final = "eos-keep.json"
"""The file in the query's checkpoint folder that says which markers savepoints need: {"markers_since": batch}."""

UNLOGGED: Final = "eos-at-least-once.json"
"""The file in the query's checkpoint folder that holds an `Unlogged`."""


@dataclass(frozen=True, slots=True)
class Registration:
    """The note of the query's checkpoint about its control log.

    Attributes:
        name: the sink's.
        control_topic: where the log was.
        last_number: the number of a record that was readable at that time: it must be there for ever.
        rolls_forward_from: None: no. Otherwise the state is older than the output. Then batches from this one on run
            without being written, where the log has their MARKER with the same offsets.
        shadow: the checkpoint is a copy beside a live query: its runs write nothing at all, and take nothing over.
        stateful: whether the query keeps state; None: not known (`keeps_state`).
            Spark itself says it in checkpoint format 2 alone: a lost folder of state looks like a query without any.
        jumped: the first and the last of the batches in whose place the state was rewritten, as when it is rescaled:
            they read no input. Output that holds one of them is ahead of the state. None: there are none.
        operators: how many stateful operators the query has at least; None: not known. In checkpoint format 1 Spark
            itself says it nowhere: a lost folder of the last operator looks like a query without that operator.
    """

    name: str
    control_topic: str
    last_number: int
    rolls_forward_from: int | None = None
    shadow: bool = False
    stateful: bool | None = None
    jumped: tuple[int, int] | None = None
    operators: int | None = None

    @property
    def text(self) -> str:
        """The text of its file."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> Registration:
        """Read the text of its file. Raises DamagedLog, NewerVersion."""
        refuse_newer(text, cls.__slots__, REGISTRATION)
        try:
            said = read_json(text)
            if said.get("jumped") is not None:
                first, last = said["jumped"]
                said["jumped"] = (int(first), int(last))
            return cls(**said)
        except (ValueError, TypeError, AttributeError) as error:
            raise DamagedLog(
                f"{REGISTRATION} in the query's checkpoint can't be read: {error}. It tells which control log belongs "
                "to this checkpoint. Restore the file from a backup of the checkpoint."
            ) from error


@dataclass(frozen=True, slots=True)
class Unlogged:
    """The note of the query's checkpoint about batches written at least once, which no control log has.

    Attributes:
        begun: the newest batch that was begun: its rows may be visible, once or more.
        rows: of the last batch that was written whole; None: not known.
    """

    begun: int
    rows: int | None = None

    @property
    def text(self) -> str:
        """The text of its file."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> Unlogged:
        """Read the text of its file. Raises DamagedLog, NewerVersion."""
        refuse_newer(text, cls.__slots__, UNLOGGED)
        try:
            return cls(**read_json(text))
        except (ValueError, TypeError) as error:
            raise DamagedLog(
                f"{UNLOGGED} in the query's checkpoint can't be read: {error}. It tells which batch was begun last"
                ' with guarantee="at-least-once". Restore the file from a backup of the checkpoint.'
            ) from error

    def refuse_in_doubt(self, batch_id: int) -> None:
        """Refuse to write a batch exactly once that may be visible already. Raises InvalidInput.

        A later one may be written: Spark hands it over only after it has noted the end of those before.
        """
        if batch_id <= self.begun:
            raise InvalidInput(
                f'batch {batch_id} was begun with guarantee="at-least-once", and Spark did not note its end. Its rows'
                " may be visible, no control log tells, and written once more they would be there twice. Start the"
                ' query with guarantee="at-least-once" again and let it end in good order, as'
                ' trigger(availableNow=True) does. Then start it with "exactly-once"'
            )


def refuse_newer(text: str, known: Collection[str], file: str) -> None:
    """Refuse a file of a checkpoint with fields that this version does not know: it is whole. Raises NewerVersion."""
    try:
        said = read_json(text)
    except ValueError:
        return
    entries = said if isinstance(said, list) else [said]
    if newer := sorted({name for entry in entries if isinstance(entry, dict) for name in entry} - set(known)):
        raise NewerVersion(
            f"{file} in the query's checkpoint has fields that this version of the library does not know"
            f" ({', '.join(newer)}). A newer version has run the query. The file is not damaged. Start the query with"
            " that version, or a newer one"
        )


def keeps_state(registered: Registration | None, has_state: bool, batch_id: int, described: bool) -> bool | None:
    """Return whether a query keeps state; None: not known.

    Args:
        registered: what its checkpoint remembers.
        has_state: there is state in the checkpoint now.
        batch_id: of the batch that Spark has planned.
        described: whether this Spark, planning the first batch, describes each stateful operator in the folder of the
            state (StatefulOperatorMetadataWriter), so that its absence says something then.
    """
    if has_state:
        return True
    if registered is not None and registered.stateful is not None:
        return registered.stateful
    return False if batch_id == 0 and described else None


def stateful_operators(registered: Registration | None, there: int) -> int | None:
    """Return how many stateful operators a query has; None: none is known of.

    Args:
        registered: what its checkpoint remembers.
        there: how many have a folder in the checkpoint, once Spark has planned a batch. With the first batch of a run
            it describes each operator that is not described yet (OperatorStateMetadataV1Writer), a lost one too.
    """
    noted = registered.operators if registered is not None else None
    return max(there, noted or 0) or None


def retained_since(text: str | None) -> int | None:
    """Read the text of the file `KEEP`; None where there is none. Raises DamagedLog, NewerVersion."""
    if text is None:
        return None
    refuse_newer(text, {"markers_since"}, KEEP)
    try:
        return int(read_json(text)["markers_since"])
    except (ValueError, TypeError, KeyError) as error:
        raise DamagedLog(
            f"{KEEP} in the query's checkpoint can't be read: {error}. It tells how far back savepoints need the"
            ' control log. Write {"markers_since": BATCH} into it, with the batch of the oldest savepoint, or delete it'
        ) from error


def fits(registered: Registration | None, name: str, topic: str) -> None:
    """Refuse a checkpoint that was used with another sink. Raises InvalidInput."""
    if registered is None or (registered.name, registered.control_topic) == (name, topic):
        return
    if registered.name == name:
        namespace = "/".join(registered.control_topic.split("/")[2:4])
        raise InvalidInput(
            f'this checkpoint belongs to the sink "{name}" with the control log {registered.control_topic}, and the'
            f" sink in use has {topic}, which does not know what is committed. The control log is in the namespace of"
            " topic= unless control_namespace= names another. Keep it where it is. Give the sink"
            f' control_namespace="{namespace}". If the log must move, first let the query end after a whole batch with'
            f" that option, and delete {REGISTRATION} from the checkpoint"
        )
    raise InvalidInput(
        f'this checkpoint belongs to the sink "{registered.name}" with the control log'
        f' {registered.control_topic}, and the sink in use is "{name}" with {topic}. One query has one sink. If the'
        " query writes to several topics, put all writes of a batch into one `with sink.batch(batch_id) as txn:` of"
        " one sink, `txn.write(df, topic)` for each. If the sink was renamed, the batches of the old one would be"
        f' written again. Give it the name "{registered.name}" again, or start with a new checkpoint'
    )
