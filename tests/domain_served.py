"""What the sample domain declares, for tests that go through all of it."""

from typing import Final

from dynashard_serving.declare import FamilyListing
from dynashard_serving.domain import declared

ENTITIES: Final = declared().entities
FAMILY_LISTINGS: Final = tuple(each for each in declared().declarations.served if isinstance(each, FamilyListing))
