"""The name of a sink's control topic, and of the subscription that holds its records."""

from __future__ import annotations

import re
from typing import Final

from eos.errors import InvalidInput

DEFAULT_NAMESPACE: Final = "public/default"
"""Where a control topic is looked for that no option places elsewhere."""

HOLD: Final = "__eos-hold"
"""The durable subscription that retains the control topic's records."""

CONTROL: Final = "__eos-"
"""The beginning of the name of every control topic."""

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
_TOPIC = re.compile(r"(?:(persistent|non-persistent)://)?(?:([^/]+)/([^/]+)/)?([^/]+)")


def control_topic(name: str, topic: str) -> str:
    """Name the control topic of the sink or job `name`, in the tenant and namespace of the data topic `topic`.

    Raises InvalidInput for a name that can't be part of a topic's name.
    """
    if _NAME.fullmatch(name) is None:
        raise InvalidInput(
            f'"{name}" cannot name a sink or a job. Use up to 100 letters, digits, ".", "_" and "-", with a letter or'
            " digit at both ends"
        )
    match = _TOPIC.fullmatch(topic)
    if match is None or match[1] == "non-persistent":
        raise InvalidInput(f'"{topic}" is not a persistent topic. One looks like "persistent://public/default/flights"')
    return f"persistent://{match[2] or 'public'}/{match[3] or 'default'}/{CONTROL}{name}"


def control_topic_in(namespace: str, name: str) -> str:
    """Name the control topic of the sink or job `name` in a "tenant/namespace". Raises InvalidInput for wrong names."""
    return control_topic(name, f"persistent://{namespace}/any")


def abort_command(name: str, namespace: str) -> str:
    """Return the command that ends what a dead driver of a sink in a "tenant/namespace" has left open."""
    return f"eos sink abort {name}{_placed(namespace)}"


def skip_command(name: str, namespace: str, batch_id: int) -> str:
    """Return the command by which a sink in a "tenant/namespace" goes on without the rows of a batch."""
    return f"eos sink skip {name} --batch {batch_id}{_placed(namespace)}"


def _placed(namespace: str) -> str:
    return "" if namespace == DEFAULT_NAMESPACE else f" --namespace {namespace}"
