"""The JSON of stored items, written without an entity of each, wherever that gives the same text.

`dynashard_direct.stored_documents` checks stored items; most have become documents when an answer was read, by
`dynashard_direct.page_form`. Both are optional, and do not know every model.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import orjson
from pydantic import ValidationError
from pydantic_core import to_json

from dynashard.entity import Entity, definition
from dynashard.errors import UndecodableItemError
from dynashard.runtime import direct_module
from dynashard.schema import REV
from dynashard_serving.documents import REVISION, item_texts, list_text

Text = Callable[[Sequence[Any]], bytes]
"""Returns the JSON list of some stored items; raises `UndecodableItemError` as decoding them does.

An item may be a document instead, as the only member of a tuple.
"""


@lru_cache(maxsize=256)
def stored_text(model: type[Entity]) -> Text | None:
    """Return what writes stored items as `item_texts` writes the same items decoded. None if nothing can.

    Cost: 2 us for an item of ten short fields; decoding it and writing it takes 9.
    """
    known = definition(model)
    direct = None if known.attachments else direct_module("stored_documents")
    if direct is None:
        return None
    names = tuple(model.model_fields)
    attributes = known.attributes_of(names)

    def decoded(name: str, attribute: Any) -> Any:
        [at] = known.attributes_of((name,))
        return known.decode_fields_singly({at: attribute}, (name,))[name]

    validator = direct.documents_validator(model, dict(zip(names, attributes, strict=True)), decoded, {REVISION: REV})
    if validator is None:
        return None
    validate, dumps = validator.validate_python, orjson.dumps

    def text(items: Sequence[Any]) -> bytes:
        try:
            documents = [item[0] if item.__class__ is tuple else validate(item) for item in items]
            return dumps(documents, option=orjson.OPT_UTC_Z)
        except (ValidationError, UndecodableItemError, TypeError):
            return list_text(map(singly, items))

    def singly(item: Any) -> bytes:
        # Decoding has the errors, and pydantic writes what orjson does not.
        return to_json(item[0]) if item.__class__ is tuple else item_texts([known.decode(item)])[0]

    return text
