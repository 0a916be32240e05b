"""The savepoints of a tree on BookKeeper. The jar keeps them: its class `Savepoints` tells the steps."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eos.commit.registration import KEEP, REGISTRATION
from statestore.bk.address import BkAddress
from statestore.checkpoint.cut import Cut
from statestore.checkpoint.logs import METADATA
from statestore.checkpoint.place import check_free
from statestore.errors import InvalidInput, StateStoreError
from statestore.hadoop.file_systems import Hadoop
from statestore.json_fields import from_json
from statestore.savepoints.savepoint import Savepoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("statestore.savepoints")


@dataclass(frozen=True)
class SavepointStore:
    """The savepoints of the tree that an address lies in.

    Every method raises `Damaged` for records that are not what was written, and `Unavailable` when ZooKeeper doesn't
    answer.
    """

    hadoop: Hadoop
    address: BkAddress

    @classmethod
    def of(cls, uri: str, options: Mapping[str, object] | None, spark: SparkSession | None = None) -> SavepointStore:
        """Return that of an address.

        Raises:
            InvalidInput: it is not a bk:// address, or an option is wrong.
        """
        hadoop = Hadoop.of(spark, options, make_root=False)
        return cls(hadoop, BkAddress.parse(uri, hadoop.options))  # the session may know an ensemble's name

    def all(self) -> list[Savepoint]:
        """Return the savepoints in whatever state, oldest first."""
        return [Savepoint(**from_json(one)) for one in json.loads(self._ask("list"))]

    def ready(self, name: str) -> Savepoint:
        """Return one that can be restored.

        Raises:
            NotFound: there is none of that name.
            InvalidInput: it is not ready.
        """
        return Savepoint.said(self._ask("ready", name))

    def create(self, name: str, cut: Cut) -> Savepoint:
        """Make a savepoint of a cut of the checkpoint at the address. If it fails, nothing is left.

        Raises:
            InvalidInput: the name is none, or is taken.
            CutFailed: a file or its ledger went meanwhile, or a file was replaced: take a newer cut.
            Unavailable: ZooKeeper was lost. The rest shows as abandoned.
        """
        files = json.dumps(dict(cut.written_ms))
        return Savepoint.said(
            self._ask("create", name, self.address.uri, self.address.path, cut.batch_id, cut.query, files)
        )

    def take(self, name: str) -> None:
        """Take a name while this process lives: by a savepoint that is never ready, and abandoned when it has ended.

        Raises:
            InvalidInput: the name is none, or is taken.
        """
        self._ask("take", name, self.address.uri)

    @contextlib.contextmanager
    def restore(self, name: str, target: str) -> Iterator[tuple[Savepoint, dict[str, int]]]:
        """Make a checkpoint at a path in the tree, where nothing is; it is whole when the block ends.

        In the block all is there but the true `metadata`: Spark starts no query on it. Raised from the block or by the
        end of it, an error removes the target.

        Yields:
            the savepoint, and the lengths of its files by their paths below the checkpoint.

        Raises:
            NotFound: there is no such savepoint.
            InvalidInput: it is not ready, or there is something at the target.
            Unavailable: it was deleted meanwhile.
            Damaged: a ledger that it holds is gone.
        """
        check_free(self.hadoop, self.address.at(target).uri)
        restoration = self._ask("restore", name, target)
        try:
            yield Savepoint.said(restoration.savepoint()), json.loads(restoration.files())
            with self.hadoop.explained(self.address.uri):
                restoration.finish()
        except BaseException:
            with contextlib.suppress(StateStoreError), self.hadoop.explained(self.address.uri):
                restoration.abandon()
            raise

    def delete(self, name: str) -> None:
        """Delete a savepoint in whatever state; a deletion that was begun is finished.

        Raises:
            NotFound: there is none of that name.
        """
        self._ask("delete", name)

    def tell_sink(self, checkpoint: BkAddress, query: str) -> None:
        """Write the batch of a query's oldest savepoint into its checkpoint; without a savepoint remove the file.

        It is the last step of what makes, restores or deletes a savepoint, and that is done. So a failure is a warning.

        A savepoint at batch n can be brought in step with the sink's output as long as the control log has the MARKERs
        after n. The sink keeps those of its newest thousand batches, and all since the batch that this file names. It
        looks at the file when it starts, and every hundred batches, or more often where it keeps fewer than a thousand.
        So a crash before it leaves the sink with the older word: its newest thousand are kept all the same.

        Args:
            checkpoint: where the query runs. Nothing is done if nothing is there, or no sink of this project has used
                it.
            query: its id.
        """
        try:
            self._tell_sink(checkpoint, query)
        except InvalidInput as error:  # such as a right that this user lacks: the next savepoint is refused it too
            log.warning(
                "The sink at %s cannot be told which markers its savepoints need. It keeps those of its newest "
                "thousand batches (markers_kept) alone. An older savepoint can then no longer be brought in step "
                "with the output. Remove the cause, and make a savepoint. (%s)",
                checkpoint,
                error,
            )
        except StateStoreError as error:
            log.warning(
                "The sink at %s does not know yet which markers its savepoints need. It keeps those of its newest "
                "thousand batches all the same. The next savepoint of the query tells it. (%s)",
                checkpoint,
                error,
            )

    def _tell_sink(self, checkpoint: BkAddress, query: str) -> None:
        if any(self.hadoop.status(checkpoint.at(name).uri) is None for name in (REGISTRATION, METADATA)):
            return
        batches = [one.batch_id for one in self.all() if one.query == query and one.state == "ready"]
        kept = checkpoint.at(KEEP).uri
        if batches:
            self.hadoop.replace(kept, json.dumps({"markers_since": min(batches) + 1}).encode())
        else:
            self.hadoop.delete(kept)

    def _ask(self, call: str, *arguments: object) -> Any:
        with self.hadoop.explained(self.address.uri):
            jar = self.hadoop.jvm.eos.bk.Savepoints
            return getattr(jar, call)(self.hadoop.file_system(self.address.uri), *arguments)
