"""Single items and pages of a program's own tables, by the library alone: no backend, and so no tenants."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from dynashard import Collection, Dynashard, Entity
from dynashard.cures import hint
from dynashard.reads import index_of
from dynashard.reads.filters import is_operators
from dynashard.reads.operators import PARTS
from dynashard_serving.documents import REVISION, Document, part, representation, validated, without
from dynashard_tools.failure import CommandError
from dynashard_tools.left_out import LeftOut

_NAMES: Final = {"from": "start", "to": "end"}
"""Options that Python calls otherwise than the command line."""
_FLAGS: Final = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class OwnItems:
    """The items of one entity of a program; see `Items`."""

    db: Dynashard
    model: type[Entity]

    @property
    def _items(self) -> Collection[Entity]:
        return self.db.collection(self.model)

    def get(self, key: Mapping[str, Any], include: Sequence[str], *, consistent: bool) -> Document:
        """Return an item."""
        return _document(self._items.get(self._typed(key), consistent=consistent, include=include))

    def put(self, item: Document, if_match: str | None) -> Document:
        """Create or replace an item; return it as stored."""
        ignored = {REVISION, *self._items.entity.server_fields}
        made = validated(self.model, without(item, ignored))
        return _document(self._items.replace(made, if_match=if_match))

    def delete(self, key: Mapping[str, Any], if_match: str | None) -> None:
        """Delete an item."""
        self._items.delete(self._typed(key), if_match=if_match)

    def page(self, fields: Mapping[str, Any], options: Mapping[str, Any], left_out: LeftOut) -> Document:
        """Return a page. Fields that are not of the listing's keys filter it."""
        given, entity = self._typed(fields), self._items.entity
        name = options.get("index") or index_of(entity, given)
        # The listing refuses an index that does not exist.
        by = entity.indexes.get(name, entity) if name else entity
        partition = {each: given.pop(each) for each in by.partition.fields if each in given}
        sort = {each: given.pop(each) for each in by.sort.fields if each in given}
        chosen = {_NAMES.get(each, each): value for each, value in options.items()}
        page = self._items.list(partition, **{**chosen, "index": name, "filters": given, **sort})
        left_out.add(page.undecodable)
        documents = [part(self.model, each) if isinstance(each, Mapping) else _document(each) for each in page]
        incomplete = {} if page.complete else {"incomplete": True}
        return {"items": documents, "cursor": page.cursor, **incomplete}

    def _typed(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        entity = self._items.entity
        for name, value in fields.items():
            if name not in self.model.model_fields:
                raise CommandError(f"{entity.name} has no field {name}{hint(name, list(self.model.model_fields))}")
            if isinstance(value, list):
                raise CommandError(f"{name} is given {len(value)} times: give one value")
        check = entity.assignment.check
        return {
            name: {word: _operand(partial(check, name), word, each) for word, each in value.items()}
            if is_operators(value)
            else check(name, value)
            for name, value in fields.items()
        }


def _operand(check: Callable[[Any], Any], word: str, value: Any) -> Any:
    if word == "in":
        return [check(each) for each in value]
    if word == "exists":
        if value not in _FLAGS:
            raise CommandError(f"exists is {value!r}; write one of {', '.join(_FLAGS)}")
        return _FLAGS[value]
    return value if word in PARTS else check(value)


def _document(item: Entity) -> Document:
    return representation(item, item.revision)
