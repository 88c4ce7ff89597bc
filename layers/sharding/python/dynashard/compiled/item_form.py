"""Generated functions that make entities of stored items, as DynamoDB's JSON has them; see `item_functions`.

They take two thirds of the time of pydantic-core, which looks each value up by its path.
"""

from collections.abc import Callable, Mapping
from typing import Any

from dynashard.compiled.item_functions import Field, Function, only_fields, pair_stamps
from dynashard.compiled.stored_form import NOWHERE, unwrapped
from dynashard.record import revision_in
from dynashard.schema import EXPIRES_AT


def item_form(entity: Any) -> Callable[[Mapping[str, Any]], Any] | None:
    """Return a function that makes the entity of a stored item, with its revision, or None if it does not know it.

    None if a field is not plain, or if an instance is more than its validated fields.
    """
    outer, inner, _ = unwrapped(entity.model)
    found: Mapping[str, Any] = inner["fields"]
    fields = [Field(number, name, each["schema"]) for number, (name, each) in enumerate(found.items())]
    if entity.attachments or any("validation_alias" in each for each in found.values()):
        return None
    if not all(field.tag for field in fields) or not only_fields(entity.model, outer):
        return None
    for field in fields:
        if field.name == entity.expires:
            # Its attribute is the time of expiry, with which an item takes the ordinary way.
            field.attribute = NOWHERE
    pair_stamps(fields, entity)
    function = _ItemFunction(fields, expires=bool(entity.expires))
    function.assemble(entity.model, outer[0].get("config"))
    return function.made("dynashard.compiled.item_form", KeyError, TypeError, AttributeError)


class _ItemFunction(Function):
    """Finds attributes in a mapping. What is not stored as it should be is an error of its access."""

    argument = "stored_item"

    def __init__(self, fields: list[Field], *, expires: bool) -> None:
        super().__init__(fields)
        self._names |= {"absent": object(), "revision_in": revision_in}
        if expires:
            self._unusual.append(f"{EXPIRES_AT!r} in {self.argument}")

    def _lacks(self, field: Field) -> str:
        return self._is_not_typed(field, f"{self.argument}[{field.attribute!r}]")

    def _is_absent(self, field: Field) -> str:
        return f"(stored := {self.argument}.get({field.attribute!r}, absent)) is absent"

    def _is_odd(self, field: Field) -> str:
        return self._is_not_typed(field, "stored")

    def _is_same(self, other: Field) -> str:
        return f"stored == {self.argument}.get({other.attribute!r})"

    def _is_not_typed(self, field: Field, attribute: str) -> str:
        kind = "bool" if field.tag == "BOOL" else "str"
        return f"({field.value} := {attribute}[{field.tag!r}]).__class__ is not {kind}"

    def _place(self, values: dict[str, str]) -> None:
        """Add nothing: the caller of the function compares the item with its key."""

    def _revise(self) -> None:
        self._lines.append(f"revision = revision_in({self.argument})")
