"""Roll-ups: sums over items by spans of time, which count each item of the table's stream exactly once."""

from dynashard_patterns.rollups.counting import ItemCounter, Tally
from dynashard_patterns.rollups.dividing import divide
from dynashard_patterns.rollups.levels import Level
from dynashard_patterns.rollups.repair import Drift, RepairResult, RollUpRepair
from dynashard_patterns.rollups.roll_ups import RollUps

__all__ = [
    "Drift",
    "ItemCounter",
    "Level",
    "RepairResult",
    "RollUpRepair",
    "RollUps",
    "Tally",
    "divide",
]
