"""`PickledByName`: the base of data classes that travel from the driver to tasks.

Driver and executors may have different versions of this library, where somebody has upgraded one of the two. Python
pickles a frozen data class with slots by the places of its fields. A version with another field in between then takes
each later value for that of another field, without an error. A task would read or write by options that nobody gave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from eos.errors import InvalidInput


class PickledByName:
    """Is pickled by the names of its fields, and refused where its class has others."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]  # of the data class that is made of it

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[type[Any], dict[str, Any]]]:
        return _restored, (type(self), {name: getattr(self, name) for name in self.__dataclass_fields__})


def _restored(kind: type[PickledByName], values: Mapping[str, Any]) -> PickledByName:
    differ = sorted(values.keys() ^ kind.__dataclass_fields__.keys())
    if differ:
        raise InvalidInput(
            f"The driver and this process have different versions of spark-pulsar-eos. {kind.__name__} differs in "
            f"{', '.join(differ)}. This process does nothing. Install the same version on the driver and on all "
            "executors."
        )
    return kind(**values)
