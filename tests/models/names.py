"""The names of `bk://` as a model: processes that write, move and delete files, and the upkeep beside them.

Each multi is one step, and so is each look at the tree; between the two another process may act. Any process may die
or lose its session, and a multi may get no answer. Time is not modelled: whatever waits for a grace time may happen
at once, but for the one thing that DESIGN leans on, that a grace time is longer than any caller's patience.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.models import names_client, names_savepoints, names_upkeep
from tests.models.names_bounds import Bounds, Step, bytes_there, over
from tests.models.names_world import ANY, Entry, World, parent

PROGRAMS = {
    "writer": names_client.steps,
    "user": names_client.steps,
    "reader": names_client.steps,
    "sweeper": names_upkeep.sweep,
    "compactor": names_upkeep.compact,
    "maker": names_savepoints.make,
    "deleter": names_savepoints.delete,
}


@dataclass(frozen=True)
class Tree(Bounds):
    """The model."""

    def steps(self, state: World) -> Iterator[Step]:
        """Give everything that can happen next."""
        for number, actor in enumerate(state.actors):
            if actor.at == "over":
                continue
            yield from PROGRAMS[actor.name.rstrip("0123456789")](self, state, number)
            if state.deaths < self.deaths:
                yield from self._trouble(state, number)

    def _trouble(self, w: World, i: int) -> Iterator[Step]:
        """Kill an actor, or end its session; a successor of a sweeper begins at the beginning."""
        actor = w.actors[i]
        after = w._replace(deaths=w.deaths + 1)
        if actor.name.startswith("sweeper"):
            if actor.at != "idle":
                yield "the sweeper dies; another begins", after.actor(i, at="idle", seen=None)
            return
        yield f"{actor.name} dies", over(names_client.without_ephemerals(after, i), i)
        if actor.name.startswith("writer"):
            lost = names_client.lose_session(after, i)
            yield f"{actor.name} loses its session, and goes on with another", lost
            if actor.ledger != ANY and w.ledgers[actor.ledger].state == "open":
                yield f"AutoRecovery fences ledger {actor.ledger}", after.ledger(actor.ledger, state="closed")
        elif actor.name.startswith("maker"):
            yield f"{actor.name} loses its session", names_client.without_ephemerals(after, i)

    def fault(self, state: World) -> str | None:
        """Say what is wrong: bytes that are missing, references that no process will delete, false answers."""
        w = state
        if w.wrong:
            return w.wrong
        paths = {node.path for node in w.nodes}
        with_children = {parent(path) for path in paths}
        for node in w.nodes:
            room, _, rest = node.path[1:].partition("/")
            if isinstance(node.data, Entry):
                if not bytes_there(w, node.data):
                    return f"the file /{rest} is without its bytes: ledger {node.data.ledger} hasn't {node.data.write}"
                if node.path in with_children:
                    return f"the file /{rest} has something below it"
            elif room == "L" and "/" in rest:
                wrong = self._leaked(w, node.path, node.data, node.version)
                if wrong is not None:
                    return wrong
            elif room == "L" and rest and w.ledgers[int(rest)].state == "deleted":
                return f"ledger {rest} is registered, and its bytes are deleted"
            elif room == "sp" and node.data is not None and node.data[0] == "ready":
                for entry in node.data[1]:
                    if not bytes_there(w, entry):
                        return f"the savepoint is ready, and {entry.write} of ledger {entry.ledger} is gone"
                    if f"/L/{entry.ledger}/s-s" not in paths:
                        return f"the savepoint is ready, and doesn't hold ledger {entry.ledger}"
        return None

    def _leaked(self, w: World, path: str, names: str, version: int) -> str | None:
        _, _, ledger, reference = path.split("/")
        if reference == "s-s":
            held = w.node(names_savepoints.SAVEPOINT) is not None
            return None if held else f"ledger {ledger} is held for ever by a savepoint that is gone"
        entry = w.file(names)
        if entry is not None and (entry.write, entry.generation, str(entry.ledger)) == (reference, version, ledger):
            return None
        return f"ledger {ledger} is held for ever by {reference}, which belongs to no file any more"

    def stuck(self, state: World) -> str | None:
        """Say which ledger no process will free, now that all is quiet."""
        for number, ledger in enumerate(state.ledgers):
            if ledger.state == "deleted" or state.below(f"/L/{number}"):
                continue
            node = state.node(f"/L/{number}")
            if node is not None and node.data[0] == "open" and state.node(f"/w/{node.data[1]}") is not None:
                continue
            return f"ledger {number} is leaked: nothing refers to it, and no process will free it"
        return None

    def canonical(self, state: World) -> World:
        """Forget what an actor that has ended had in hand."""
        actors = tuple(
            actor._replace(ledger=ANY, process="") if actor.at == "over" else actor for actor in state.actors
        )
        return state if actors == state.actors else state._replace(actors=actors)
