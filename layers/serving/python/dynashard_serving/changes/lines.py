"""The line that a record of the stream leaves in the log, if it changes an item for its readers."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic_core import to_jsonable_python

from dynashard.schema import REV, TYPE
from dynashard.transport.interface import Wire
from dynashard_patterns.changes import entity_of, kind_of
from dynashard_serving.documents import TENANT
from dynashard_serving.operations.served import Served


class Described:
    """Describes the records of a stream for the log. Safe to share between threads."""

    def __init__(self, entities: Sequence[Served]) -> None:
        self._served = {served.name: served for served in entities}
        self._definitions = {served.name: served.definition for served in entities}

    def records(self, records: Sequence[Mapping[str, Any]], again: str | None) -> Iterator[dict[str, Any]]:
        """Yield what the log says of each record, up to the number from which on they come again.

        Records that are housekeeping of the layer, such as moves, are left out. `before` is the revision that the item
        had, and `revision` the one that it has.
        """
        for record in records:
            if record["dynamodb"]["SequenceNumber"] == again:
                return
            if (kind := kind_of(record)) is not None:
                yield self._described(kind, record["dynamodb"])

    def _described(self, kind: str, images: Mapping[str, Any]) -> dict[str, Any]:
        old, new = images.get("OldImage"), images.get("NewImage")
        image = new or old or {}
        about = {"operation": kind, "sequence": images["SequenceNumber"], "entity": _text(image, TYPE)}
        about |= {"revision": _text(new, REV), "before": _text(old, REV)}
        try:
            return about | self._item(image)
        except Exception:  # noqa: BLE001 - an item that cannot be read must not keep other changes waiting
            return about

    def _item(self, image: Wire) -> dict[str, Any]:
        entity = entity_of(image, self._definitions)
        if entity is None:
            return {}
        key = to_jsonable_python(entity.decode_fields(image, entity.key_fields))
        return {"entity": entity.name, "tenant": key.get(TENANT), "item": self._served[entity.name].item_name(key)}


def _text(image: Mapping[str, Any] | None, name: str) -> str | None:
    return None if image is None else image.get(name, {}).get("S")
