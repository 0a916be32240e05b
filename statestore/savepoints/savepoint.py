"""A savepoint, and its name."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Literal

from statestore.errors import InvalidInput
from statestore.json_fields import from_json

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")

State = Literal["building", "abandoned", "ready", "deleting"]


@dataclass(frozen=True, slots=True)
class Savepoint:
    """The facts known of a savepoint without its list of files.

    Attributes:
        name: its name in the tree, or on the topic.
        state: "building" while its maker lives, "abandoned" when that has ended before it was done, "ready", or
            "deleting" when a deletion has begun. Only a ready one can be restored.
        source: the address of the checkpoint.
        created_ms: when its maker began, milliseconds since the epoch.
        batch_id: the newest batch in it. Unless it is ready this is -1, the numbers below are 0, and the query is "".
        query: the id of the query that resumes from it.
        files, ledgers: how many it holds.
        size: bytes of its files.
        chunks: znodes that the list of files takes.
        crc32c: over the list of files.
    """

    name: str
    state: State
    source: str
    created_ms: int
    batch_id: int = -1
    query: str = ""
    files: int = 0
    size: int = 0
    ledgers: int = 0
    chunks: int = 0
    crc32c: int = 0

    @property
    def source_path(self) -> str:
        """The path of the checkpoint in the savepoint's own tree, which may have other addresses than `source`."""
        return "/" + self.source.partition("://")[2].partition("/")[2]

    @classmethod
    def said(cls, text: str) -> Savepoint:
        """Read what the jar says of one."""
        return cls(**from_json(json.loads(text)))


def is_name(text: str) -> bool:
    """Whether it is meant as a savepoint's name, not as an address."""
    return "/" not in text and ":" not in text


def check_name(name: str) -> str:
    """Return a savepoint's name. The same names are good on a topic and in a tree, where the jar checks them.

    Raises:
        InvalidInput: it is none.
    """
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise InvalidInput(
            f"{name!r} cannot name a savepoint. Use up to 100 letters, digits, '.', '_' and '-', with a letter or digit"
            " at both ends"
        )
    return name
