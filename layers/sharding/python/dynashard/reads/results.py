"""A stream of items, and a number of items, which name what they leave out."""

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Self, TypeVar

from dynashard.entity import Undecodable

T = TypeVar("T")


class Counted(int):
    """How many items there are. `undecodable` are stored items that were left out, as in a page.

    If it is not `exact`, there are at least so many: counting ended at the bound of the call.
    """

    undecodable: Sequence[Undecodable]
    exact: bool

    def __new__(cls, number: int, undecodable: Sequence[Undecodable] = (), *, exact: bool = True) -> Self:
        """Return the number with the items that it leaves out."""
        counted = super().__new__(cls, number)
        counted.undecodable = undecodable
        counted.exact = exact
        return counted


class Scan(Iterator[T]):
    """A stream of items. `undecodable` grows by the stored items that were left out, as in a page."""

    def __init__(self, stream: Callable[[list[Undecodable]], Generator[T]]) -> None:
        self.undecodable: list[Undecodable] = []
        self._items = stream(self.undecodable)

    def __next__(self) -> T:
        return next(self._items)

    def close(self) -> None:
        """End the stream; what it has read ahead is dropped."""
        self._items.close()
