"""Reading a topic of savepoints to its end, and what is seen of each savepoint on it.

An entry that nobody can read does not end a scan: what is stored after it is read all the same.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import eos.errors
from eos.errors import DamagedEntry, EosError, NetworkError
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.messages import Message
from eos.pulsar.wire.message_id import EARLIEST, MessageId
from statestore.errors import Damaged, InvalidInput, Unavailable
from statestore.savepoints.stream import SAVEPOINT, Seen

_PERMITS = 16  # messages of 1 MiB that the broker may send ahead
_SILENCE_S = 30.0  # of a broker that has more to give


@dataclass
class TopicScan:
    """All that is readable now.

    Attributes:
        found: what was seen of each savepoint, by id.
        begins: the message after which each begins.
        damage: entries that can't be read, by their places. Nobody can tell which savepoint such an entry belongs to:
            it is held against each one that has begun and has no manifest yet, and each that begins after it with a
            later message than its first.
    """

    found: dict[str, Seen] = field(default_factory=dict)
    begins: dict[str, MessageId] = field(default_factory=dict)
    damage: dict[str, Damaged] = field(default_factory=dict)

    @classmethod
    def of(cls, client: Client, topic: str) -> TopicScan:
        """Read a topic to its end. Raises as `messages_behind`."""
        scan, before = cls(), EARLIEST
        for message in messages_behind(client, topic, EARLIEST):
            if isinstance(message, DamagedEntry):
                before = MessageId(message.ledger, message.entry)
                scan._hold_against_open(f"entry {message.ledger}:{message.entry}", Damaged(str(message)))
                continue
            if (savepoint := message.properties.get(SAVEPOINT)) is not None:
                scan._look(savepoint, message, before)
            before = message.message_id
        return scan

    def nobodys(self) -> Iterator[tuple[str, Damaged]]:
        """Give the damage that no savepoint lacks."""
        lacked = [error for seen in self.found.values() if seen.condition != "ready" for error in seen.unread]
        return ((where, error) for where, error in self.damage.items() if error not in lacked)

    def _hold_against_open(self, where: str, error: Damaged) -> None:
        self.damage[where] = error
        for seen in self.found.values():
            if seen.manifest is None:
                seen.unread.append(error)

    def _look(self, savepoint: str, message: Message, before: MessageId) -> None:
        if (known := self.found.get(savepoint)) is not None:
            known.look(message.properties, message.data)
            return
        self.begins[savepoint] = before
        seen = self.found[savepoint] = Seen(savepoint)
        seen.look(message.properties, message.data)
        if seen.gap == 0:
            seen.unread[:0] = self.damage.values()


def messages_behind(client: Client, topic: str, after: MessageId) -> Iterator[Message | DamagedEntry]:
    """Give the messages after this one that are readable now, and each entry that can't be read in its place.

    Raises:
        InvalidInput: the topic has partitions.
        Unavailable: it could not be read to its end.
    """
    reader = None
    try:
        if client.partitions(topic):
            raise InvalidInput(f"The topic {topic} has partitions. Savepoints need a topic without partitions")
        # A savepoint's first message lies after one that was read, unless it is the topic's first.
        reader = client.reader(topic, permits=_PERMITS, after=after, stored=after != EARLIEST)
        last, seen = reader.last_message_id(), after
        while seen < last:
            try:
                message = reader.read(_SILENCE_S)
            except DamagedEntry as damage:
                yield damage
                seen = MessageId(damage.ledger, damage.entry)
                continue
            if message is None:
                last = reader.last_message_id()
                behind = f"the last message is in {last.ledger}:{last.entry}" if seen < last else "the rest is deleted"
                raise Unavailable(
                    f"{topic} could not be read to its end. Nothing came for {_SILENCE_S:g} s after entry "
                    f"{seen.ledger}:{seen.entry}, and {behind}. When its broker answers again, do the same once more"
                )
            yield message
            seen = message.message_id
    except eos.errors.InvalidInput:
        raise  # such as a wrong token: another attempt does not help
    except NetworkError as error:
        raise Unavailable(f"{topic} could not be read to its end. {error}") from error
    finally:
        if reader is not None:
            with contextlib.suppress(EosError):
                reader.close()
