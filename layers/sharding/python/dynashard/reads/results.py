"""A stream of items, and a number of items, which name what they leave out."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
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
    """A stream of items. `undecodable` grows by the stored items that were left out, as in a page.

    `arrived` are the items that can be returned without waiting for more.
    """

    def __init__(self, stream: Callable[[list[Undecodable]], Generator[Iterable[T]]]) -> None:
        self.undecodable: list[Undecodable] = []
        self.arrived: Iterator[T] = iter(())
        self._stream = stream(self.undecodable)

    def __next__(self) -> T:
        while True:
            for item in self.arrived:
                return item
            self.arrived = iter(next(self._stream))

    def close(self) -> None:
        """End the stream; what it has read ahead is dropped."""
        self.arrived = iter(())
        self._stream.close()
