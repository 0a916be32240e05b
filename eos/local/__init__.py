"""A real Pulsar, with BookKeeper and ZooKeeper, on this machine, without containers.

`LocalPulsar` is for tests and drills; `eos local up|down|status` is for people. Both run
the official broker from Maven Central with transactions on.
"""

from eos.local.checks import LocalError
from eos.local.pulsar import LocalPulsar
from eos.local.settings import Ports

__all__ = ["LocalError", "LocalPulsar", "Ports"]
