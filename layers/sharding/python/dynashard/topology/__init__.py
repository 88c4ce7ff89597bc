"""How many shards a logical partition has now.

Everything that routes asks a `Topology` for a `View` first and works under that view until it is done.
"""

from dynashard.topology.views import DeclaredTopology, Phase, Topology, View

__all__ = ["DeclaredTopology", "Phase", "Topology", "View"]
