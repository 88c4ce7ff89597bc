"""Narrow listings to the items that their caller may read.

An owner rule becomes an index partition or a filter, which DynamoDB applies. A policy judges each item of a page after
it is read. Either way a page costs what it costs without the rule, and may be short.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dynashard.entity import definition
from dynashard.reads import Filter, Page
from dynashard_serving.access import Caller
from dynashard_serving.documents import TENANT
from dynashard_serving.operations.choosing import Options
from dynashard_serving.operations.permits import NotPermittedError, Permit, owners_of
from dynashard_serving.operations.served import Served


def narrowed(served: Served, permit: Permit, options: Options) -> Options:
    """Return the arguments of a listing for the items whose owner its caller is.

    Raises:
        NotPermittedError: the request selects the items of another owner.
    """
    rules = permit.rules
    if rules is None or permit.owner is None or rules.owner_field is None:
        return options
    owner = rules.owner_field
    fields = served.partition_fields(options["index"])
    if owner in fields:
        refuse_others(permit, options["partition"])
        return options
    # What selects sort keys of the table selects the same items here: the sort key of this index is the table's.
    if rules.index is not None and options["index"] is None and not fields and not options["consistent"]:
        return {**options, "index": rules.index, "partition": {**options["partition"], owner: permit.owner}}
    return {**options, "filters": [*options["filters"], Filter(owner, "=", permit.owner)]}


def refuse_others(permit: Permit, partition: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
    """Refuse logical partitions that are of another owner than the caller.

    Raises:
        NotPermittedError: it says of whose items the caller may ask.
    """
    field = "" if permit.rules is None else permit.rules.owner_field or ""
    if owners_of(partition, field) != {permit.owner}:
        raise NotPermittedError(f"{permit.right} of {permit.name} is for {field}={permit.owner} only.")


def refuse_unjudged(permit: Permit, **asked: Any) -> None:
    """Refuse what a listing cannot do if a policy judges its items after they are read.

    A repeated item may be left out in favour of one that the caller may not read, and a refusal would name items.

    Raises:
        NotPermittedError: it names what to leave out.
    """
    if permit.judges_each and (names := [name for name, given in asked.items() if given]):
        raise NotPermittedError(f"{permit.name} has a policy, which {names[0]} would go round: leave out {names[0]}.")


def judged(read: Callable[..., Page[Any]], permits: Mapping[type[Any], Permit]) -> Callable[..., Page[Any]]:
    """Return what reads a page without the items that their caller may not read, by the permit for each class."""

    def page(**options: Any) -> Page[Any]:
        found = read(**options)
        return replace(found, items=[item for item in found.items if permits[type(item)].allows(item)])

    return page


def family_permits(
    members: Collection[Served], caller: Caller | None, partition: Mapping[str, Any] | Sequence[Mapping[str, Any]]
) -> Mapping[type[Any], Permit]:
    """Return the permit to list each of the entities that are listed as one.

    Raises:
        NotPermittedError: the caller may not list one of them, or not of this partition.
    """
    permits = {each.entity: each.permit("list", caller) for each in members}
    for model, permit in permits.items():
        owner = None if permit.rules is None or permit.owner is None else permit.rules.owner_field
        if owner is not None and owner != TENANT and owner in definition(model).partition_fields:
            refuse_others(permit, partition)
    return permits
