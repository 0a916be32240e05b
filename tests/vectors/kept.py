"""What the version before left behind, from version_before.tar.xz; see README.md."""

from __future__ import annotations

import base64
import json
import tarfile
from dataclasses import dataclass
from pathlib import Path

ARCHIVE = Path(__file__).with_name("version_before.tar.xz")


@dataclass(frozen=True)
class Message:
    """A message as it was read; `key` is "" where it had none."""

    key: str
    properties: dict[str, str]
    payload: bytes


@dataclass(frozen=True)
class Znode:
    """A znode as it was read."""

    path: str
    data: bytes
    version: int
    ephemeral: bool


def content() -> dict[str, bytes]:
    """Return every file of the archive."""
    with tarfile.open(ARCHIVE) as archive:
        opened = {member.name: archive.extractfile(member) for member in archive.getmembers()}
        return {name: file.read() for name, file in opened.items() if file is not None}


def checkpoint() -> dict[str, bytes]:
    """Return the query's checkpoint, by paths below it."""
    return {
        name.removeprefix("checkpoint/"): data for name, data in content().items() if name.startswith("checkpoint/")
    }


def messages(name: str) -> list[Message]:
    """Return the messages of the control topic ("control") or of the savepoint ("savepoint-topic")."""
    found = json.loads(content()[f"{name}.json"])
    return [Message(one["key"], one["properties"], base64.b64decode(one["payload"])) for one in found]


def znodes() -> list[Znode]:
    """Return the tree of names with a checkpoint and a savepoint of it, parents first."""
    found = json.loads(content()["savepoint-znodes.json"])
    return [Znode(one["path"], base64.b64decode(one["data"]), one["version"], one["ephemeral"]) for one in found]
