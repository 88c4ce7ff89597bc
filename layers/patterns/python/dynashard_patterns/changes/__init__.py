"""What happens to items, told from the table's stream: decoded changes, and what follows from them."""

from dynashard_patterns.changes.change import Change, Consumer, Kind
from dynashard_patterns.changes.decode import decode, watched
from dynashard_patterns.changes.dispatch import DeadLetter, Dispatcher, Outcome

__all__ = ["Change", "Consumer", "DeadLetter", "Dispatcher", "Kind", "Outcome", "decode", "watched"]
