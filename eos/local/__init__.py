"""A real Pulsar, with BookKeeper and ZooKeeper, on this machine, without containers.

`LocalPulsar`, all of it in one process, and `LocalCluster`, whose parts can be killed alone, are for tests and drills.
`eos local up|down|status` is for people. They run the official broker from Maven Central with transactions on.
"""

from eos.local.checks import LocalError
from eos.local.cluster import LocalCluster
from eos.local.member import Member, MemberState
from eos.local.pulsar import LocalPulsar
from eos.local.settings import Ports

__all__ = ["LocalCluster", "LocalError", "LocalPulsar", "Member", "MemberState", "Ports"]
