"""The page that answers a listing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar, overload

from dynashard.entity import Undecodable
from dynashard.transport.interface import Consumed

I = TypeVar("I")  # noqa: E741 - the item


@dataclass(frozen=True, slots=True)
class Page(Sequence[I]):
    """One answer of a listing, which can be used as the sequence of its items: `for user in page`, `page[0]`.

    An empty page is false, and may still have a cursor.

    Attributes:
        items: the items; a page may be short, or even empty, before the listing ends.
        cursor: token that continues the listing; None if the listing has ended, and only then.
        consumed: capacity used, with the number of requests.
        rounds: how many round trips were made one after the other.
        undecodable: stored items that the page leaves out, because they do not fit their entity; each with its stored
            key and what is wrong. They count for `limit`.
        complete: False if the index that was listed may lack items: they were stored before it was declared, or before
            a new version of their entity, and `dynashard index build` or `dynashard migrate` has not ended.
    """

    items: list[I]
    cursor: str | None
    consumed: Consumed
    rounds: int
    undecodable: Sequence[Undecodable] = ()
    complete: bool = True

    def __iter__(self) -> Iterator[I]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, place: int) -> I: ...
    @overload
    def __getitem__(self, place: slice) -> list[I]: ...
    def __getitem__(self, place: int | slice) -> I | list[I]:
        return self.items[place]
