"""All routes besides the resources of entities."""

from typing import Final

from functions.api.extra_endpoint import ExtraEndpoint
from functions.api.follows import EDGES
from functions.api.plays import ROLL_UPS
from functions.api.shares import REVENUE

EXTRA_ENDPOINTS: Final[tuple[ExtraEndpoint, ...]] = (*EDGES, ROLL_UPS, REVENUE)
