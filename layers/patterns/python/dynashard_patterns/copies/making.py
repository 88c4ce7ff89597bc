"""Make a copy from fields of its source, whichever version of the software wrote the source."""

from typing import Any, TypeVar

from pydantic import ValidationError

from dynashard.entity import Entity, definition

C = TypeVar("C", bound=Entity)


def copy_of(model: type[C], source: Entity, /, **fields: Any) -> C:
    """Return an item of `model` with these fields, and with the others that the source has under the same names.

    What the source has from another version is taken over as it is read: unknown members of enums and literals, and
    no value for a required field. All else is validated, as `model(...)` does.

    Args:
        model: the entity of the copies.
        source: the item, as it was read.
        fields: those that the source lacks, or has with other values. Their values are validated strictly.

    Raises:
        ValidationError: the fields make no item of `model`.

    Cost: no request.
    """
    entity = definition(model)
    shared = type(source).model_fields.keys() & model.model_fields.keys() - fields.keys() - entity.server_fields
    given = source.model_fields_set
    taken = {name: value for name in shared if (value := getattr(source, name)) is not None or name in given}
    try:
        return model(**taken, **fields)
    except ValidationError as error:
        made = entity.tolerance.made(taken | fields, error, shared)
        if made is None:
            raise
        return made
