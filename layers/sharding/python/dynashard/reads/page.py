"""The page that answers a listing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar, overload

from dynashard.cures import hint
from dynashard.entity import Undecodable
from dynashard.transport.interface import Consumed

I = TypeVar("I")  # noqa: E741 - the item
_ELSEWHERE: Final = {
    **dict.fromkeys(("has_more", "has_next"), "page.cursor is not None"),
    **dict.fromkeys(("last_evaluated_key", "next", "next_cursor", "next_page", "next_token"), "cursor=page.cursor"),
    **dict.fromkeys(("size", "total"), "len(page)"),
    "first": "page[0]",
}
"""What other libraries call the parts of a page, and how they are written here."""


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

    if not TYPE_CHECKING:
        # Type checkers refuse unknown names by themselves.
        def __getattr__(self, name: str) -> NoReturn:
            message = f"Page has no attribute {name}{hint(name, (), _ELSEWHERE)}"
            raise AttributeError(message, name=name, obj=self)

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
