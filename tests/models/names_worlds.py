"""The worlds in which the names are explored, and for each rule a small one in which its absence is found."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tests.models.names import Tree
from tests.models.names_rules import ALL, Rule

SWEEPER: Final = ("sweeper", ())
WRITER: Final = ("writer1", (("write", "/d/a"),))

WRITING: Final = Tree(actors=(("writer1", (("write", "/d/a"), ("write", "/d/b"))), SWEEPER))
RACING: Final = Tree(actors=(WRITER, ("writer2", (("write", "/d/a"),)), SWEEPER), ledgers=2)
OVERWRITING: Final = Tree(actors=(("writer1", (("write", "/d/a", "overwrite"),)), SWEEPER), files=("/d/a",))
REPLACED: Final = Tree(
    actors=(
        ("writer1", (("write", "/d/a", "overwrite"),)),
        ("user1", (("rename", "/d/a", "/d/b"),)),
        ("writer2", (("write", "/d/a"),)),
        SWEEPER,
    ),
    files=("/d/a",),
    silences=0,
    deaths=0,
)
DIRECTORY: Final = Tree(
    actors=(WRITER, ("user1", (("rmdir", "/d"),)), ("writer2", (("write", "/d"),)), SWEEPER),
    ledgers=2,
    silences=0,
    deaths=0,
)
REMOVING: Final = replace(
    DIRECTORY,
    actors=(("user1", (("rmdir", "/d"),)), ("user2", (("rmdir", "/d"),)), ("writer1", (("write", "/d"),)), SWEEPER),
)
INTO_DIRECTORY: Final = replace(
    DIRECTORY,
    actors=(
        ("user1", (("rmdir", "/d"),)),
        ("user2", (("rename", "/b", "/d/b"),)),
        ("user3", (("mkdir", "/d/x"),)),
        ("writer1", (("write", "/d"),)),
        SWEEPER,
    ),
    files=("/b",),
)
MOVING: Final = Tree(
    actors=(("user1", (("rename", "/d/a", "/d/b"),)), ("user2", (("rename", "/d/a", "/d/c"),)), WRITER, SWEEPER),
    files=("/d/a",),
    ledgers=2,
    deaths=0,
)
ONTO: Final = Tree(
    actors=(("user1", (("rename", "/d/a", "/d/b"),)), ("writer1", (("write", "/d/b"),)), SWEEPER),
    files=("/d/a",),
    ledgers=2,
    deaths=0,
)
DELETING: Final = replace(
    MOVING, actors=(("user1", (("rename", "/d/a", "/d/b"),)), ("user2", (("delete", "/d/a"),)), WRITER, SWEEPER)
)
TWO_SWEEPERS: Final = Tree(actors=(WRITER, ("sweeper1", ()), ("sweeper2", ())), ledgers=1, silences=0)
COMPACTING: Final = Tree(
    actors=(
        ("compactor", (("compact",),)),
        ("user1", (("rename", "/d/a", "/d/b"),)),
        WRITER,
        ("reader", (("read", "/d/a"),)),
        SWEEPER,
    ),
    files=("/d/a",),
    silences=0,
    deaths=0,
)
COMPACTING_NEW: Final = Tree(actors=(("compactor", (("compact",),)), WRITER, SWEEPER))
SAVEPOINT: Final = Tree(
    actors=(("maker1", ()), ("deleter1", ()), ("user1", (("delete", "/d/a"),)), SWEEPER),
    files=("/d/a",),
    ledgers=1,
    silences=0,
)
SAVEPOINTS: Final = Tree(
    actors=(("maker1", ()), ("maker2", ()), ("deleter1", ()), ("deleter2", ())),
    files=("/d/a",),
    ledgers=1,
    silences=0,
    deaths=0,
)

WORLDS: Final[dict[str, Tree]] = {
    "a writer that dies or sleeps": WRITING,
    "two writers of one name": replace(RACING, deaths=0),
    "overwriting a file": OVERWRITING,
    "overwriting a file that moves": REPLACED,
    "a directory that becomes a file": DIRECTORY,
    "two that remove a directory": REMOVING,
    "into a directory that becomes a file": INTO_DIRECTORY,
    "two renames of one file": MOVING,
    "a rename onto a new file": ONTO,
    "a rename and a deletion": DELETING,
    "two sweepers": replace(TWO_SWEEPERS, deaths=2),
    "a compaction under a rename and a reader": COMPACTING,
    "a compaction behind a writer": COMPACTING_NEW,
    "a savepoint while files go": SAVEPOINT,
    "savepoints of one name, one after the other": SAVEPOINTS,
}
"""Explored in every run of the tests."""

LARGE: Final[dict[str, Tree]] = {
    "a writer that dies or sleeps, often": replace(WRITING, deaths=3, silences=2, ledgers=4),
    "two writers of one name, in trouble": replace(RACING, deaths=2, ledgers=3),
    "overwriting a file that moves, in trouble": replace(REPLACED, deaths=1),
    "into a directory that becomes a file, in trouble": replace(INTO_DIRECTORY, silences=1),
    "a rename and a deletion, in trouble": replace(DELETING, silences=2, deaths=1),
    "a compaction under a rename and a reader, in trouble": replace(COMPACTING, deaths=1),
    "a savepoint while files go, in trouble": replace(SAVEPOINT, silences=1, deaths=2),
    "savepoints of one name, in trouble": replace(SAVEPOINTS, deaths=1),
}
"""Explored by `make models`."""

LIMIT: Final = replace(
    ONTO, actors=(("user1", (("rename", "/d/a", "/d/b", "overwrite"),)), ("writer1", (("write", "/d/b"),)), SWEEPER)
)
"""Where an answer may be false with all rules: a file is published, the answer is lost, and before its writer has
looked for the trace, another writer overwrites the file. The writer is told that there is such a file already. Spark
doesn't do that: its writers overwrite nothing that must stay, and old files are deleted long after their writing."""

WITHOUT: Final[dict[Rule, Tree]] = {
    Rule.REGISTER_CHECKS_WRITER: WRITING,
    Rule.ACKNOWLEDGED: WRITING,
    Rule.PUBLISH_CHECKS_PARENT: DIRECTORY,
    Rule.PUBLISH_REFERS: replace(WRITING, silences=0),
    Rule.OVERWRITE_RELEASES: OVERWRITING,
    Rule.OVERWRITE_GENERATION: REPLACED,
    Rule.RENAME_CHECKS_PARENT: INTO_DIRECTORY,
    Rule.RENAME_GENERATION: MOVING,
    Rule.DELETE_RELEASES: DELETING,
    Rule.DELETE_GENERATION: DELETING,
    Rule.MKDIR_CHECKS_PARENT: INTO_DIRECTORY,
    Rule.RMDIR_VERSION: REMOVING,
    Rule.FREE_UNREFERENCED: WRITING,
    Rule.FREE_NOTES: COMPACTING_NEW,
    Rule.NOTE_LAST: COMPACTING_NEW,
    Rule.ORPHAN_BURIED: WRITING,
    Rule.ORPHAN_ORDER: TWO_SWEEPERS,
    Rule.SWAP_GENERATION: COMPACTING,
    Rule.SWAP_RELEASES: COMPACTING,
    Rule.SWAP_REFERS: COMPACTING_NEW,
    Rule.SWAP_GRACE: COMPACTING_NEW,
    Rule.HOLD_BEFORE_READY: SAVEPOINT,
    Rule.HOLD_CHECKS_BUILD: SAVEPOINT,
    Rule.READY_CHECKS_BUILD: SAVEPOINTS,
    Rule.RELEASE_FIRST: SAVEPOINT,
    Rule.RELEASE_CHECKS_TOKEN: SAVEPOINTS,
    Rule.NEVER_BLIND: ONTO,
    Rule.SYNC: ONTO,
    Rule.PUBLISH_TRACE: replace(RACING, deaths=0),
    Rule.RENAME_TRACE: ONTO,
    Rule.DELETE_TRACE: DELETING,
    Rule.READ_AGAIN: COMPACTING,
}

NOT_MISSED: Final[dict[Rule, tuple[Tree, ...]]] = {
    Rule.NAME_VERSION: (REPLACED, MOVING, DELETING, REMOVING),
    Rule.READY_VERSION: (SAVEPOINT, SAVEPOINTS),
}
"""The redundant rules, and the worlds in which their absence would be found if anywhere."""


def without(rule: Rule) -> Tree:
    """Give the small world without a rule."""
    return replace(WITHOUT[rule], rules=ALL - {rule})
