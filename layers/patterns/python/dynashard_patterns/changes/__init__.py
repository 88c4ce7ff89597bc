"""Change data capture: decode the table's stream to changes of items, and hand them to consumers."""

from dynashard_patterns.changes.change import Change, Consumer, Kind
from dynashard_patterns.changes.decode import decode, entity_of, kind_of, watched
from dynashard_patterns.changes.dispatch import DeadLetter, Dispatcher, Outcome

__all__ = [
    "Change",
    "Consumer",
    "DeadLetter",
    "Dispatcher",
    "Kind",
    "Outcome",
    "decode",
    "entity_of",
    "kind_of",
    "watched",
]
