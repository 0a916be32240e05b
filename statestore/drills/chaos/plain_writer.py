"""The writer of a drill that uses no transactions: the official Python client, in a process of its own.

    python -m statestore.drills.chaos.plain_writer SERVICE_URL TOPIC BACKLOG RATE

It sends a backlog as fast as it can, then so many rows a second, block after block. Its commands and its words are the
same as for `Transactions.java`, see `statestore.drills.chaos.traffic`.
"""

from __future__ import annotations

import os
import sys
import threading
import time

import pulsar

from statestore.drills.judge.copies import key_of, value_of

BLOCK = 500
"""Rows of a block, the last one included."""
_WRITER = "plain"
_TICK_S = 0.1
_LEAVE_S = 120.0


class _Pace:
    """Whether the writer is to go on, as the lines on standard input say."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.paused = threading.Event()
        threading.Thread(target=self._listen, name="orders", daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            if line.strip() == "pause":
                self.paused.set()
            elif line.strip() == "resume":
                self.paused.clear()
        self.ended.set()
        time.sleep(_LEAVE_S)
        os._exit(1)  # the brokers are gone, and so is who has started this


def main() -> None:
    """Write until standard input ends."""
    service_url, topic, backlog, rate = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    pace = _Pace()
    client = pulsar.Client(service_url, logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull))
    # Without a time-out a row waits for its broker as long as it takes, and has its receipt in the end.
    producer = client.create_producer(
        topic, send_timeout_millis=0, block_if_queue_full=True, batching_enabled=True, batching_max_publish_delay_ms=5
    )
    first, due = 0, time.monotonic()
    while not pace.ended.is_set():
        if pace.paused.is_set():
            print("paused", flush=True)
            while pace.paused.is_set() and not pace.ended.wait(_TICK_S):
                pass
            due = time.monotonic()
            continue
        for outcome, start, end in _send(producer, first, first + BLOCK):
            print(outcome, start, end, flush=True)
        first += BLOCK
        due = max(due + BLOCK / rate, time.monotonic()) if first > backlog else time.monotonic()
        pace.ended.wait(due - time.monotonic())
    client.close()


def _send(producer: pulsar.Producer, first: int, end: int) -> list[tuple[str, int, int]]:
    """Send rows and wait for their receipts; return what became of them, in runs of one outcome."""
    received: set[int] = set()
    for number in range(first, end):

        def take(result: pulsar.Result, _: pulsar.MessageId, number: int = number) -> None:
            if result == pulsar.Result.Ok:
                received.add(number)

        key = key_of(_WRITER, number)
        at = time.time_ns() // 1_000_000
        producer.send_async(value_of(key, number), take, partition_key=key, event_timestamp=at)
    try:
        producer.flush()
    except pulsar.PulsarException as error:
        print(f"A flush failed: {error}", file=sys.stderr)
    runs: list[tuple[str, int, int]] = []
    for number in range(first, end):
        outcome = "committed" if number in received else "in-doubt"
        if runs and runs[-1][0] == outcome:
            runs[-1] = (outcome, runs[-1][1], number + 1)
        else:
            runs.append((outcome, number, number + 1))
    return runs


if __name__ == "__main__":
    main()
