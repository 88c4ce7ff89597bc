"""The shard map: how many shards a logical partition has now.

An operation asks a `Topology` for a `View` first, and runs under that view until it ends.
"""

from dynashard.topology.declared import DeclaredCounts, DeclaredTopology, declared_counts
from dynashard.topology.epochs import Epoch, Epochs, EpochState
from dynashard.topology.leased import LeasedTopology
from dynashard.topology.records import DEFAULT_LEASE, Record, family_of, index_key, partition_key
from dynashard.topology.table import TopologyTable
from dynashard.topology.views import Phase, Topology, View

__all__ = [
    "DEFAULT_LEASE",
    "DeclaredCounts",
    "DeclaredTopology",
    "Epoch",
    "EpochState",
    "Epochs",
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
