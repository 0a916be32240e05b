"""Shared parts of a sink and a job of `eos.write`: the client of their cluster, their plan, and their observers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from eos.commit.decision import Identity
from eos.errors import InvalidInput, NetworkError
from eos.metrics.observers import ObserverNotifier
from eos.preflight.retention import check_admin
from eos.pulsar.net.client import Client
from eos.sinks.error_translation import log_in_one_line, out_of_reach
from eos.sinks.metrics import Metrics
from eos.sinks.options import SinkOptions
from eos.sinks.run import RunContext
from eos.sinks.write_plan import WritePlan
from eos.spark import query as spark


class SinkContext:
    """Shared settings of all writes of a sink or of a job.

    Attributes:
        options: checked.
        cluster: where it writes.
        client: this process's, of that cluster.
        metrics: what it counts.
        plan: of its writes.
    """

    def __init__(self, service_url: str, options: SinkOptions, *, job: bool = False) -> None:
        self.options = options
        self.cluster = options.cluster(service_url)
        self.client = Client.shared(self.cluster)
        self.metrics = Metrics(options.name, job)
        self.plan = WritePlan(self.client, options)
        self._notifier = ObserverNotifier(options.metrics)

    def start(self) -> None:
        """Check the cluster, and show the sink to its observers. Raises InvalidInput; then nothing was written."""
        self.check_cluster()
        log_in_one_line()
        self._notifier.watch(self.metrics)

    @contextmanager
    def observed(self, batch_id: int, *, stray: bool = False) -> Iterator[None]:
        """Tell the observers of a batch when its outcome is known.

        Args: the batch; whether the call came from another thread than the query's, which may be writing one. It counts
            apart, or the batch in hand would be taken for the refused one.
        """
        metrics = Metrics(self.options.name) if stray else self.metrics
        metrics.begin(batch_id)
        try:
            yield
        except BaseException as error:
            self._notifier.finished(metrics.finished(error))
            raise
        self._notifier.finished(metrics.finished(None))

    def run(self, session: SparkSession, query: spark.Query | None, identity: Identity, batch_id: int) -> RunContext:
        """Return what a run of the query begins with. Args: as the attributes of `RunContext`."""
        return RunContext(self.options, self.client, self.metrics, session, query, identity, batch_id)

    def out_of_reach(self, error: NetworkError) -> InvalidInput:
        """Return the error to raise where no broker can be used."""
        return out_of_reach("The sink", self.cluster.service_url, error)

    def check_cluster(self) -> None:
        """Refuse a broker out of reach, or that lacks what is needed, a missing topic, an admin API out of reach."""
        try:
            if self.options.guarantee == "exactly-once":
                self.client.coordinators()
            else:
                self.client.connect()
            if self.options.topic is not None:
                self.plan.require_topic(self.options.topic)
        except InvalidInput:
            raise
        except NetworkError as error:
            raise self.out_of_reach(error) from error
        if self.options.admin_url is not None:
            check_admin(self.options.admin_url, self.cluster)
