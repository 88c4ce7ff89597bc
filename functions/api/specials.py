"""All routes that are no entity's resource."""

from typing import Final

from functions.api.special import Special

SPECIALS: Final[tuple[Special, ...]] = ()
