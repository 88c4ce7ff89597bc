"""All routes that are no entity's resource."""

from typing import Final

from functions.api.follows import EDGES
from functions.api.plays import ROLL_UPS
from functions.api.shares import REVENUE
from functions.api.special import Special

SPECIALS: Final[tuple[Special, ...]] = (*EDGES, ROLL_UPS, REVENUE)
