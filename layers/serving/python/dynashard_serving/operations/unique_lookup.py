"""Listings that are chosen by unique fields: at most one item has their values, so it is looked up."""

from collections.abc import Mapping
from typing import Any

from dynashard.entity.uniqueness import UniqueDefinition
from dynashard.reads.filters import is_operators
from dynashard_serving.documents import TENANT
from dynashard_serving.operations.requests import List
from dynashard_serving.operations.served import Served

Named = tuple[UniqueDefinition, Mapping[str, Any]]
"""Unique fields, and the values that an item is looked up by."""


def unique_named(served: Served, request: List) -> Named | None:
    """Return the unique fields that choose a listing, if nothing else does; None for every other listing.

    While the reservations of stored items are being built, listings by the fields read the index or the table.

    Raises:
        ValidationFailedError, InvalidValueError: a value is not one of its field.
    """
    choice = request.choice
    ranged = (choice.prefix, choice.start, choice.end, request.distinct, request.paging.cursor)
    if any(each is not None for each in ranged):
        return None
    given = {TENANT: [choice.tenant]}
    for place in (choice.partition, choice.sort, choice.filters):
        if any(map(is_operators, place.values())):
            return None
        given |= {name: value if isinstance(value, list) else [value] for name, value in place.items()}
    for unique in served.definition.unique:
        if given.keys() == unique.named and not unique.building and all(len(values) == 1 for values in given.values()):
            check = served.definition.assignment.check
            values = {name: served.value(name, value, name) for name, [value] in given.items()}
            return unique, {name: check(name, value) for name, value in values.items()}
    return None
