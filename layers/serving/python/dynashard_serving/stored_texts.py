"""The JSON of stored items, written without an entity of each, wherever that gives the same text.

`dynashard.compiled.stored_documents` checks stored items; most have become documents when an answer was read, by
`dynashard.reads.page_form`. Both are optional, and do not know every model.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple, cast

import orjson
from pydantic import ValidationError
from pydantic_core import to_json

from dynashard.compiled.stored_documents import documents_validator
from dynashard.entity import Entity, EntityDefinition, Undecodable, definition, judged
from dynashard.entity.judging import MALFORMED
from dynashard.errors import UndecodableItemError
from dynashard.schema import REV
from dynashard_serving.documents import REVISION, item_texts, list_text


class Written(NamedTuple):
    """The JSON list of some stored items, and those that it leaves out because they do not fit their entity."""

    text: bytes
    undecodable: Sequence[Undecodable] = ()


Text = Callable[[Sequence[Any]], Written]
"""Writes some stored items. An item may be a document instead, as the only member of a tuple."""


@lru_cache(maxsize=256)
def stored_text(model: type[Entity]) -> Text | None:
    """Return what writes stored items as `item_texts` writes the same items decoded. None if nothing can.

    Cost: 5 to 7 us for an item of ten short fields, judgement included; decoding and writing it takes 12 to 17. Both
    were measured on a busy machine.
    """
    known = definition(model)
    if known.attachments:
        return None
    names = tuple(model.model_fields)
    attributes = known.attributes_of(names)

    def decoded(name: str, attribute: Any) -> Any:
        [at] = known.attributes_of((name,))
        return known.decode_fields_singly({at: attribute}, (name,))[name]

    stored = dict(zip(names, attributes, strict=True))
    validator = documents_validator(model, stored, decoded, {REVISION: REV}, known.key_fields)
    if validator is None:
        return None
    return _StoredText(known, validator.validate_python)


class _StoredText:
    """Writes the stored items of an entity that `validate` makes documents of, or refuses."""

    def __init__(self, entity: EntityDefinition[Any], validate: Callable[[Any], Any]) -> None:
        self._entity = entity
        self._validate = validate

    def __call__(self, items: Sequence[Any]) -> Written:
        documents = [item[0] if item.__class__ is tuple else self._document(item) for item in items]
        undecodable = [each for each in documents if each.__class__ is Undecodable]
        if undecodable:
            documents = [each for each in documents if each.__class__ is not Undecodable]
        try:
            return Written(orjson.dumps(documents, option=orjson.OPT_UTC_Z), undecodable)
        except TypeError:
            # Pydantic writes what orjson does not.
            return Written(list_text(map(_singly, documents)), undecodable)

    def _document(self, item: Any) -> Any:
        """What is written of a stored item, or the verdict that it does not fit."""
        with suppress(ValidationError, UndecodableItemError, *MALFORMED):
            found = self._validate(item)
            if self._entity.problem(found, item) is None:
                return found
        entity = judged(self._entity.decode, item)
        return entity if isinstance(entity, Undecodable) else orjson.Fragment(item_texts([entity])[0])


def _singly(found: Any) -> bytes:
    return cast("bytes", found.contents) if isinstance(found, orjson.Fragment) else to_json(found)
