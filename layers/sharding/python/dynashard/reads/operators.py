"""Which operators a filter on a field can have, by the field's type: one table for REST, direct invocation and docs."""

from collections.abc import Sequence
from decimal import Decimal
from enum import Enum
from types import NoneType
from typing import Any, Final, Literal, get_args, get_origin

from dynashard.entity import EntityDefinition
from dynashard.entity.checks import plain_types
from dynashard.keys import KeyTemplate
from dynashard.reads.filters import WORDS
from dynashard.reads.key_ranges import RANGES, TIMES, ranged_operators

EQUALITIES: Final = ("eq", "ne", "in")
COMPARISONS: Final = ("gt", "gte", "lt", "lte")
PARTS: Final = ("prefix", "contains")
_ORDERED: Final = (int, float, Decimal, *TIMES)
_COLLECTIONS: Final = (list, set, frozenset)
RANGE_WORDS: Final = frozenset(word for word, operator in WORDS.items() if operator in RANGES)
"""The words that a range of sort keys can stand for."""


def operators_of(entity: EntityDefinition[Any], name: str) -> tuple[str, ...]:
    """Return the words that a filter on a field takes, `eq` first.

    Choices and flags have no order, texts have that of their UTF-8 bytes, and only what may be None may not exist. A
    list or a set of texts is asked whether it contains one.
    """
    annotation = entity.model.model_fields[name].annotation
    types = plain_types(annotation)
    exists = ("exists",) if NoneType in types or name in entity.optional or _may_be_none(annotation) else ()
    known = types - {NoneType}
    if not known:
        return (*_of_collection(annotation), *exists)
    if known == {bool}:
        return ("eq", "ne", *exists)
    if _is_choice(annotation) or any(issubclass(each, Enum) for each in known):
        return (*EQUALITIES, *exists)
    if name == entity.expires or all(issubclass(each, _ORDERED) and each is not bool for each in known):
        return (*EQUALITIES, *COMPARISONS, *exists)
    return (*EQUALITIES, *((*COMPARISONS, *PARTS) if known == {str} else ()), *exists)


def ranged_words(entity: EntityDefinition[Any], template: KeyTemplate, name: str) -> tuple[str, ...]:
    """Return the words that choose a range of sort keys by one of their first fields, without a declared filter."""
    ranged = ranged_operators(entity, template, name)
    return tuple(word for word, operator in WORDS.items() if operator in ranged)


def _of_collection(annotation: Any) -> Sequence[str]:
    for each in (annotation, *get_args(annotation)):
        if get_origin(each) in _COLLECTIONS and plain_types(get_args(each)[0]) == {str}:
            return ("contains",)
    return ("eq", "ne")


def _may_be_none(annotation: Any) -> bool:
    return NoneType in get_args(annotation)


def _is_choice(annotation: Any) -> bool:
    return get_origin(annotation) is Literal or any(get_origin(each) is Literal for each in get_args(annotation))
