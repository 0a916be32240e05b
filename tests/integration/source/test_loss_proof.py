"""Whatever removes entries while they are read: all rows come, or a loss that is named; never a hang."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from eos.config import Cluster
from eos.local import LocalPulsar
from eos.pulsar.net.client import Client
from tests.conftest import START_S
from tests.integration.source.removals import MEANS, SETTINGS, history

HISTORIES = 500


@pytest.fixture(scope="module")
def removing() -> Iterator[LocalPulsar]:
    with LocalPulsar(start_timeout_s=START_S, settings=SETTINGS) as started:
        yield started


@pytest.mark.parametrize("means", MEANS)
def test_entries_removed_while_they_are_read_are_read_or_named_as_lost(removing: LocalPulsar, means: str) -> None:
    with Client(Cluster(removing.service_url)) as client:
        for number in range(2):
            history(removing, client, means, f"{means} {number}")


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_random_histories_lose_nothing_in_silence(removing: LocalPulsar) -> None:
    outcomes: Counter[str] = Counter()
    failures = []
    with Client(Cluster(removing.service_url)) as client:
        for number in range(HISTORIES):
            means = list(MEANS)[number % len(MEANS)]
            try:
                outcomes[f"{means}: {history(removing, client, means, f'soak {number}')}"] += 1
            except AssertionError as failure:
                failures.append(str(failure))
    print(f"{HISTORIES} histories: {dict(sorted(outcomes.items()))}")
    assert not failures, "\n".join(failures)
