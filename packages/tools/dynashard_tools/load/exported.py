"""Rows of exports: what `dynashard export` and `dynashard account export` have written, as `dynashard load` takes it.

An export has what the server sets, which a load sets anew. An account's export has a line `{"entity": ..., "item":
{...}}` for each item of every entity.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar

from dynashard import Entity
from dynashard.entity import EntityDefinition
from dynashard_serving.documents import REVISION, without
from dynashard_tools.account.exporting import ENTITY, ITEM
from dynashard_tools.cells import is_plain, value_of
from dynashard_tools.load.rows import Row

E = TypeVar("E", bound=Entity)


def is_account_line(entity: EntityDefinition[Any], fields: Mapping[str, Any]) -> bool:
    """Whether a row is a line of an account's export, and not an item that has fields of these names."""
    line = {ENTITY, ITEM}
    return fields.keys() == line and not line <= entity.model.model_fields.keys()


class ExportedRows(Generic[E]):
    """Makes rows of an entity of the lines of an export.

    Attributes:
        others: how many lines were left out, because they are of other entities.
    """

    def __init__(self, entity: EntityDefinition[E], *, cells: bool) -> None:
        """Create for an entity; `cells` if the export is CSV, whose values are all texts."""
        self._entity = entity
        self._set_anew = {*entity.server_fields, *entity.model.model_computed_fields, REVISION}
        fields = entity.model.model_fields.items() if cells else ()
        self._json = {name for name, field in fields if not is_plain(field.annotation)}
        self.others = 0

    def row(self, row: Row) -> Row:
        """Return a row without what the server sets; an empty one for a line of another entity."""
        fields = row.fields
        if fields is None:
            return row
        if is_account_line(self._entity, fields):
            if fields[ENTITY] != self._entity.name:
                self.others += 1
                return replace(row, fields=None)
            fields = fields[ITEM]
            if not isinstance(fields, dict):
                return replace(row, fields=None, reason="its item is not a JSON object")
        fields = without(fields, self._set_anew)
        return replace(row, fields={name: self._value(name, value) for name, value in fields.items()})

    def item(self, fields: Mapping[str, Any]) -> E:
        """Return the item of a row. Its values are read as JSON, as they were written; bytes are base64, for example.

        Raises `ValidationError`.
        """
        # A float writes the same number: what an export has as a number was one.
        return self._entity.model.model_validate_json(json.dumps(fields, default=float))

    def _value(self, name: str, value: Any) -> Any:
        return value_of(value) if name in self._json else value
