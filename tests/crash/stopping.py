"""The driver process of the stop tests: it starts a query again and again and stops it at random moments.

    python -m tests.crash.stopping '{"service_url": …, "topics": […], …}'      (the fields of `Stopping`)

Every other round stops a query near its first batch, with a topic and a checkpoint of its own; the rounds between go
on from where they were stopped. Prints a line of JSON for each round; what a user would see goes to standard error.
"""

from __future__ import annotations

import json
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import until_tasks_end


@dataclass(frozen=True)
class Stopping:
    """The task of one driver process.

    Attributes:
        topics: one for each round whose first batch is stopped, after one that all other rounds share.
        seed: of the moments.
        longest_s: a query is stopped at a moment between its start and this many seconds later.
    """

    service_url: str
    topics: list[str]
    folder: str
    rounds: int
    seed: int = 7
    longest_s: float = 2.5

    def topic_of(self, place: int) -> str:
        """Return the topic that this round writes."""
        return self.topics[place // 2 + 1] if place % 2 else self.topics[0]


def main(stopping: Stopping) -> None:
    """Run the rounds."""
    import eos
    from tests.driver_session import driver_session

    spark = driver_session(level="WARN")
    moments = random.Random(stopping.seed)
    for place in range(stopping.rounds):
        topic = stopping.topic_of(place)
        name = topic.rsplit("/")[-1]
        rate = spark.readStream.format("rate").option("rowsPerSecond", 200).load()
        sink = eos.sink(
            stopping.service_url, topic=topic, name=name, small_batch_rows=0 if moments.random() < 0.5 else 1_000
        )
        writer = rate.selectExpr("cast(value as string) value").writeStream.foreachBatch(sink)
        query = writer.option("checkpointLocation", str(Path(stopping.folder) / name)).start()
        time.sleep(moments.uniform(0, stopping.longest_s))
        began = time.monotonic()
        query.stop()
        took_s = time.monotonic() - began
        failed = query.exception()
        sink.close()
        print(json.dumps({"took_s": took_s, "failed": None if failed is None else str(failed)[:2_000]}), flush=True)
    until_tasks_end(spark)
    spark.stop()


if __name__ == "__main__":
    main(Stopping(**json.loads(sys.argv[1])))
