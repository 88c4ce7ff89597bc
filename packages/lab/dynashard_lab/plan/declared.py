"""What an entity's declaration gives to a plan: item size, indexes, placement, whether sort keys rise."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from math import ceil
from typing import Any, Final

from pydantic import ValidationError

from dynashard import Entity, definition
from dynashard.codec import item_size
from dynashard.entity import EntityDefinition, IndexDefinition
from dynashard.entity.checks import plain_types
from dynashard.entity.declaration import WrongDeclarationError
from dynashard.entity.key_times import time_format
from dynashard.errors import InputError
from dynashard.keys import KeyTemplate, TemplateField
from dynashard.placement import UNSHARDED
from dynashard.routing import Router
from dynashard.schema import REV, TYPE
from dynashard.topology import DeclaredTopology
from dynashard_lab.plan.following import Derived, copied, rolled_up
from dynashard_lab.plan.units import write_units
from dynashard_lab.plan.workload import IndexLoad
from dynashard_serving.domain import declared
from dynashard_tools.load.rows import Row

TENANT: Final = "tenant_id"
_REVISION: Final = "x" * 16
_TEXT_BYTES: Final = 20
_TIME_BYTES: Final = 27
_OTHER_BYTES: Final = 8
_KEYS_BYTES: Final = 60
"""Stored keys of table or index with their names, in a rough estimate."""


def derived(entity: EntityDefinition[Any], copies: float) -> tuple[Derived, ...]:
    """Return what the domain derives from an entity: its roll-ups, and its copies, of which a write changes so many."""
    found = declared().declarations
    rolled = [each for each in found.roll_ups if definition(each.of) is entity]
    copied_into = [definition(each.copy) for each in found.copies if definition(each.of) is entity]
    return (
        *(rolled_up(each.name, sum(len(levels) for levels in each.into.values())) for each in rolled),
        *(_copied(each, copies) for each in copied_into),
    )


def _copied(copy: EntityDefinition[Any], copies: float) -> Derived:
    size = estimated_bytes(copy)
    return copied(copy.name, copies, units=write_units(size), indexes=write_units(size) * len(copy.indexes))


class SampleError(ValueError):
    """A row of a sample does not fit the entity; the message names its line."""


@dataclass(slots=True)
class Sample:
    """Measured items of an entity.

    Attributes:
        items: how many there are.
        bytes: their stored sizes together.
        partitions: items by logical partition.
        indexes: entries by logical partition, of each index.
    """

    items: int = 0
    bytes: int = 0
    partitions: Counter[str] = field(default_factory=Counter)
    indexes: dict[str, Counter[str]] = field(default_factory=dict)

    @property
    def item_bytes(self) -> int:
        """The mean size, rounded up."""
        return ceil(self.bytes / self.items)


def sample_of(entity: EntityDefinition[Any], rows: Iterable[Row], tenant: str | None) -> Sample:
    """Return what the rows of a file are as stored items.

    Raises:
        SampleError: a row is not an item, or there is none.
    """
    found = Sample(indexes={name: Counter() for name in entity.indexes})
    router = Router(DeclaredTopology())
    for row in rows:
        if row.fields is None and row.reason is None:
            continue
        item = _item(entity, row, tenant)
        _add(found, entity, router, item)
    if not found.items:
        raise SampleError("the file has no items")
    return found


def _item(entity: EntityDefinition[Any], row: Row, tenant: str | None) -> Entity:
    if row.fields is None:
        raise SampleError(f"line {row.line}: {row.reason}")
    given = {name: value for name, value in row.fields.items() if name not in entity.attachments}
    if tenant is not None and TENANT in entity.model.model_fields:
        given.setdefault(TENANT, tenant)
    try:
        item: Entity = entity.model.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        advice = "; give one for all rows with --tenant" if where == TENANT else ""
        raise SampleError(f"line {row.line}: {where}: {first['msg']}{advice}") from error
    return item


def _add(found: Sample, entity: EntityDefinition[Any], router: Router, item: Entity) -> None:
    values: Mapping[str, Any] = item.__dict__
    try:
        key = entity.key_of(item)
        wire = {TYPE: {"S": entity.name}, REV: {"S": _REVISION}, **router.stored_key(entity, key)}
        for name, index in entity.indexes.items():
            wire |= router.index_attributes(entity, index, key, values)
            entry = entity.entry(index, values)
            if entry is not None:
                found.indexes[name][entry.partition] += 1
        wire |= entity.encode(values)
    except InputError as error:
        raise SampleError(f"item {found.items + 1}: {error}") from error
    found.items += 1
    found.bytes += item_size(wire)
    found.partitions[key.partition] += 1


def estimated_bytes(entity: EntityDefinition[Any]) -> int:
    """Return a rough size of an item, from the names and types of its fields."""
    fields = entity.model.model_fields
    size = sum(
        len(name) + _typical(field.annotation) for name, field in fields.items() if name not in entity.attachments
    )
    return size + len(TYPE) + len(entity.name) + len(REV) + len(_REVISION) + _KEYS_BYTES * (1 + len(entity.indexes))


def _typical(annotation: Any) -> int:
    types = plain_types(annotation)
    if any(issubclass(each, date) for each in types):
        return _TIME_BYTES
    return _TEXT_BYTES if any(issubclass(each, str) for each in types) or not types else _OTHER_BYTES


def rises(entity: EntityDefinition[Any], sort: KeyTemplate) -> bool:
    """Whether sort keys rise with time: their first field is a generated id, which is time-ordered, or a time."""
    first = next((part.name for part in sort.parts if isinstance(part, TemplateField)), None)
    if first is None:
        return False
    types = plain_types(entity.model.model_fields[first].annotation)
    return first in entity.generated_fields or any(issubclass(each, date | datetime) for each in types)


def timed(entity: EntityDefinition[Any]) -> bool:
    """Whether sort keys begin with their time in a format by which epochs can place them."""
    if not entity.sort.parts:
        return False
    try:
        time_format(entity.model, entity.sort)
    except WrongDeclarationError:
        return False
    return True


def declared_count(entity: EntityDefinition[Any]) -> int:
    """Return the declared shard count, `UNSHARDED` without shards."""
    return entity.shards.count if entity.shards else UNSHARDED


@dataclass(frozen=True, slots=True)
class Given:
    """What a caller knows about indexes, by name; it takes precedence over what is measured or assumed.

    Attributes:
        hottest: shares of the hottest logical partition.
        key_changes: parts of the writes that change the index key.
        entry_bytes: stored sizes of entries.
        counts: shard counts in force; None for the declared ones.
    """

    hottest: Mapping[str, float] = field(default_factory=dict)
    key_changes: Mapping[str, float] = field(default_factory=dict)
    entry_bytes: Mapping[str, float] = field(default_factory=dict)
    counts: Mapping[str, int] | None = None

    @property
    def names(self) -> set[str]:
        """The indexes that are named."""
        return {*self.hottest, *self.key_changes, *self.entry_bytes}


def index_loads(
    entity: EntityDefinition[Any], hottest: float, sample: Sample | None, given: Given
) -> tuple[IndexLoad, ...]:
    """Return the load of each index, as far as it is known.

    Args:
        entity: the compiled declaration.
        hottest: the share of the table's hottest logical partition.
        sample: measured items; without them every item is taken to be in every index.
        given: what is known otherwise.

    Raises:
        ValueError: `given` names an index that does not exist, or a value is out of its bounds.
    """
    for name in sorted(given.names - entity.indexes.keys()):
        raise ValueError(f"{entity.name} has no index {name!r}; it has {', '.join(entity.indexes) or 'none'}")
    return tuple(_index_load(entity, index, hottest, sample, given) for index in entity.indexes.values())


def _index_load(
    entity: EntityDefinition[Any], index: IndexDefinition, hottest: float, sample: Sample | None, given: Given
) -> IndexLoad:
    name = index.name
    counts = sample.indexes[name] if sample else Counter[str]()
    declared = index.shards.count if index.shards else UNSHARDED
    load = IndexLoad(
        name,
        share=counts.total() / sample.items if sample else 1.0,
        key_changes=given.key_changes.get(name, 0.0),
        declared=(declared if given.counts is None else given.counts[name]) or None,
        entry_bytes=round(given.entry_bytes[name]) if name in given.entry_bytes else None,
        rising=rises(entity, index.sort),
        replica=index.replica,
    )
    if name in given.hottest:
        return replace(load, hottest=given.hottest[name])
    if not set(index.partition.fields) >= set(entity.partition.fields):
        return replace(load, assumed="all its entries are in one logical partition")
    if sample and counts:
        # The sample says how the entries of a logical partition are spread; `hottest` how large that partition is.
        within = max(counts.values()) / counts.total() / (max(sample.partitions.values()) / sample.items)
        return replace(load, hottest=min(1.0, hottest * within))
    same = set(index.partition.fields) == set(entity.partition.fields)
    assumed = "" if same else f"its hottest partition is as hot as that of {entity.name}"
    return replace(load, hottest=hottest, assumed=assumed)
