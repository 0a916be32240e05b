"""What a query's checkpoint says of the batch that was begun last with `guarantee="deduplicated"`.

It is written before anything of a batch is sent. While Spark has not noted the end of that batch, rows of it may be
stored: behind the positions that are noted, under names and numbers that follow from the sink's name and the batch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final

from eos.errors import DamagedLog, InvalidInput, StaleBatch
from eos.pulsar.wire.message_id import EntryId

BEGUN: Final = "eos-deduplicated.json"
"""The file in the query's checkpoint folder that holds a `Begun`."""


@dataclass(frozen=True, slots=True)
class Planned:
    """One write of a batch, as it was begun.

    Attributes:
        topic: where its rows go.
        partitions: how many that topic had; 0: it is not partitioned. A replay goes by these, whatever came since.
        driver_rows: they were sent by the driver, as they were at most so many; None: by tasks.
    """

    topic: str
    partitions: int
    driver_rows: int | None


@dataclass(frozen=True, slots=True)
class Begun:
    """What the checkpoint remembers of the newest batch that was begun.

    Attributes:
        name: the sink's.
        batch_id: of the batch.
        writes: those of the batch, in their order.
        positions: an entry of each physical topic before the batch; entry -1 where its ledger had none.
        settings: what decides about the order of rows in a partition, for the words of an error.
        rows: of the last batch that was written whole; None: not known.
    """

    name: str
    batch_id: int
    writes: tuple[Planned, ...]
    positions: Mapping[str, EntryId] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    rows: int | None = None

    @property
    def text(self) -> str:
        """The text of its file."""
        positions = {topic: str(entry) for topic, entry in self.positions.items()}
        return json.dumps(asdict(self) | {"positions": positions})

    @classmethod
    def parse(cls, text: str) -> Begun:
        """Read the text of its file. Raises DamagedLog."""
        try:
            told = json.loads(text)
            told["writes"] = tuple(Planned(**one) for one in told["writes"])
            told["positions"] = {topic: EntryId.parse(entry) for topic, entry in told["positions"].items()}
            return cls(**told)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DamagedLog(
                f"{BEGUN} in the query's checkpoint can't be read: {error}. It tells which batch was begun last"
                ' with guarantee="deduplicated", and where its rows may be. Restore the file from a backup of the'
                " checkpoint."
            ) from error

    def fits(self, name: str) -> None:
        """Refuse a checkpoint that was used with a sink of another name. Raises InvalidInput."""
        if self.name != name:
            raise InvalidInput(
                f'this checkpoint belongs to the sink "{self.name}", and the sink in use is "{name}". The rows of a'
                " batch that was begun are found by the name: use the old one, or start with a new checkpoint"
            )

    def refuse_older(self, batch_id: int) -> None:
        """Refuse a batch older than the one that was begun last. Raises StaleBatch."""
        if batch_id < self.batch_id:
            raise StaleBatch(
                f"Spark hands over batch {batch_id}, and the checkpoint says that batch {self.batch_id} was begun. Its"
                " folders offsets and commits are older than the sink's own file in it. Restore all of the checkpoint,"
                " or start the query with a new one and another name"
            )

    def refuse_in_doubt(self, batch_id: int) -> None:
        """Refuse to write a batch exactly once that may be visible already. Raises InvalidInput.

        A later one may be written: Spark hands it over only after it has noted the end of those before.
        """
        if batch_id <= self.batch_id:
            raise InvalidInput(
                f'batch {batch_id} was begun with guarantee="deduplicated", and Spark did not note its end: its rows'
                " may be visible, no control log tells, and written once more they would be there twice. Start the"
                ' query with guarantee="deduplicated" again and let it end in good order, as'
                ' trigger(availableNow=True) does; then start it with "exactly-once"'
            )

    def refuse_other_writes(self, topics: Sequence[str]) -> None:
        """Refuse a replay that does not write to the topics that the batch was begun with. Raises InvalidInput."""
        before = [one.topic for one in self.writes]
        if before != list(topics):
            raise InvalidInput(
                f"batch {self.batch_id} was begun with writes to {', '.join(before)}, and is now to be written to"
                f" {', '.join(topics)}. Rows of it may be stored already. Start the query as it was, with"
                " trigger(availableNow=True); once that batch has ended the writes may change"
            )

    def changed(self, settings: Mapping[str, str]) -> str:
        """Say which settings differ from those that the batch was begun with; "" where none does."""
        return ", ".join(
            f"{name} was {before} and is {settings[name]}"
            for name, before in sorted(self.settings.items())
            if settings.get(name, before) != before
        )
