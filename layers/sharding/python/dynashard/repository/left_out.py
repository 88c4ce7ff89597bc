"""Stored items that an answer leaves out because they do not fit their entity, and the answers that name them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeVar

from dynashard.entity import Undecodable, judged
from dynashard.repository.projection import ENTITY
from dynashard.transport.interface import Wire, meters

T = TypeVar("T")
_NONE: Final[Mapping[int, Undecodable]] = MappingProxyType({})


class Found(list[T | None]):
    """The items that a batch has found, None in place of each that it has not.

    `left_out` are the stored items that do not fit their entity, by their places in the list.
    """

    def __init__(self, items: Iterable[T | None] = (), left_out: Mapping[int, Undecodable] = _NONE) -> None:
        super().__init__(items)
        self.left_out = left_out

    @property
    def undecodable(self) -> Sequence[Undecodable]:
        """The stored items that do not fit their entity."""
        return tuple(self.left_out.values())


def found_in(stored: Iterable[Wire | None], decode: Callable[[Wire], T], *, strict: bool) -> Found[T]:
    """Return stored items decoded, unless a reader has made entities of them; raises as `leave_out`."""
    judgements: list[Any] = [
        each and (each[ENTITY] if ENTITY in each else judged(decode, each))  # type: ignore[arg-type]
        for each in stored
    ]
    if Undecodable not in set(map(type, judgements)):
        return Found(judgements)
    left_out = {at: each for at, each in enumerate(judgements) if isinstance(each, Undecodable)}
    leave_out(tuple(left_out.values()), strict=strict)
    return Found((None if at in left_out else each for at, each in enumerate(judgements)), left_out)


def leave_out(undecodable: Sequence[Undecodable], *, strict: bool) -> None:
    """Count items that are left out; raise the error of the first if none may be."""
    if not undecodable:
        return
    for meter in meters():
        meter.left_out(_named(undecodable))
    if strict:
        raise undecodable[0].error


def take_back(undecodable: Sequence[Undecodable]) -> None:
    """Stop counting what a page has left out, because the page is not returned but read again."""
    for meter in meters() if undecodable else ():
        meter.take_back(_named(undecodable))


def _named(undecodable: Sequence[Undecodable]) -> list[tuple[str, str, str]]:
    return [(each.partition_key, each.sort_key, each.problem) for each in undecodable]
