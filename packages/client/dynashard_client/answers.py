"""Results as a client returns them, and the errors of refusals."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar, overload

from dynashard_client.errors import CLASSES, DynashardError, FieldError, RefusedError

I = TypeVar("I")  # noqa: E741 - the item


@dataclass(frozen=True, slots=True)
class Page(Generic[I]):
    """One page of a listing, which is the sequence of its items: `for user in page`, `page[0]`.

    Attributes:
        items: the items; a page may be short, or even empty, before the listing ends.
        cursor: continues the listing; None, and only None, says that it has ended.
        complete: False if the listed index may lack items, because it is still being built.
    """

    items: list[I]
    cursor: str | None
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


class Counted(int):
    """How many items there are; at least so many if it is not `exact`."""

    exact: bool

    def __new__(cls, number: int, *, exact: bool = True) -> Self:
        """Return the number."""
        counted = super().__new__(cls, number)
        counted.exact = exact
        return counted


@dataclass(frozen=True, slots=True)
class Written(Generic[I]):
    """A stored item, and whether its key had no item before."""

    item: I
    created: bool


@dataclass(frozen=True, slots=True)
class Outcome(Generic[I]):
    """The result of one part of a batch.

    Attributes:
        item: what was read; None for a write.
        error: why it was not done; None if it was.
    """

    item: I | None = None
    error: DynashardError | None = None

    @property
    def ok(self) -> bool:
        """Whether it was done."""
        return self.error is None


def refused(code: str, message: str, *, status: int = 500, **more: Any) -> DynashardError:
    """Return the error of a refusal: of the class with its code, else a `RefusedError` with it."""
    known = CLASSES.get(code, RefusedError)
    error = known(message, **more)
    if known is RefusedError:
        error.code, error.status = code, status
    return error


def refusal_in(
    answer: Mapping[str, Any], *, status: int = 500, retry_after: int | None = None, request_id: str | None = None
) -> DynashardError:
    """Return the error in an answer of direct invocation or in a problem document."""
    named = ([str(each.get(name, "")) for name in FieldError._fields] for each in answer.get("errors", ()))
    error = refused(
        str(answer.get("code", "internal_error")),
        str(answer.get("message", answer.get("detail", ""))),
        status=status,
        errors=[FieldError(*each) for each in named],
        details=answer.get("details") or {},
        retry_after=answer.get("retry_after", retry_after),
    )
    for each in error.errors:
        if each.field and each.message:
            error.add_note(f"{each.field}: {each.message}")
    if request_id:
        error.add_note(f"request id: {request_id}")
    return error


def outcome_of(answer: "Outcome[Any] | Mapping[str, Any]") -> Outcome[Any]:
    """Return the outcome of a part of a batch, as a transport answers it."""
    if isinstance(answer, Outcome):
        return answer
    if answer.get("ok") is True:
        return Outcome(answer.get("result"))
    return Outcome(error=refusal_in(answer.get("error") or {}))
