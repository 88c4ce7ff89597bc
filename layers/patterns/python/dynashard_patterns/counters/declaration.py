"""What counters are declared with: the class of their parts, and their bounds."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from dynashard.entity import Entity, Key, Shards, definition
from dynashard.entity.model import EntityType
from dynashard.errors import DeclarationError
from dynashard.placement import MAX_PARTS, PART_DIGITS, PARTS
from dynashard.schema import MAX_SHARDS
from dynashard_patterns.counters.shares import LIMIT, Bounds

_SORT: Final = f"{{part:0{PART_DIGITS}d}}"
_OWN: Final = frozenset({"part", "value", "spare"})
_BOUNDS: Final = "__dynashard_bounds__"
_EXAMPLE: Final = 'key=Key(partition="{tenant_id}:{id}")'


class _CounterType(EntityType):
    """Gives a counter's class the key and the placement of parts, and keeps its bounds."""

    def __new__(
        cls,
        called: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        floor: int | None = None,
        ceiling: int | None = None,
        **declared: Any,
    ) -> Any:
        name, key = declared.get("name"), declared.get("key")
        if name is None and key is None:
            return super().__new__(cls, called, bases, namespace, **declared)
        entity = name if isinstance(name, str) else called
        for wrong in ("indexes", "expires", "unique", "version", "upgrade"):
            if declared.get(wrong):
                raise DeclarationError(entity, f"is a counter, which has no {wrong}: leave it out")
        if isinstance(key, Key):
            if key.sort is not None:
                raise DeclarationError(entity, f"is a counter, whose sort key is that of its parts: write {_EXAMPLE}")
            declared["key"] = replace(key, sort=_SORT)
        shards = declared.get("shards")
        if shards is None or isinstance(shards, Shards):
            declared["shards"] = _parts(entity, shards or Shards(start=1))
        bounds = _checked(entity, floor, ceiling)
        model: Any = super().__new__(cls, called, bases, namespace, **declared)
        compiled = definition(model)
        if others := sorted(model.model_fields.keys() - _OWN - set(compiled.partition_fields)):
            raise DeclarationError(
                entity, f"is a counter, and {others[0]} is not a part of its key: store it in an entity of its own"
            )
        setattr(model, _BOUNDS, bounds)
        return model


if TYPE_CHECKING:
    # As for `Entity`, whose metaclass type checkers take for that of pydantic.
    from pydantic._internal._model_construction import ModelMetaclass as _Metaclass
else:
    _Metaclass = _CounterType


class Counter(Entity, metaclass=_Metaclass):
    """A part of a counter; derive the counters of a kind from it. A counter begins at 0.

        class Stock(Counter, name="shop.v1.Stock", key=Key(partition="{tenant_id}:{id}"), floor=0, shards=Shards(4)):
            tenant_id: str
            id: str

    Class arguments:
        name: the entity's name.
        key: names the counter by the fields of `partition`; without `sort`.
        floor: what it may not fall below, at most 0; None for no floor.
        ceiling: what it may not rise above, at least 0; None for no ceiling.
        shards: with how many parts it begins and how many it may get by itself, `Shards(start=1, max=64)` if left out.
            One part takes some hundred changes a second.

    Fields: those of the key, and no others. `part`, `value` and `spare` are those of a part. Change a counter by
    `CounterStore` only.

    Raises `DeclarationError` while the class is created.
    """

    part: int = 0
    value: int = 0
    spare: int = 0


def bounds_of(model: type[Counter]) -> Bounds:
    """Return the bounds of a counter's class; raises `DeclarationError` if it declares no counter itself."""
    bounds: Bounds | None = model.__dict__.get(_BOUNDS)
    if bounds is None:
        raise DeclarationError(model.__name__, f"declares no counter: write class Stock(Counter, name=..., {_EXAMPLE})")
    return bounds


def _parts(entity: str, shards: Shards) -> Shards:
    if shards.placement not in ("calculated", PARTS.name) or shards.adopt or shards.read_replicas:
        raise DeclarationError(entity, "is a counter, whose shards are its parts: write shards=Shards(4)")
    return replace(shards, placement=PARTS.name, max=MAX_PARTS if shards.max == MAX_SHARDS else shards.max)


def _checked(entity: str, floor: int | None, ceiling: int | None) -> Bounds:
    for name, bound in (("floor", floor), ("ceiling", ceiling)):
        if bound is None:
            continue
        if isinstance(bound, bool) or not isinstance(bound, int) or abs(bound) > LIMIT:
            raise DeclarationError(entity, f"{name} is {bound!r}; it must be a whole number of at most 38 digits")
        if (bound > 0) if name == "floor" else (bound < 0):
            side = "at most" if name == "floor" else "at least"
            raise DeclarationError(entity, f"{name} is {bound}; it must be {side} 0, because a counter begins at 0")
    return Bounds(floor, ceiling)
