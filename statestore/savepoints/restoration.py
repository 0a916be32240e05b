"""A savepoint as a new checkpoint, whether it lies on BookKeeper or on a Pulsar topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eos.config import Cluster
from statestore.errors import InvalidInput
from statestore.savepoints import bookkeeper, pulsar_topic
from statestore.savepoints.savepoint import Savepoint
from statestore.savepoints.stream import Manifest
from statestore.savepoints.topic import Progress, is_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def restore(
    savepoint: str,
    target: str,
    *,
    name: str | None = None,
    spark: SparkSession | None = None,
    options: Mapping[str, object] | None = None,
    cluster: Cluster | None = None,
    progress: Progress = lambda *_: None,
) -> Savepoint | Manifest:
    """Make a new checkpoint of a savepoint, from which the savepoint's query resumes.

    Args:
        savepoint: its name in the target's tree, or its topic, pulsar://host:port/tenant/namespace/topic.
        target: an address where nothing is. For a name, bk:// in the savepoint's tree. For a topic, any scheme that
            Hadoop knows.
        name: the savepoint on the topic. None: the only one.
        spark: the session whose JVM and options to use. None: the active session's, or a new JVM.
        options: Hadoop options `fs.bk.…`.
        cluster: credentials and TLS for the topic. Its service URL wins over that of `savepoint`.
        progress: called with the bytes read from the topic, and with all bytes.

    Returns:
        The savepoint, with the number of the batch that the query resumes after.

    Raises:
        NotFound: there is no such savepoint.
        InvalidInput: it is not ready, there is something at the target, or `name` is given without a topic.
        Damaged: the savepoint is not what was written.
        Unavailable: a server does not answer, or the savepoint was deleted meanwhile.
    """
    if is_topic(savepoint):
        return pulsar_topic.restore(
            savepoint, target, name, options=options, spark=spark, cluster=cluster, progress=progress
        )
    if name is not None:
        raise InvalidInput(
            f"A savepoint on BookKeeper has one name. {savepoint!r} is not a topic, so {name!r} cannot be on it. "
            "Nothing was done. Leave out the second name."
        )
    return bookkeeper.restore(savepoint, target, options=options, spark=spark)
