"""How many shards a logical partition has now.

Everything that routes asks a `Topology` for a `View` first and works under that view until it is done.
"""

from dynashard.topology.declared import DeclaredCounts, declared_counts
from dynashard.topology.leased import LeasedTopology
from dynashard.topology.records import DEFAULT_LEASE, Record, family_of, index_key, partition_key
from dynashard.topology.table import TopologyTable
from dynashard.topology.views import DeclaredTopology, Phase, Topology, View

__all__ = [
    "DEFAULT_LEASE",
    "DeclaredCounts",
    "DeclaredTopology",
    "LeasedTopology",
    "Phase",
    "Record",
    "Topology",
    "TopologyTable",
    "View",
    "declared_counts",
    "family_of",
    "index_key",
    "partition_key",
]
