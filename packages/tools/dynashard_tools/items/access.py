"""What the commands for items work on: a backend by direct invocation, or a program's own tables by the library."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from dynashard_serving.declare import Exposed
from dynashard_serving.documents import Document
from dynashard_tools.connection import refuse_environment
from dynashard_tools.items.invocation import InvokedItems
from dynashard_tools.items.own_tables import OwnItems
from dynashard_tools.left_out import LeftOut
from dynashard_tools.program import program_of


class Items(Protocol):
    """The items of one entity, as JSON. Every method raises `CommandError` or a `DynashardError`."""

    def get(self, key: Mapping[str, Any], include: Sequence[str], *, consistent: bool) -> Document:
        """Return an item with its revision."""
        ...

    def put(self, item: Document, if_match: str | None) -> Document:
        """Create or replace an item; return it as stored."""
        ...

    def delete(self, key: Mapping[str, Any], if_match: str | None) -> None:
        """Delete an item."""
        ...

    def page(self, fields: Mapping[str, Any], options: Mapping[str, Any], left_out: LeftOut) -> Document:
        """Return a page of the listing that the fields select, with the options of REST that are set."""
        ...


def items_of(environment: str | None, exposed: Exposed) -> Items:
    """Return the items of an entity: of the program that `DYNASHARD_DB` names, or else of a backend.

    Raises:
        CommandError: an environment is named besides a program.

    Cost: none.
    """
    if (program := program_of(os.environ)) is None:
        return InvokedItems(environment, exposed)
    refuse_environment(environment)
    return OwnItems(program.db, exposed.entity)
