"""How a run of a query begins: by what its checkpoint says of the sink, and by the guarantee that is asked for."""

from __future__ import annotations

import logging

from eos.commit.registration import (
    DEDUPLICATED,
    REGISTRATION,
    UNLOGGED,
    Registration,
    Unlogged,
    fits,
    refuse_deduplicated,
)
from eos.sinks.at_least_once import RepeatingRun
from eos.sinks.run import OwningRun, Run, RunContext
from eos.spark import query as spark

log = logging.getLogger("eos.sink")


def begin(start: RunContext) -> Run:
    """Begin a run: take the sink over, unless the guarantee needs none, or the checkpoint is a shadow of a live one.

    Raises what `Owner.take_over` raises, and InvalidInput for a setting that would break the guarantee, and for a
    batch that was begun with a weaker one.
    """
    query, options = start.query, start.options
    if query is not None:
        spark.refuse_temporary_checkpoint(query)
    text = None if query is None else query.read(REGISTRATION)
    registered = None if text is None else Registration.parse(text)
    if registered is not None and registered.shadow:
        fits(registered, options.name, options.control_topic)
        log.warning("this checkpoint is a shadow of a live one: nothing is written to any topic")
        return Run(start.identity.run_id, query, start.metrics)
    text = None if query is None else query.read(UNLOGGED)
    unlogged = None if text is None else Unlogged.parse(text)
    if options.guarantee == "at-least-once":
        return RepeatingRun(start, registered, unlogged)
    if unlogged is not None:
        unlogged.refuse_in_doubt(start.batch_id)
    without = [] if unlogged is None else [unlogged.begun]
    if query is not None:
        without.append(refuse_deduplicated(query.read(DEDUPLICATED), start.batch_id))
    return OwningRun(start, registered, max(without, default=None))
