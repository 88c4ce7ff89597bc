"""One deadline for each operation: a public method, with all of its requests, pauses and reads of evidence."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from dynashard.repository.store import Store
from dynashard.transport.deadline import within


class _OnStore(Protocol):
    _store: Store


S = TypeVar("S", bound=_OnStore)
P = ParamSpec("P")
R = TypeVar("R")


def write_operation(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Bound a method by the store's longest operation, a share of it kept for evidence after a lost answer."""
    return _bounded(method, reserve=True)


def read_operation(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Bound a method by the store's longest operation."""
    return _bounded(method, reserve=False)


def _bounded(method: Callable[Concatenate[S, P], R], *, reserve: bool) -> Callable[Concatenate[S, P], R]:
    @wraps(method)
    def bounded(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with within(self._store.operation_seconds, reserve=reserve):
            return method(self, *args, **kwargs)

    return bounded
