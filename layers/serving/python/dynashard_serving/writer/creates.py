"""Items that no caller waits for: created once, however often their message is delivered."""

from collections.abc import Callable
from typing import Any

from dynashard import Collection, Entity
from dynashard.errors import AlreadyExistsError, DynashardError, InputError, KeyTooFarAheadError, NotUniqueError
from dynashard_serving.documents import Document, validated
from dynashard_serving.writer.outcomes import DUPLICATE, End, Outcome

CollectionOf = Callable[[type[Entity]], Collection[Any]]


def create(collection: Collection[Any], model: type[Entity], document: Document) -> Outcome:
    """Store a new item.

    An item whose key exists is the same one, come a second time: what names items are their senders' own ids. An item
    that is placed by its time waits on the queue until that time has come.

    Cost: 1 write unit and 1 round trip, for a duplicate too.
    """
    try:
        stored = collection.create(validated(model, document))
    except AlreadyExistsError:
        return DUPLICATE
    except KeyTooFarAheadError as error:
        return Outcome(End.LEFT, error.code, str(error), document, wait=error.wait)
    except (InputError, NotUniqueError) as error:
        return Outcome(End.POISON, error.code, str(error), document)
    except DynashardError as error:
        # What cannot be repaired by trying again is tried a few times all the same: the fault may be ours.
        return Outcome(End.LEFT, error.code, str(error), document, unexpected=not error.transient)
    return Outcome(End.STORED, revision=stored.revision)
