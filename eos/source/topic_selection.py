"""The topics that the options of a read select, as they are now."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Container, Iterator

from eos.errors import RefusedForGood, TopicMissing
from eos.pulsar.net.client import Client
from eos.pulsar.net.topic_list import namespace_topics
from eos.pulsar.protocol.topics import is_hidden, physical_topics, split_partition
from eos.source.options import SourceOptions

log = logging.getLogger("eos.source")

_NO_WHOLE_TOPIC = "Partition metadata not found"
"""A broker's words where it refuses to load a partition without a partitioned topic (BrokerService of 4.2.4)."""


class TopicSelection:
    """The topics of one read."""

    def __init__(self, client: Client, options: SourceOptions, load: Callable[[str], object]) -> None:
        """Args: asks brokers; the checked options; has a broker load a topic, or raises why it does not."""
        self._client, self._options, self._load = client, options, load
        self._loads: dict[str, bool] = {}
        self._warned = False

    def selects(self, topic: str) -> bool:
        """Whether the options select a topic, or a partition of it, by its name, be it there or not."""
        name = split_partition(topic)[0]
        if self._options.pattern is None:
            return not {topic, name}.isdisjoint(self._options.topics)
        # The own name alone, or "persistent://public/default/a|b" would be either that topic a, or any topic "b".
        (of, _, pattern), (namespace, _, own) = self._options.pattern.rpartition("/"), name.rpartition("/")
        return of == namespace and re.fullmatch(pattern, own) is not None and not is_hidden(name)

    def physical(self, all_named: bool, read: Container[str] = ()) -> list[str]:
        """Return the physical topics.

        Args: whether all that are named must be there; those that the query has read, none of which is left out.
        Raises TopicMissing for a named one that is missing, if all must be there; what loading a topic raises.
        """
        found = self._of_pattern(self._options.pattern, read) if self._options.pattern else self._named(all_named)
        physical = list(dict.fromkeys(found))  # a topic and a partition of it may both be named
        if self._options.pattern and not physical and not self._warned:
            self._warned = True
            log.warning(
                "topicsPattern=%r selects no topic now, so nothing is read. After the namespace it is a regular "
                'expression for the whole name of a topic, without "-partition-N". A stream reads a topic that the '
                "pattern selects when it is there.",
                self._options.pattern,
            )
        return physical

    def _named(self, all_named: bool) -> Iterator[str]:
        for topic in self._options.topics:
            try:
                yield from self._client.physical_topics(topic)
            except TopicMissing:
                if all_named:
                    raise

    def _of_pattern(self, pattern: str, read: Container[str]) -> Iterator[str]:
        namespace = pattern.removeprefix("persistent://").rsplit("/", 1)[0]
        for topic, partitions in namespace_topics(self._client, namespace, self.selects).items():
            if split_partition(topic)[1] is None or topic in read or self._is_loaded(topic):
                yield from physical_topics(topic, partitions)

    def _is_loaded(self, topic: str) -> bool:
        """Whether brokers load a topic without partitions that has a partition's name.

        A leftover that they refuse must not keep a query from the other topics of its pattern. Any other refusal is
        raised: the topic is there, and may be read once the role has a right, for example.
        """
        if topic not in self._loads:
            try:
                self._load(topic)
                self._loads[topic] = True
            except TopicMissing:
                return False
            except RefusedForGood as refused:
                if _NO_WHOLE_TOPIC not in refused.detail:
                    raise
                self._loads[topic] = False
                log.warning(
                    "The pattern selects %s, which has a partition's name, but there is no such partitioned topic. "
                    "Brokers refuse to load it: %s. Its messages are not read. Delete it, or create the partitioned "
                    "topic again, and start the query again.",
                    *(topic, refused),
                )
        return self._loads[topic]
