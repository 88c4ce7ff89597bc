"""Roll-ups: sums over items by spans of time, exactly in step with what the table's stream tells."""

from dynashard.rollups.counting import Counter, Tally
from dynashard.rollups.dividing import divide
from dynashard.rollups.levels import Level
from dynashard.rollups.mending import Drift, Mended, Mender
from dynashard.rollups.roll_ups import RollUps

__all__ = ["Counter", "Drift", "Level", "Mended", "Mender", "RollUps", "Tally", "divide"]
