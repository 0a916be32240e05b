"""The rules of `bk://`'s names: the one list. Each is one check, or one part of a multi, of DESIGN §6.

Where the code keeps it is said behind each, by the jar's class and method.
"""

from __future__ import annotations

from enum import Enum


class Rule(Enum):
    """One rule each. The value is a sentence that is true of the names."""

    # Writing a file: Ledgers.create, Packs.append, Names.publish
    REGISTER_CHECKS_WRITER = "Registering a ledger checks that its writer was not buried"
    ACKNOWLEDGED = "A file is published only when all its bytes are acknowledged"
    PUBLISH_CHECKS_PARENT = "Publishing checks that the parent is a directory still"
    PUBLISH_REFERS = "Publishing makes the reference in the same multi as the name"
    OVERWRITE_RELEASES = "An overwriting writer deletes the old file's reference in the same multi"
    OVERWRITE_GENERATION = "An overwriting writer deletes the reference of the generation that it has seen"

    # Changing names: Names.rename, delete, mkdirs
    RENAME_CHECKS_PARENT = "Renaming checks that the target's parent is a directory still"
    RENAME_GENERATION = "Renaming moves the reference of the generation that it has seen"
    DELETE_RELEASES = "Deleting a file deletes its reference in the same multi"
    DELETE_GENERATION = "Deleting a file deletes the reference of the generation that it has seen"
    NAME_VERSION = "A name is deleted only where it is a file's still, not a directory's"
    MKDIR_CHECKS_PARENT = "Making a directory checks that its parent is a directory still"
    RMDIR_VERSION = "Removing a directory checks that it has not become a file"

    # Freeing ledgers: Sweeper
    FREE_UNREFERENCED = "A ledger's znode is deleted only where it has no reference"
    FREE_NOTES = "A ledger's znode is deleted in one multi with the making of a note that its bytes are to be deleted"
    NOTE_LAST = "The note goes only when the bytes are gone"
    ORPHAN_BURIED = "A ledger that is not registered is deleted only where its writer is buried"
    ORPHAN_ORDER = "Whether the writer is buried is asked first, and whether the ledger is registered after that"

    # Compacting: Compactor, Names.replace
    SWAP_GENERATION = "A compaction deletes the reference of the generation that it has copied"
    SWAP_RELEASES = "A compaction deletes the old reference in the same multi"
    SWAP_REFERS = "A compaction makes the new reference in the same multi"
    SWAP_GRACE = "A compaction leaves files alone whose writer may still be asking whether they were published"

    # Savepoints: Savepoints.begin, Build, mark, release, remove
    HOLD_BEFORE_READY = "A savepoint is ready only when it holds each of its ledgers"
    HOLD_CHECKS_BUILD = "A savepoint's reference is made only while the savepoint is being made"
    READY_CHECKS_BUILD = "A savepoint is made ready only by the making that is under way"
    READY_VERSION = "A savepoint is made ready only where it was not changed since it was begun"
    RELEASE_FIRST = "A savepoint's name goes only when its references are gone"
    RELEASE_CHECKS_TOKEN = "A savepoint's reference is deleted only by the deletion that is under way"

    # Answers: Zk.write and its traces, Ledgers.read
    NEVER_BLIND = "A write without an answer is not sent again before its trace was looked for"
    SYNC = "Before a trace is looked for, the server is brought up to date"
    PUBLISH_TRACE = "Whether a file was published is told by its reference, not by its name"
    RENAME_TRACE = "Whether a file was renamed is told by its reference, not by its name"
    DELETE_TRACE = "Whether a file was deleted is told by its reference, not by its name"
    READ_AGAIN = "A reader that misses bytes asks the name again before it says that they are lost"


ALL = frozenset(Rule)

REDUNDANT = frozenset({Rule.NAME_VERSION, Rule.READY_VERSION})
"""Checks that another one of the same multi makes superfluous in the model: the generation of a file's reference tells
more than the version of its name, and the token of a savepoint's making more than the version of its znode."""
