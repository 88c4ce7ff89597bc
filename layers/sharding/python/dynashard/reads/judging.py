"""What callers get of the rows of a listing: the items, without those that do not fit their entity."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from dynashard.entity import EntityDefinition, Undecodable, judged
from dynashard.entity.judging import verdict
from dynashard.reads.entries import lacking_key
from dynashard.reads.query import Query
from dynashard.repository.left_out import leave_out
from dynashard.schema import PK, SK, TYPE

_TO_JUDGE: Final = frozenset({dict, Undecodable})


class Judge:
    """Decodes the rows of a listing, by the entity of each.

    `decoders` are the entities that are listed, by name, the first of which has rows without a type.
    """

    def __init__(
        self, decoders: Mapping[str, EntityDefinition[Any]], query: Query, revision_as: str | None = None
    ) -> None:
        self._first = next(iter(decoders.values()))
        self._decoders = decoders
        self._index = query.index_definition
        self._fields = query.fields
        self._revision_as = revision_as
        self._strict = query.strict

    def split(self, rows: list[Any]) -> tuple[list[Any], list[Undecodable]]:
        """Return what a caller gets, and what is left out.

        Rows are stored items, or what a reader made of them: entities, verdicts, or fields and documents as members of
        tuples.

        Raises `UndecodableItemError` if it is strict and something would be left out.
        """
        undecodable: list[Undecodable] = []
        if _TO_JUDGE.isdisjoint(map(type, rows)):
            return rows if self._fields is None else [row[0] for row in rows], undecodable
        items: list[Any] = []
        for row in rows:
            found = self._judged(row) if row.__class__ is dict else row
            (undecodable if found.__class__ is Undecodable else items).append(found)
        leave_out(undecodable, strict=self._strict)
        return items if self._fields is None else [item[0] for item in items], undecodable

    def fits(self, row: Mapping[str, Any]) -> bool:
        """Whether a stored item fits its entity."""
        return self._judged(row).__class__ is not Undecodable

    def _entity_of(self, row: Mapping[str, Any]) -> EntityDefinition[Any]:
        name = row[TYPE].get("S") if TYPE in row else None
        return self._decoders.get(name or "", self._first)

    def _judged(self, row: Mapping[str, Any]) -> Any:
        entity = self._entity_of(row)
        if self._index is not None and (missing := lacking_key(self._index, row)) is not None:
            at = f"{row[PK]['S']} / {row[SK]['S']}"
            return verdict(row, f"{entity.name} at {at} does not fit: it has no {missing}, so it is not in the index")
        if self._fields is not None:
            found = judged(partial(entity.part, fields=self._fields), row)
            return found if isinstance(found, Undecodable) else (found,)
        if self._revision_as is not None:
            return judged(partial(entity.document, revision=self._revision_as), row)
        return judged(entity.decode, row)
