"""Many items at a time, each with an outcome of its own."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final

from dynashard import Collection, Entity
from dynashard.errors import (
    MOST_FIELD_ERRORS,
    AnswerTooLargeError,
    DynashardError,
    InputError,
    InvalidKeyError,
    NotFoundError,
    OutcomeUnknownError,
    UnprocessedError,
)
from dynashard.hosting.acceptance import refuse_past_expiry
from dynashard.hosting.documents import Document, written
from dynashard.hosting.limits import MAX_BATCH
from dynashard.hosting.pages import MAX_ANSWER_BYTES, answer_bytes
from dynashard.hosting.refusals import shortened
from functions.commands.items import shown, whole_item
from functions.commands.refusals import Outcome, done, refused
from functions.commands.request import Asked

ItemKey = Hashable
"""A key as an entity's definition has it."""
Place = tuple[str, int]
"""Where a write stands in its request: `put` or `delete`, and its number there."""

_SHORT_MESSAGE: Final = 200
_SHOWN_KEYS: Final = 10

CollectionOf = Callable[[type[Entity]], Collection[Any]]


class Batches:
    """Reads and writes of many items of an entity.

    Args:
        collection_of: gives the items of an entity.
        clock: wall clock, in epoch seconds.
    """

    def __init__(self, collection_of: CollectionOf, clock: Callable[[], float]) -> None:
        self._collection_of = collection_of
        self._clock = clock

    def get(self, asked: Asked) -> list[Outcome]:
        """Read items by their keys: an outcome for each key, in their order.

        Those that one answer cannot hold are refused as `answer_too_large`: ask for them again.

        Cost: 1 read each, 1 round trip for 100.
        """
        asked.only("keys", "consistent")
        given, refusals = asked.documents("keys", MAX_BATCH), _Refusals()
        outcomes: dict[int, Outcome] = {}
        keys: dict[int, Document] = {}
        for place, document in enumerate(given):
            try:
                keys[place] = asked.key(document, place=f"keys.{place}")
                asked.served.definition.key_of(keys[place])
            except InputError as error:
                outcomes[place] = refusals.of(error)
        try:
            found = self._collection_of(asked.served.entity).batch_get(
                list(keys.values()), consistent=asked.flag("consistent")
            )
        except UnprocessedError as error:
            # What was read is not told apart from what was not: all of it may be asked for again.
            outcomes |= dict.fromkeys(keys, refusals.of(error))
            found = []
        outcomes |= {place: _found(item) for place, item in zip(keys, found, strict=False)}
        return _fitting([outcomes[place] for place in range(len(given))])

    def write(self, asked: Asked) -> Mapping[str, list[Outcome]]:
        """Store and delete items, each whether or not its key had one: an outcome for each.

        Cost: 1 write each, 1 round trip for 25.
        """
        asked.only("put", "delete")
        puts, deletes = asked.documents("put", MAX_BATCH), asked.documents("delete", MAX_BATCH)
        refusals = _Refusals()
        outcomes: dict[Place, Outcome] = {}
        items: dict[ItemKey, tuple[Place, Any]] = {}
        places: list[tuple[Place, Document]] = [
            *((("put", place), document) for place, document in enumerate(puts)),
            *((("delete", place), document) for place, document in enumerate(deletes)),
        ]
        for place, document in places:
            try:
                item = _write_of(asked, place, document, self._clock())
                key = asked.served.definition.key_of(item)
                if key in items:
                    raise InvalidKeyError("This key stands in the batch already; which one should win?")
                items[key] = place, item
            except InputError as error:
                outcomes[place] = refusals.of(error)
        outcomes |= self._written(asked, items, refusals)
        return {
            "put": [outcomes["put", place] for place in range(len(puts))],
            "delete": [outcomes["delete", place] for place in range(len(deletes))],
        }

    def _written(
        self, asked: Asked, items: Mapping[ItemKey, tuple[Place, Any]], refusals: "_Refusals"
    ) -> dict[Place, Outcome]:
        refused: dict[ItemKey, Outcome] = {}
        try:
            self._send(asked, list(items.values()))
        except UnprocessedError as error:
            refused = dict.fromkeys(_left(asked, error.keys), refusals.of(error))
        except OutcomeUnknownError as error:
            left = UnprocessedError("Not written in time; send it again later.", operation="", keys=error.unprocessed)
            refused = dict.fromkeys(_left(asked, error.unprocessed), refusals.of(left))
            unknown = OutcomeUnknownError(str(error), operation=error.operation, keys=error.keys)
            refused |= dict.fromkeys(_left(asked, error.keys), refusals.of(unknown))
        except InputError as error:
            # Nothing was sent. One by one, it shows which of them it was.
            if len(items) == 1:
                return {place: refusals.of(error) for place, _ in items.values()}
            parts = [self._written(asked, {key: write}, refusals) for key, write in items.items()]
            return {place: outcome for part in parts for place, outcome in part.items()}
        return {place: refused.get(key) or done(None) for key, (place, _) in items.items()}

    def _send(self, asked: Asked, writes: Sequence[tuple[Place, Any]]) -> None:
        puts = [item for (kind, _), item in writes if kind == "put"]
        deletes = [item for (kind, _), item in writes if kind == "delete"]
        self._collection_of(asked.served.entity).batch_write(put=puts, delete=deletes)


class _Refusals:
    """Makes outcomes of refused items. All outcomes together name at most 50 fields, and count the others."""

    def __init__(self) -> None:
        self._room = MOST_FIELD_ERRORS

    def of(self, error: DynashardError) -> Outcome:
        """The outcome of an item that was refused."""
        outcome = refused(error)
        shown_error = outcome["error"]
        if "keys" in shown_error["details"]:
            # Otherwise each of the outcomes would list the keys of all of them.
            shown_error["details"]["keys"] = shown_error["details"]["keys"][:_SHOWN_KEYS]
        named = shown_error.pop("errors", [])
        kept = named[: self._room]
        self._room -= len(kept)
        if kept:
            shown_error["errors"] = kept
        else:
            shown_error["message"] = shortened(shown_error["message"], _SHORT_MESSAGE)
        if omitted := shown_error.get("errors_omitted", 0) + len(named) - len(kept):
            shown_error["errors_omitted"] = omitted
        return outcome


def _write_of(asked: Asked, place: Place, document: Document, now: float) -> Any:
    kind, number = place
    if kind != "put":
        return asked.key(document, place=f"{kind}.{number}")
    item = whole_item(asked, document)
    refuse_past_expiry(item, now)
    return item


def _left(asked: Asked, keys: Iterable[Mapping[str, Any]]) -> set[ItemKey]:
    """The keys that were left over, as those of items; keys are told as texts and numbers."""
    known = asked.served.definition
    return {known.key_of({name: known.check_value(name, value) for name, value in key.items()}) for key in keys}


def _found(item: Entity | None) -> Outcome:
    return refused(NotFoundError("No live item has this key.")) if item is None else done(shown(item))


def _fitting(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes, with refusals in the places of those that one answer cannot hold."""
    room, fitting = MAX_ANSWER_BYTES, []
    too_large: DynashardError = AnswerTooLargeError("One answer cannot hold this item too: ask for it again.")
    for outcome in outcomes:
        size = answer_bytes(written(outcome))
        kept = outcome if size <= room else refused(too_large)
        room -= answer_bytes(written(kept))
        fitting.append(kept)
    return fitting
