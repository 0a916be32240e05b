"""How each kind of fault is done. Each is a function of the stage and of the chance that decides the details.

It calls `stage.done` at the moment the fault is there, and returns when all that it did is undone: what was killed is
started again, what was paused goes on. Whether the jobs recover is for the caller to wait for.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from statestore.drills.chaos.fault_targets import FaultTargets
from statestore.drills.chaos.faults import checkpoint, cluster, commit, driver, frames, network, topics

FaultFunction = Callable[[FaultTargets, random.Random], None]

FAULTS: Mapping[str, FaultFunction] = {
    "driver-kill": driver.kill,
    "driver-kill-before-commit": commit.kill_before,
    "driver-kill-in-commit": commit.kill_between,
    "driver-kill-after-commit": commit.kill_behind,
    "driver-pause": driver.pause,
    "driver-second": driver.second,
    "worker-kill": driver.kill_workers,
    "planner-kill": driver.kill_planner,
    "executor-kill": driver.kill_executor,
    "transaction-timeout": commit.outlive,
    "node-kill": driver.kill_node,
    "broker-lost": cluster.lose_broker,
    "broker-kill": cluster.kill("broker-0", "broker-1"),
    "broker-kill-in-commit": commit.kill_coordinator,
    "broker-pause": cluster.pause("broker-0", "broker-1", seconds=(3.0, 10.0)),
    "bookie-kill": cluster.kill("bookie-0", "bookie-1", "bookie-2"),
    "bookie-pause": cluster.pause("bookie-0", "bookie-1", "bookie-2", seconds=(3.0, 10.0)),
    "zookeeper-kill": cluster.kill("zookeeper"),
    "zookeeper-pause": cluster.pause("zookeeper", seconds=(2.0, 5.0)),
    "bookie-disk-full": cluster.fill_disk,
    "broker-link-delay": network.delay(network.broker_links),
    "broker-link-cut": network.cut(network.broker_links),
    "broker-link-half-open": network.half_open(network.broker_links),
    "commit-answer-lost": commit.lose_answer,
    "state-link-delay": network.delay(network.state_link),
    "state-link-cut": network.cut(network.state_link),
    "state-link-half-open": network.half_open(network.state_link),
    "checkpoint-file-corrupted": checkpoint.corrupt_file,
    "checkpoint-file-deleted": checkpoint.delete_file,
    "checkpoint-folder-deleted": checkpoint.delete_folder,
    "control-topic-deleted": checkpoint.delete_control_topic,
    "topic-unload": topics.unload,
    "topic-unload-in-commit": topics.unload_in_commit,
    "topic-move": topics.move,
    "partitions-added": topics.add_partition,
    "commit-frame-cut": frames.commit(half_open=False),
    "commit-frame-half-open": frames.commit(half_open=True),
    "task-frame-cut": frames.tasks(half_open=False),
    "task-frame-half-open": frames.tasks(half_open=True),
}
"""By the names of `statestore.drills.chaos.plan.KINDS`."""
