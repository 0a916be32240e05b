"""What is said when a cluster can't be used."""

from __future__ import annotations

from eos.errors import InvalidInput, NetworkError, NoCredentials


def out_of_reach(who: str, service_url: str, error: NetworkError) -> InvalidInput:
    """Return the error to raise. Args: who can't use the cluster, such as "The sink"; its address; what was seen."""
    if isinstance(error, NoCredentials):
        return InvalidInput(f"{who} can't use {service_url}: {error}.")
    return InvalidInput(f"{who} can't use {service_url}: {error}. Check the address, and that the broker runs.")
